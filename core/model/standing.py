"""What answers leave standing: permissions for a time, deny rules, and what counts for one decision."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.allowlist import AllowlistEntry
from core.model.principal import Reviewer
from core.model.tightening import Tightening

SHORTEST_MS = 10_000
LONGEST_MS = 30 * 86_400_000
MOST_USES = 10_000
OFFERED_MS = (15 * 60_000, 60 * 60_000, 8 * 3_600_000)


@dataclass(frozen=True, slots=True)
class StandingPermission:
    """Allows one binding again and again until `expires_at`, or until it was used `max_uses` times.

    `id` is the id of the request on which it was given, `given_by` all whose yes it took. Times are epoch ms.
    """

    id: str
    agent: str
    session: str
    binding: str
    command: str
    given_by: tuple[Reviewer, ...]
    given_at: int
    expires_at: int
    max_uses: int | None = None
    uses: int = 0


@dataclass(frozen=True, slots=True)
class DenyRule:
    """Denies an agent one command, alone or as a part of a longer line, until it is revoked.

    `id` is the id of the request on which it was given, `command` the canonical text of that request.
    """

    id: str
    agent: str
    command: str
    given_by: Reviewer
    given_at: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """All that earlier answers mean for one decision; nothing, where nothing is kept.

    `seen_before` tells that a person approved exactly this binding for this agent. `tightenings` are what
    exec-approvals.json states for the agent, and what is set for the session and those it descends from.
    """

    learned: tuple[AllowlistEntry, ...] = ()
    deny_rules: tuple[DenyRule, ...] = ()
    permission: StandingPermission | None = None
    seen_before: bool = False
    locked: bool = False
    tightenings: tuple[Tightening, ...] = ()
