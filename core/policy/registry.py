"""Plugins registered while the daemon runs: what may be registered, as pure functions over what is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from core.config import Config
from core.errors import RequestError
from core.policy.checks import near
from core.policy.names import normalise, plugin_fault, tool_fault
from core.policy.universe import Universe, plugin_tools

Plugins = Mapping[str, tuple[str, ...]]

NONE: Plugins = MappingProxyType({})
MOST_PLUGINS = 200
MOST_TOOLS = 1000


def with_plugin(present: Plugins, config: Config, plugin: str, tools: Sequence[str]) -> Plugins:
    """Register the tools of a plugin, in place of those it had; raises RequestError that names the fault."""
    fault = plugin_fault(plugin)
    if fault:
        raise RequestError(f"plugin {plugin[:80]!r} {fault}", field="plugin")
    if plugin in config.plugins:
        raise RequestError(
            f"plugin {plugin!r} is written in the configuration; change it there", field="plugin"
        )
    others = {other: own for other, own in present.items() if other != plugin}
    if len(others) >= MOST_PLUGINS or len(tools) > MOST_TOOLS or not tools:
        raise RequestError(f"give 1 to {MOST_TOOLS} tools, in at most {MOST_PLUGINS} plugins", field="tools")
    _check(others, config, plugin, tools)
    named = tuple(dict.fromkeys(normalise(tool) for tool in tools))
    return MappingProxyType({**others, plugin: named})


def without_plugin(present: Plugins, plugin: str) -> Plugins:
    """Take a plugin out; raises RequestError where none of this id was registered at run time."""
    if plugin not in present:
        hint = near(plugin, present)
        raise RequestError(f"no plugin {plugin[:80]!r} was registered at run time{hint}", field="plugin")
    return MappingProxyType({other: own for other, own in present.items() if other != plugin})


def _check(others: Plugins, config: Config, plugin: str, tools: Sequence[str]) -> None:
    taken = Universe.of({**plugin_tools(config.plugins), **others}, config.tools.registered)
    ids = {*config.plugins, *others}
    if plugin in taken.tools:
        raise RequestError(f"plugin {plugin!r} has the name of a registered tool", field="plugin")
    for tool in tools:
        fault = tool_fault(tool)
        if fault:
            raise RequestError(f"tool {tool[:80]!r} {fault}", field="tools")
        if normalise(tool) in taken.tools:
            raise RequestError(f"tool {tool!r} is registered already, by another plugin", field="tools")
        if normalise(tool) in ids:
            raise RequestError(f"tool {tool!r} has the name of a plugin", field="tools")
