"""Session keys: `agent:<agentId>:main`, `agent:<agentId>:<channel>:<peer>`; spawns add `:subagent:<id>`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PART = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}")


def is_agent_id(text: str) -> bool:
    """Tell whether this can name an agent: lower case letters, digits, `_` and `-`, at most 64."""
    return _AGENT_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session of one agent; `subagents` holds the ids of the spawns it descends through.

    The channel is in lower case, however it was written: rules for chat groups know one spelling.
    """

    agent: str
    channel: str | None = None
    peer: str | None = None
    subagents: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        """Read a key; raises ValueError that says what is wrong with it."""
        head, *spawned = text.split(":subagent:")
        parts = head.split(":")
        shapes = {3: parts[2:] == ["main"], 4: True}
        if parts[0] != "agent" or not shapes.get(len(parts), False):
            raise ValueError(
                f"session key {text!r} is not of the form agent:<id>:main or agent:<id>:<channel>:<peer>"
            )
        if not is_agent_id(parts[1]):
            raise ValueError(f"session key {text!r} names no valid agent id")
        for part in (*parts[2:], *spawned):
            if not _PART.fullmatch(part):
                raise ValueError(f"session key {text!r}: {part!r} is not a valid part")
        channel, peer = (parts[2].lower(), parts[3]) if len(parts) == 4 else (None, None)  # noqa: PLR2004 - as above
        return cls(parts[1], channel, peer, tuple(spawned))

    @classmethod
    def main(cls, agent: str) -> SessionKey:
        """Return the main session of an agent."""
        return cls(agent)

    @property
    def depth(self) -> int:
        """How many spawns lie between the orchestrator and this session."""
        return len(self.subagents)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The keys of the sessions it descends from, outermost first, and its own."""
        return tuple(str(replace(self, subagents=self.subagents[:depth])) for depth in range(self.depth + 1))

    def __str__(self) -> str:
        where = f"{self.channel}:{self.peer}" if self.channel else "main"
        return "".join([f"agent:{self.agent}:{where}", *(f":subagent:{spawn}" for spawn in self.subagents)])


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session that was seen, and the deepest spawn depth that it ever claimed.

    Times are epoch ms; `last_request` is None where none of its requests is kept.
    """

    key: str
    depth: int
    first_seen: int
    last_request: int | None = None
