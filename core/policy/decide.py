"""Layer 1's answer for one tool call, from the frozen tool set."""

from __future__ import annotations

import difflib

from core.config import Config
from core.model.decision import Decision, Effect, Layer
from core.policy.catalog import OWNER_ONLY
from core.policy.names import normalise
from core.policy.toolset import ToolSet

_SHOWN = 64


def decide(tools: ToolSet, tool_name: str) -> Decision:
    """Allow what is in the set, deny everything else; a name nobody registered is denied too."""
    tool = normalise(tool_name)
    removal = tools.removed.get(tool)
    if removal is not None:
        return Decision(Layer.TOOL_POLICY, Effect.DENY, removal.reason, removal.rule, removal.source)
    admission = tools.admitted.get(tool)
    if admission is not None:
        reason = f"{admission.source} lets this agent use {tool}"
        return Decision(Layer.TOOL_POLICY, Effect.ALLOW, reason, admission.rule, admission.source)
    return Decision(Layer.TOOL_POLICY, Effect.DENY, _unknown(tools, tool), "tool.unknown")


def refuse_owner_only(config: Config, agent: str, tool_name: str) -> Decision | None:
    """Refuse an owners' tool to any other agent at the moment of execution, whatever was said before."""
    tool = normalise(tool_name)
    if tool not in OWNER_ONLY or config.agent(agent).owner:
        return None
    source = f"agents.{agent}.owner"
    reason = f"{tool} is for agents with {source}: true, and {agent} is none; it was stopped before it ran"
    return Decision(Layer.TOOL_POLICY, Effect.DENY, reason, "tool.owner-only", source)


def _unknown(tools: ToolSet, tool: str) -> str:
    shown = ascii(tool[:_SHOWN]) + ("…" if len(tool) > _SHOWN else "")
    near = difflib.get_close_matches(tool[:_SHOWN], sorted({*tools.admitted, *tools.removed}), n=1)
    hint = f"; the nearest is {near[0]}" if near else ""
    return f"no tool is registered as {shown}{hint}"
