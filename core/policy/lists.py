"""One allow/deny list of the configuration, read against the registered tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.config import Config, ToolLists
from core.policy.patterns import Entry, Kind, Universe
from core.policy.toolset import Removal


@dataclass(frozen=True, slots=True)
class ListFilter:
    """A layer's lists: deny wins, an empty allow list filters nothing, alsoAllow passes its own allow list.

    `path` is where the lists are written; it is the label of the step too. `keep_plugin_only` holds an allow
    list of plugin tools as written, where dropping it would widen a list that exists to restrict.
    """

    path: str
    allow: tuple[Entry, ...] = ()
    also_allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    stripped: bool = False

    @classmethod
    def read(
        cls, lists: ToolLists, path: str, universe: Universe, *, keep_plugin_only: bool = False
    ) -> ListFilter:
        """Read the entries of three lists written at `path`."""
        allow = tuple(universe.read(text) for text in lists.allow)
        stripped = not keep_plugin_only and _plugin_only(allow, universe)
        return cls(
            path,
            () if stripped else allow,
            tuple(universe.read(text) for text in lists.also_allow),
            tuple(universe.read(text) for text in lists.deny),
            stripped,
        )

    def removes(self, tool: str) -> Removal | None:
        """Say why this layer takes a tool out, or None where it passes."""
        return self.denies(tool) or self.narrows(tool)

    def denies(self, tool: str) -> Removal | None:
        """Say which entry of the deny list holds a tool."""
        for index, entry in enumerate(self.deny):
            if tool in entry.tools:
                source = f"{self.path}.deny[{index}]"
                by = "" if entry.kind is Kind.NAME else f" by {entry.text!r}"
                return Removal(self.path, "tool.denied", source, f"{source} denies {tool}{by}")
        return None

    def narrows(self, tool: str) -> Removal | None:
        """Say that an allow list stands here and does not hold a tool; `exec` in it admits apply_patch."""
        by_exec = tool == "apply_patch" and any("exec" in entry.tools for entry in self.allow)
        if not self.allow or by_exec or self.adds(tool) or any(tool in entry.tools for entry in self.allow):
            return None
        source = f"{self.path}.allow"
        return Removal(self.path, "tool.not-allowed", source, f"{source} does not list {tool}")

    def adds(self, tool: str) -> bool:
        """Tell whether alsoAllow holds a tool."""
        return any(tool in entry.tools for entry in self.also_allow)

    def warnings(self) -> Iterator[str]:
        """Tell what an operator would not expect of these lists."""
        if self.stripped:
            yield (
                f"{self.path}.allow lists only plugin tools and was set aside, because it would block every "
                "built-in tool; use alsoAllow to add plugin tools"
            )
        if self.allow and all(entry.kind is Kind.UNKNOWN for entry in self.allow):
            yield f"{self.path}.allow lists no known tool, so it blocks every tool"


def _plugin_only(allow: tuple[Entry, ...], universe: Universe) -> bool:
    return bool(allow) and all(
        entry.kind in (Kind.NAME, Kind.GROUP) and entry.tools and entry.tools <= universe.plugin_tools
        for entry in allow
    )


def all_lists(config: Config) -> Iterator[tuple[str, ToolLists]]:
    """Yield every allow/deny list of a configuration with the path it is written at."""
    tools = config.tools
    yield "tools", tools
    yield from _by_provider("tools", tools.by_provider)
    yield "tools.sandbox.tools", tools.sandbox.tools
    yield "tools.subagents.tools", tools.subagents.tools
    for agent_id, agent in config.agents.by_id.items():
        path = f"agents.{agent_id}.tools"
        yield path, agent.tools
        yield from _by_provider(path, agent.tools.by_provider)
        if agent.tools.sandbox:
            yield f"{path}.sandbox.tools", agent.tools.sandbox.tools
    for channel, groups in config.groups.items():
        for group_id, group in groups.items():
            yield f"groups.{channel}.{group_id}.tools", group.tools


def _by_provider(path: str, providers: Mapping[str, ToolLists]) -> Iterator[tuple[str, ToolLists]]:
    for provider, lists in providers.items():
        yield f"{path}.byProvider.{provider}", lists


def unknown_entries(config: Config) -> Iterator[tuple[str, str]]:
    """Yield path and text of every entry that names no built-in tool or group and is no pattern."""
    universe = Universe()
    for path, lists in all_lists(config):
        named = {"allow": lists.allow, "alsoAllow": lists.also_allow, "deny": lists.deny}
        for key, texts in named.items():
            unknown = [universe.read(text).kind is Kind.UNKNOWN for text in texts]
            yield from ((f"{path}.{key}[{i}]", text) for i, text in enumerate(texts) if unknown[i])


def hopeless_allow_lists(config: Config) -> Iterator[str]:
    """Yield the path of every allow list in which no entry names anything known."""
    universe = Universe()
    for path, lists in all_lists(config):
        entries = [universe.read(text) for text in lists.allow]
        if entries and all(entry.kind is Kind.UNKNOWN for entry in entries):
            yield f"{path}.allow"
