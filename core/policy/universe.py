"""All registered tools, and what the entries of a tool list stand for among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from core.config import PluginSettings
from core.policy.catalog import GROUP_PREFIX, GROUPS, PLUGINS_GROUP, TOOLS
from core.policy.names import mcp_server, normalise, tool_fault
from core.policy.patterns import Names, compiled, is_pattern

Registered = tuple[tuple[str, tuple[str, ...]], ...]


class Kind(Enum):
    """How a list entry was read."""

    NAME = "name"
    GROUP = "group"
    PATTERN = "pattern"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list: the text as written, its kind, and the tools it stands for."""

    text: str
    kind: Kind
    tools: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """All registered tools; where a plugin takes a built-in name, the built-in tool counts.

    `groups` are the built-in groups, plugins by id, and MCP servers as `mcp__server`; `names` are all tools.
    """

    tools: frozenset[str] = TOOLS
    plugin_tools: frozenset[str] = frozenset()
    groups: Mapping[str, frozenset[str]] = field(
        default_factory=lambda: {**GROUPS, PLUGINS_GROUP: frozenset()}
    )
    names: Names = field(default_factory=lambda: Names.of(TOOLS))
    shadowing: tuple[str, ...] = ()

    @classmethod
    def of(cls, plugins: Mapping[str, Iterable[str]] | None = None, single: Iterable[str] = ()) -> Universe:
        """Register tools by plugin id, and tools that belong to no plugin; equal universes are made once."""
        named = tuple((plugin, tuple(tools)) for plugin, tools in (plugins or {}).items())
        return _made(named, tuple(single))

    def read(self, text: str) -> Entry:
        """Read one list entry; names and groups come before patterns."""
        return _read(self, text)


@lru_cache(maxsize=64)
def _made(plugins: Registered, single: tuple[str, ...]) -> Universe:
    by_plugin: dict[str, frozenset[str]] = {}
    for plugin, tools in plugins:
        key = plugin.strip().casefold()
        by_plugin[key] = by_plugin.get(key, frozenset()) | _registrable(tools)
    of_plugins = frozenset[str]().union(*by_plugin.values())
    added = of_plugins | _registrable(single)
    offered = {normalise(tool) for _, tools in (*plugins, ("", single)) for tool in tools}
    return Universe(
        tools=TOOLS | added,
        plugin_tools=of_plugins,
        groups={**_together(by_plugin, _servers(added)), **GROUPS, PLUGINS_GROUP: of_plugins},
        names=Names.of(TOOLS | added),
        shadowing=tuple(sorted(offered & TOOLS)),
    )


def _registrable(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(normalise(tool) for tool in tools if tool_fault(tool) is None)


def _servers(tools: Iterable[str]) -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for tool in tools:
        server = mcp_server(tool)
        if server:
            found[server].add(tool)
    return {server: frozenset(own) for server, own in found.items()}


def _together(
    plugins: Mapping[str, frozenset[str]], servers: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Let a name stand for all that it could mean: a plugin may be called like an MCP server."""
    nothing = frozenset[str]()
    return {name: plugins.get(name, nothing) | servers.get(name, nothing) for name in {**plugins, **servers}}


@lru_cache(maxsize=8192)
def _read(universe: Universe, text: str) -> Entry:
    name = normalise(text)
    if name in TOOLS:
        return Entry(text, Kind.NAME, frozenset({name}))
    group = universe.groups.get(name)
    if group is not None:
        # a plugin may have a tool of its own name: the entry stands for the plugin, and so for that tool too
        return Entry(text, Kind.GROUP, group | ({name} & universe.tools))
    if name in universe.tools:
        return Entry(text, Kind.NAME, frozenset({name}))
    if is_pattern(name) and not name.startswith(GROUP_PREFIX):
        return Entry(text, Kind.PATTERN, compiled(name).among(universe.names))
    return Entry(text, Kind.UNKNOWN, frozenset())


def plugin_tools(plugins: Mapping[str, PluginSettings]) -> dict[str, tuple[str, ...]]:
    """Give the tools of each configured plugin, those of the plugins it includes among them."""
    return {plugin: _with_included(plugins, plugin, ()) for plugin in plugins}


def _with_included(
    plugins: Mapping[str, PluginSettings], plugin: str, above: tuple[str, ...]
) -> tuple[str, ...]:
    if plugin not in plugins or plugin in above:  # told of when the configuration is read
        return ()
    own = plugins[plugin]
    included = (_with_included(plugins, other, (*above, plugin)) for other in own.includes)
    return (*own.tools, *(tool for tools in included for tool in tools))
