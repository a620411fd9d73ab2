"""Which sessions count as sandboxed (text 002 §5b, §13)."""

from __future__ import annotations

from dataclasses import dataclass

from core.config import Config, ExecHost, SandboxMode


@dataclass(frozen=True, slots=True)
class Sandboxing:
    """Whether a session's commands are sandboxed, whether its agent as a whole is, and what says so.

    The lists for sandboxed agents that an operator wrote count for both. The built-in lists count where the
    agent itself was declared sandboxed: by its own section, its pin or its claim. `sandboxing.mode` alone
    says where commands run: it is `all` by default, and would take web and memory out of every profile.
    """

    commands: bool
    agent: bool
    source: str


def sandboxing_of(config: Config, agent_id: str, depth: int, *, claimed: bool) -> Sandboxing:
    """Tell what counts for a session of an agent at a spawn depth."""
    agent = config.agent(agent_id)
    path = f"agents.{agent_id}"
    if agent.pin.sandboxed or claimed:
        return Sandboxing(
            commands=True, agent=True, source=f"{path}.pin.sandboxed" if agent.pin.sandboxed else "claimed"
        )
    mode, source = mode_of(config, agent_id)
    confined = mode is SandboxMode.ALL or (mode is SandboxMode.NON_MAIN and depth > 0)
    declared = agent.sandbox.mode is not None or agent.sandbox.enabled is True
    host = agent.exec.host or config.exec.host
    return Sandboxing(
        commands=confined and (declared or host is ExecHost.SANDBOX),
        agent=confined and declared,
        source=source,
    )


def mode_of(config: Config, agent_id: str) -> tuple[SandboxMode, str]:
    """Return the sandbox mode of an agent, and where it is written."""
    own = config.agent(agent_id).sandbox
    if own.enabled is False:
        return SandboxMode.OFF, f"agents.{agent_id}.sandbox.enabled"
    if own.mode is not None:
        return own.mode, f"agents.{agent_id}.sandbox.mode"
    return config.sandboxing.mode, "sandboxing.mode"
