"""Codes that were handed out: kept in memory alone, so that a restart ends them all."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from dataclasses import dataclass, field, replace
from enum import StrEnum

from core.errors import RequestError
from core.model.principal import Sender
from core.ports import Clock

CODE_BYTES = 8
OPEN_MS = 10 * 60_000
KEPT_MS = 60 * 60_000
MOST_WAITING = 20
MOST_KEPT = 100


class InvitationState(StrEnum):
    """How an invitation stands; void is one whose code others know too."""

    OPEN = "open"
    CLAIMED = "claimed"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    EXPIRED = "expired"
    VOID = "void"


_WAITING = (InvitationState.OPEN, InvitationState.CLAIMED)


@dataclass(frozen=True, slots=True)
class Invitation:
    """One code that was handed out. The code itself is told once and is not kept.

    It ends by the wall clock or by the steady one, whichever is first: a clock that is set back makes
    no code live longer, and neither does a machine that sleeps.
    """

    id: str
    code_sha256: str = field(repr=False)
    channel: str
    route: str
    expires_at: int
    ends_s: float
    state: InvitationState = InvitationState.OPEN
    claimed_by: Sender | None = None

    @property
    def waits(self) -> bool:
        """Whether it can still lead to somebody who is let in."""
        return self.state in _WAITING


class Invitations:
    """The invitations of the last hour, within bounds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, Invitation] = {}

    def make(self, channel: str, route: str) -> tuple[Invitation, str]:
        """Make one and its code; raises RequestError where too many wait."""
        self._forget_old()
        if sum(self._as_of_now(one).waits for one in self._kept.values()) >= MOST_WAITING:
            raise RequestError(f"{MOST_WAITING} codes are out already; wait until some have expired")
        code = secrets.token_hex(CODE_BYTES)
        expires_at, ends_s = self._end()
        made = Invitation(str(uuid.uuid4()), _digest(code), channel, route, expires_at, ends_s)
        self._kept[made.id] = made
        return made, code

    def get(self, invitation_id: str) -> Invitation | None:
        """Return it as it stands now."""
        found = self._kept.get(invitation_id)
        return self._as_of_now(found) if found else None

    def by_code(self, code: str) -> Invitation | None:
        """Return the one with this code as it stands now; how long that takes tells nothing of a code."""
        given = _digest(code.lower())
        found = [one for one in self._kept.values() if hmac.compare_digest(one.code_sha256, given)]
        return self._as_of_now(found[0]) if found else None

    def claim(self, invitation: Invitation, who: Sender) -> None:
        """Note who sent the code; the operator has the same time again to confirm it."""
        expires_at, ends_s = self._end()
        self._kept[invitation.id] = replace(
            invitation,
            state=InvitationState.CLAIMED,
            claimed_by=who,
            expires_at=expires_at,
            ends_s=ends_s,
        )

    def settle(self, invitation: Invitation, state: InvitationState) -> None:
        """End it."""
        self._kept[invitation.id] = replace(invitation, state=state)

    def _end(self) -> tuple[int, float]:
        return self._clock.now() + OPEN_MS, self._clock.monotonic() + OPEN_MS / 1000

    def _as_of_now(self, one: Invitation) -> Invitation:
        over = one.expires_at <= self._clock.now() or one.ends_s <= self._clock.monotonic()
        return replace(one, state=InvitationState.EXPIRED) if one.waits and over else one

    def _forget_old(self) -> None:
        """Forget what was over long ago, and the oldest where many are over."""
        oldest = self._clock.monotonic() - KEPT_MS / 1000
        over = [one for one in self._kept.values() if not self._as_of_now(one).waits]
        surplus = len(self._kept) - MOST_KEPT + 1
        for index, one in enumerate(over):
            if index < surplus or one.ends_s <= oldest:
                del self._kept[one.id]


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
