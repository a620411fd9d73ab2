"""What layer 1 works with and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.model.principal import Claims
from core.model.session import SessionKey


@dataclass(frozen=True, slots=True)
class ToolIdentity:
    """Whose tools are asked for. `channel` and `peer` name the chat group of the session, if it has one."""

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
    """Why a tool is not in the set: the first step that took it out, in one sentence for people."""

    step: str
    rule: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The frozen result of layer 1 for one identity; every registered tool is in exactly one of the two."""

    admitted: Mapping[str, Admission]
    removed: Mapping[str, Removal]
    warnings: tuple[str, ...] = ()
    stripped_allowlist: bool = False

    @property
    def allowed(self) -> frozenset[str]:
        """The tools that may be used."""
        return frozenset(self.admitted)
