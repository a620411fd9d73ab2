"""Rows of `sayso tools --batch`: an identity in, its tool set out. Bad rows name the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from core.config import Config, PluginSettings
from core.errors import RequestError
from core.model.principal import Claims
from core.model.session import SessionKey, is_agent_id
from core.policy.catalog import TOOLS
from core.policy.names import normalise, tool_fault
from core.policy.pipeline import resolve
from core.policy.toolset import ToolIdentity

_DEFAULT_AGENT = "main"

T = TypeVar("T")


def tools_row(
    config: Config, row: Mapping[str, Any], registered: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, Any]:
    """Answer one input row: which tools are allowed, and what took each other one out.

    `registered` are the plugins of a running daemon; those of the row come on top, and count as if the
    configuration had them.
    """
    who = identity_of(row)
    tools = resolve(_with_plugins(config, who.plugins), replace(who, plugins=registered or {}))
    return {
        "id": row.get("id"),
        "allowed": sorted(tools.allowed),
        "denied": {tool: gone.to_json() for tool, gone in sorted(tools.removed.items())},
        "warnings": list(tools.warnings),
        "strippedAllowlist": tools.stripped_allowlist,
        "allowlists": [each.to_json() for each in tools.allowlists],
        "role": tools.role.name.lower(),
        "confinedBy": tools.confined_by,
    }


def _with_plugins(config: Config, plugins: Mapping[str, tuple[str, ...]]) -> Config:
    written = dict(config.plugins)
    for plugin, tools in plugins.items():
        known = written.get(plugin, PluginSettings())
        written[plugin] = known.model_copy(update={"tools": (*known.tools, *tools)})
    return config.model_copy(update={"plugins": written}) if plugins else config


def identity_of(row: Mapping[str, Any]) -> ToolIdentity:
    """Read the identity fields of a row; raises RequestError that names the wrong one."""
    claims = Claims(
        provider=_typed(row, "provider", str),
        model=_typed(row, "model", str),
        depth=_depth(row),
        sandboxed=_typed(row, "sandboxed", bool) or False,
    )
    return ToolIdentity.of(_session(row), claims, _plugins(row))


def _session(row: Mapping[str, Any]) -> SessionKey:
    agent, text = _typed(row, "agent", str), _typed(row, "session", str)
    if agent is not None and not is_agent_id(agent):
        raise RequestError(f"agent {agent!r} is no valid agent id (a-z, 0-9, _ and -)", field="agent")
    if text is None:
        return SessionKey.main(agent or _DEFAULT_AGENT)
    try:
        session = SessionKey.parse(text)
    except ValueError as problem:
        raise RequestError(str(problem), field="session") from None
    if agent is not None and agent != session.agent:
        raise RequestError(f"session {text!r} belongs to another agent than {agent!r}", field="session")
    return session


def _depth(row: Mapping[str, Any]) -> int:
    depth = _typed(row, "depth", int) or 0
    if depth < 0:
        raise RequestError(f"depth must be 0 or more, not {depth}", field="depth")
    return depth


def _plugins(row: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    plugins = _typed(row, "plugins", dict) or {}
    for name, tools in plugins.items():
        if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
            raise RequestError(f"plugins.{name} must be a list of tool names", field="plugins")
        for tool in tools:
            fault = None if normalise(tool) in TOOLS else tool_fault(tool)  # a built-in name is warned of
            if fault:
                raise RequestError(f"plugins.{name}: {tool!r} {fault}", field="plugins")
    return {name: tuple(tools) for name, tools in plugins.items()}


def _typed(row: Mapping[str, Any], field: str, kind: type[T]) -> T | None:
    value = row.get(field)
    if value is None:
        return None
    # a bool is an int to Python, and no depth
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        wanted = {str: "text", int: "a whole number", bool: "true or false", dict: "an object"}[kind]
        raise RequestError(f"{field} must be {wanted}, not {type(value).__name__}", field=field)
    return value
