"""A tool call: what an agent asks for, as it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from core.model.principal import Claims
from core.model.session import SessionKey

EXEC = "exec"


class CommandText(Struct, frozen=True):
    """A command as asked: a shell `line` or an `argv`, never both.

    `cwd` is absolute or None (the session's workspace); with `cwd_preferred` a cwd that the sandbox does
    not show is replaced by the workspace, without it the call is refused. `env` is what the agent adds.
    `new_privileges` asks for a run in which setuid programs and file capabilities count.
    """

    line: str | None = None
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    cwd_preferred: bool = False
    env: tuple[tuple[str, str], ...] = ()
    stdin: bytes | None = None
    timeout_s: float | None = None
    new_privileges: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool name with arguments, from an authenticated agent in one of its sessions.

    `cwd` is what relative paths in `args` start from; absolute, or None for the session's workspace.
    `security` and `ask` are modes of `tools.exec` that the agent asks for; they only make it stricter.
    `elevated` is the level that the agent asks for; `directive` is the id of what a person set for this one
    command, and comes from the gate alone. `credential` is the digest of the token that it came in with.
    `by_client` tells that the agent's own program carries it out, as it does every call but those of exec.
    """

    tool: str
    session: SessionKey
    claims: Claims = Claims()
    command: CommandText | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    elevated: str | None = None
    cwd: str | None = None
    security: str | None = None
    ask: str | None = None
    directive: str | None = None
    credential: str | None = None
    by_client: bool = False

    @property
    def agent(self) -> str:
        """The agent whose credential made this call."""
        return self.session.agent

    @property
    def depth(self) -> int:
        """Spawn depth: the larger of what the session key shows and the agent claims."""
        return max(self.session.depth, self.claims.depth)
