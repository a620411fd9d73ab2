"""Where commands run by the configuration: a sandbox that is there and not used protects nobody."""

from __future__ import annotations

from bot.check import Check, Status
from core.config import Config
from core.elevated.placement import place
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.session import SessionKey

_NAME = "sandbox use"
_ANY_AGENT = "main"
_SPAWNED = ("x",)
_CONFINES = {"host": "sandbox", "mode": "all", "enabled": "true"}


def sandbox_use(config: Config) -> list[Check]:
    """Name each setting that places commands on the host, and whose."""
    found: dict[str, tuple[str, list[str]]] = {}
    for agent in dict.fromkeys((_ANY_AGENT, *config.agents.by_id)):
        placed = place(config, ToolCall("exec", SessionKey(agent)))
        if placed.placement is Placement.HOST:
            _, agents = found.setdefault(placed.decision.source, (placed.decision.reason, []))
            agents.append(agent)
    told = [_told(config, source, *each) for source, each in found.items()]
    return told or [Check(_NAME, Status.OK, "every session runs in the sandbox")]


def _told(config: Config, source: str, reason: str, agents: list[str]) -> Check:
    spawned = place(config, ToolCall("exec", SessionKey(agents[0], subagents=_SPAWNED)))
    sessions = "every session" if spawned.placement is Placement.HOST else "main sessions"
    _, _, why = reason.partition("because ")
    others = sorted(set(config.agents.by_id) - {*agents})
    whose = f" of {', '.join(agents)}" if source.startswith("agents.") else ""
    without = f", but of {', '.join(others)}" if others and not whose else ""
    key = source.rpartition(".")[2]
    mend = f"set {source}: {_CONFINES[key]}" if key in _CONFINES else f"change {source}"
    return Check(_NAME, Status.WARN, f"on the host run {sessions}{whose}{without} ({why or reason})", mend)
