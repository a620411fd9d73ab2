"""What layer 1 works with and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

from core.model.principal import Claims
from core.model.session import SessionKey

BUILT_IN = "built-in"


class Role(IntEnum):
    """What a session is among those that spawn each other; the larger loses more tools."""

    ORCHESTRATOR = 0
    SUBAGENT = 1
    LEAF = 2


def role_of(depth: int, max_spawn_depth: int) -> Role:
    """Class a session by its spawn depth."""
    if depth < 1:
        return Role.ORCHESTRATOR
    return Role.LEAF if depth >= max_spawn_depth else Role.SUBAGENT


@dataclass(frozen=True, slots=True)
class ToolIdentity:
    """Whose tools are asked for.

    `channel` and `peer` name the chat group of the session, if it has one. `plugins` are those registered at
    run time, beside the configured ones. `depth` is the deepest that the session ever was.
    """

    agent: str
    provider: str | None = None
    model: str | None = None
    depth: int = 0
    sandboxed: bool = False
    plugins: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    channel: str | None = None
    peer: str | None = None

    @classmethod
    def of(
        cls, session: SessionKey, claims: Claims, plugins: Mapping[str, tuple[str, ...]] | None = None
    ) -> ToolIdentity:
        """Take what the session key shows and the agent claims; of two depths the larger counts."""
        return cls(
            agent=session.agent,
            provider=claims.provider,
            model=claims.model,
            depth=max(session.depth, claims.depth),
            sandboxed=claims.sandboxed,
            plugins=plugins or {},
            channel=session.channel,
            peer=session.peer,
        )


@dataclass(frozen=True, slots=True)
class Admission:
    """Why a tool is in the set: the rule and the configuration path that brought it in."""

    step: str
    rule: str
    source: str


@dataclass(frozen=True, slots=True)
class Removal:
    """Why a tool is not in the set: the first step that took it out, in one sentence for people.

    `source` is where the rule is written, or `built-in`; `path` is where an operator would change it.
    """

    step: str
    rule: str
    source: str
    reason: str
    path: str = ""

    @property
    def scope(self) -> str:
        """Whose rule it is: `agent`, `global`, or `default` where nobody wrote it."""
        if self.source == BUILT_IN:
            return "default"
        own = self.source.startswith("agents.") and not self.source.startswith("agents.defaults.")
        return "agent" if own else "global"

    def to_json(self) -> dict[str, str]:
        """Give one value of `denied`."""
        return {
            "step": self.step,
            "rule": self.rule,
            "source": self.source,
            "scope": self.scope,
            "path": self.path or self.source,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """Tools on their way through the pipeline; every registered tool is in exactly one of the two."""

    admitted: Mapping[str, Admission]
    removed: Mapping[str, Removal]

    def without(self, removals: Mapping[str, Removal]) -> Selection:
        """Take tools out; what is out already keeps its first reason."""
        gone = removals.keys() & self.admitted.keys()
        if not gone:
            return self
        kept = {tool: why for tool, why in self.admitted.items() if tool not in gone}
        return Selection(kept, {**self.removed, **{tool: removals[tool] for tool in gone}})


@dataclass(frozen=True, slots=True)
class AllowlistResolution:
    """What became of an allow list: entries that count, unknown ones, and whether it was set aside."""

    path: str
    policy: tuple[str, ...] = ()
    unknown_allowlist: tuple[str, ...] = ()
    stripped_allowlist: bool = False

    def to_json(self) -> dict[str, object]:
        """Give one row of `allowlists`."""
        return {
            "path": self.path,
            "policy": list(self.policy),
            "unknownAllowlist": list(self.unknown_allowlist),
            "strippedAllowlist": self.stripped_allowlist,
        }


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The frozen result of layer 1 for one identity; every registered tool is in exactly one of the two.

    `confined_by` names the setting that keeps file tools inside the workspace, where one does.
    """

    admitted: Mapping[str, Admission]
    removed: Mapping[str, Removal]
    warnings: tuple[str, ...] = ()
    allowlists: tuple[AllowlistResolution, ...] = ()
    role: Role = Role.ORCHESTRATOR
    confined_by: str | None = None

    @classmethod
    def frozen(cls, selection: Selection) -> ToolSet:
        """Freeze what is left at the end of the pipeline."""
        return cls(MappingProxyType(dict(selection.admitted)), MappingProxyType(dict(selection.removed)))

    @property
    def allowed(self) -> frozenset[str]:
        """The tools that may be used."""
        return frozenset(self.admitted)

    @property
    def stripped_allowlist(self) -> bool:
        """Whether an allow list of plugin tools only was set aside."""
        return any(each.stripped_allowlist for each in self.allowlists)
