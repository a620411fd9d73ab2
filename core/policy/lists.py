"""One allow/deny list of the configuration, read against the registered tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from core.config import ToolLists
from core.policy.toolset import AllowlistResolution, Removal
from core.policy.universe import Entry, Kind, Universe


@dataclass(frozen=True, slots=True)
class ListFilter:
    """A layer's lists: deny wins, an empty allow list filters nothing, alsoAllow passes its own allow list.

    `path` is where the lists are written, `written` which of them are, empty ones too.
    """

    path: str
    allow: tuple[Entry, ...] = ()
    also_allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    resolution: AllowlistResolution = field(default_factory=lambda: AllowlistResolution(""))
    written: frozenset[str] = frozenset()

    @classmethod
    def read(
        cls, lists: ToolLists, path: str, universe: Universe, configured: Universe | None = None
    ) -> ListFilter:
        """Read the entries of three lists written at `path`.

        `configured` holds the tools known when the configuration was loaded, which decide whether an allow
        list of plugin tools is set aside; without it the list stands, because it exists to restrict.
        """
        allow = tuple(universe.read(text) for text in lists.allow)
        stripped = configured is not None and plugin_only(lists.allow, configured)
        resolution = resolve_allowlist(allow, f"{path}.allow", stripped=stripped)
        return cls(
            path,
            () if resolution.stripped_allowlist else allow,
            tuple(universe.read(text) for text in lists.also_allow),
            tuple(universe.read(text) for text in lists.deny),
            resolution,
            frozenset(lists.model_fields_set),
        )

    def removes(self, step: str, tools: AbstractSet[str]) -> dict[str, Removal]:
        """Say which of these tools this layer takes out, and why."""
        return {**self.narrows(step, tools), **self.denies(step, tools)}

    def denies(self, step: str, tools: AbstractSet[str]) -> dict[str, Removal]:
        """Say which tools the deny list holds, by its first entry that does."""
        found: dict[str, Removal] = {}
        for index, entry in enumerate(self.deny):
            source = f"{self.path}.deny[{index}]"
            by = "" if entry.kind is Kind.NAME else f" by {entry.text!r}"
            for tool in (entry.tools & tools) - found.keys():
                found[tool] = Removal(step, "tool.denied", source, f"{source} denies {tool}{by}")
        return found

    def narrows(self, step: str, tools: AbstractSet[str]) -> dict[str, Removal]:
        """Say which tools an allow list leaves out; `exec` in it admits apply_patch."""
        if not self.allow:
            return {}
        passing = together(self.allow)
        patch = {"apply_patch"} if "exec" in passing else set[str]()
        source = f"{self.path}.allow"
        return {
            tool: Removal(step, "tool.not-allowed", source, f"{source} does not list {tool}")
            for tool in tools - passing - patch - self.added
        }

    @property
    def added(self) -> frozenset[str]:
        """The tools that alsoAllow holds."""
        return together(self.also_allow)

    def warnings(self) -> Iterator[str]:
        """Tell what an operator would not expect of these lists."""
        if self.resolution.stripped_allowlist:
            yield (
                f"{self.path}.allow lists only plugin tools and was set aside, because it would block every "
                "built-in tool; use alsoAllow to add plugin tools"
            )
        if self.allow and all(entry.kind is Kind.UNKNOWN for entry in self.allow):
            yield f"{self.path}.allow lists no known tool, so it blocks every tool"


def resolve_allowlist(allow: tuple[Entry, ...], path: str, *, stripped: bool) -> AllowlistResolution:
    """Tell what becomes of an allow list."""
    return AllowlistResolution(
        path,
        () if stripped else tuple(entry.text for entry in allow),
        tuple(entry.text for entry in allow if entry.kind is Kind.UNKNOWN),
        stripped,
    )


def plugin_only(allow: Iterable[str], configured: Universe) -> bool:
    """Tell whether an allow list names plugin tools alone: it would block every built-in tool by mistake.

    What is registered at run time does not count: a list that restricts today must not be gone tomorrow.
    """
    entries = [configured.read(text) for text in allow]
    return bool(entries) and all(
        entry.kind in (Kind.NAME, Kind.GROUP) and entry.tools and entry.tools <= configured.plugin_tools
        for entry in entries
    )


def together(entries: Iterable[Entry]) -> frozenset[str]:
    """Return all tools that entries stand for."""
    return frozenset[str]().union(*(entry.tools for entry in entries))


def exactly(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the tools that entries name exactly, not by a group or pattern."""
    return together(entry for entry in entries if entry.kind is Kind.NAME)
