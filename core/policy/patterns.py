"""What the entries of a tool list stand for: exact names, groups, plugins, and `*` and `?` patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from core.policy.catalog import GROUP_PREFIX, GROUPS, PLUGINS_GROUP, TOOLS
from core.policy.names import normalise


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


@dataclass(frozen=True, slots=True)
class Universe:
    """All registered tools; where a plugin takes a built-in name, the built-in tool counts."""

    plugins: Mapping[str, frozenset[str]] = field(default_factory=dict)
    shadowing: tuple[str, ...] = ()
    plugin_tools: frozenset[str] = frozenset()

    @classmethod
    def of(cls, plugins: Mapping[str, Iterable[str]]) -> Universe:
        """Register the tools of plugins, by plugin id."""
        named = {
            plugin.strip().casefold(): frozenset(normalise(tool) for tool in tools)
            for plugin, tools in plugins.items()
        }
        offered = frozenset().union(*named.values())
        own = {plugin: tools - TOOLS for plugin, tools in named.items()}
        return cls(own, tuple(sorted(offered & TOOLS)), offered - TOOLS)

    @property
    def tools(self) -> frozenset[str]:
        """Every registered tool."""
        return TOOLS | self.plugin_tools

    def group(self, name: str) -> frozenset[str] | None:
        """Return the tools of a group or of a plugin, or None where nothing has that name."""
        if name == PLUGINS_GROUP:
            return self.plugin_tools
        return GROUPS.get(name, self.plugins.get(name))

    def read(self, text: str) -> Entry:
        """Read one list entry; groups and names come before patterns."""
        name = normalise(text)
        if name in self.tools:
            return Entry(text, Kind.NAME, frozenset({name}))
        group = self.group(name)
        if group is not None:
            return Entry(text, Kind.GROUP, group)
        if not name.startswith(GROUP_PREFIX) and ("*" in name or "?" in name):
            return Entry(text, Kind.PATTERN, matching(name, self.tools))
        return Entry(text, Kind.UNKNOWN, frozenset())


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a pattern matches whole; `*` is any run, `?` one character."""
    return frozenset(name for name in names if _compiled(pattern).fullmatch(name))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # runs of stars are one star: otherwise the match could take exponential time
    collapsed = re.sub(r"\*+", "*", pattern)
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(char, re.escape(char)) for char in collapsed), re.DOTALL)
