"""What an operator got wrong in tool lists and plugins: faults that are refused, and what can never count."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from core.config import Config, PluginSettings, ProfileName, ToolLists
from core.policy import catalog
from core.policy.lists import plugin_only, together
from core.policy.names import normalise, plugin_fault, tool_fault
from core.policy.scene import universe_of
from core.policy.universe import Entry, Kind, Universe

Path = tuple[str | int, ...]
_MAIN = "main"
_RESTRICTED = {"exec": frozenset({"exec", "process"}), "fs": frozenset({"read", "write", "edit"})}


@dataclass(frozen=True, slots=True)
class Fault:
    """Where something is wrong, and what; the text begins with the value and a verb."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class WrittenLists:
    """Three lists as they are written; `agent` is whose they are, None where they hold for all."""

    path: Path
    lists: ToolLists
    agent: str | None = None


def all_lists(config: Config) -> Iterator[WrittenLists]:
    """Yield every allow/deny list of a configuration with the path it is written at."""
    tools = config.tools
    yield WrittenLists(("tools",), tools)
    for provider, section in tools.by_provider.items():
        yield WrittenLists(("tools", "byProvider", provider), section)
    yield WrittenLists(("tools", "sandbox", "tools"), tools.sandbox.tools)
    yield WrittenLists(("tools", "subagents", "tools"), tools.subagents.tools)
    yield from _lists_of_agents(config)
    for channel, groups in config.groups.items():
        for group, settings in groups.items():
            yield WrittenLists(("groups", channel, group, "tools"), settings.tools)
    for plugin, own in config.plugins.items():
        for channel, groups in own.groups.items():
            for group, settings in groups.items():
                yield WrittenLists(("plugins", plugin, "groups", channel, group, "tools"), settings.tools)


def _lists_of_agents(config: Config) -> Iterator[WrittenLists]:
    for agent_id, agent in config.agents.by_id.items():
        path: Path = ("agents", agent_id, "tools")
        yield WrittenLists(path, agent.tools, agent_id)
        for provider, section in agent.tools.by_provider.items():
            yield WrittenLists((*path, "byProvider", provider), section, agent_id)
        if agent.tools.sandbox:
            yield WrittenLists((*path, "sandbox", "tools"), agent.tools.sandbox.tools, agent_id)


def faults(config: Config) -> Iterator[Fault]:
    """Yield what must not be loaded: unknown groups, and plugins that contradict themselves or each other."""
    universe = universe_of(config)
    listed = (pair for written in all_lists(config) for pair in _entries(written, universe))
    for path, entry in (*listed, *_asked(config, universe)):
        if entry.kind is Kind.UNKNOWN and normalise(entry.text).startswith(catalog.GROUP_PREFIX):
            hint = near(entry.text, (*catalog.GROUPS, catalog.PLUGINS_GROUP))
            yield Fault(path, f"{entry.text!r} is no known group{hint}")
    yield from _faults_of_tools(config)
    yield from _faults_of_includes(config.plugins)


def hopeless_allow_lists(config: Config) -> Iterator[Path]:
    """Yield the path of every allow list in which no entry names anything known."""
    universe = universe_of(config)
    for written in all_lists(config):
        kinds = {universe.read(text).kind for text in written.lists.allow}
        if kinds == {Kind.UNKNOWN}:
            yield (*written.path, "allow")


def without_built_ins(config: Config) -> Iterator[str]:
    """Yield a sentence for every allow list that stands and names no built-in tool, or is set aside."""
    universe = universe_of(config)
    setting_aside = {("tools",), *(("agents", agent, "tools") for agent in config.agents.by_id)}
    for written in all_lists(config):
        entries = [universe.read(text) for text in written.lists.allow]
        path = path_text((*written.path, "allow"))
        if written.path in setting_aside and plugin_only(written.lists.allow, universe):
            yield f"{path}: lists only plugin tools and is set aside; use alsoAllow to add plugin tools"
        elif together(entries) and not together(entries) & catalog.TOOLS:
            yield f"{path}: lists no built-in tool, so none passes; name those that should"


def _faults_of_tools(config: Config) -> Iterator[Fault]:
    taken: dict[str, str] = {}
    for path, text in _registrations(config):
        tool, owner = normalise(text), str(path[1]) if path[0] == "plugins" else "tools.registered"
        fault = tool_fault(text)
        if fault:
            yield Fault(path, f"{text!r} {fault}")
        elif tool in config.plugins and tool != owner:
            yield Fault(path, f"{text!r} is the id of a plugin; a list could not tell them apart")
        elif tool in taken:
            yield Fault(path, f"{text!r} is registered twice (by {taken[tool]} too); keep one")
        taken.setdefault(tool, owner)


def _registrations(config: Config) -> Iterator[tuple[Path, str]]:
    for index, text in enumerate(config.tools.registered):
        yield ("tools", "registered", index), text
    for plugin, own in config.plugins.items():
        for index, text in enumerate(own.tools):
            yield ("plugins", plugin, "tools", index), text


def _faults_of_includes(plugins: Mapping[str, PluginSettings]) -> Iterator[Fault]:
    for plugin, own in plugins.items():
        wrong = plugin_fault(plugin)
        if wrong:
            yield Fault(("plugins", plugin), wrong)
        for index, other in enumerate(own.includes):
            path: Path = ("plugins", plugin, "includes", index)
            if other not in plugins:
                yield Fault(path, f"{other!r} is no plugin{near(other, plugins)}")
            elif circle := _circle(plugins, (plugin, other)):
                yield Fault(
                    path, f"{other!r} closes a circle ({' includes '.join(circle)}); remove one of them"
                )


def _circle(plugins: Mapping[str, PluginSettings], walked: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the way from the first plugin back to itself, if there is one."""
    if walked[-1] == walked[0]:
        return walked
    if walked[-1] in walked[:-1] or walked[-1] not in plugins:
        return None
    ways = (_circle(plugins, (*walked, other)) for other in plugins[walked[-1]].includes)
    return next((way for way in ways if way), None)


def never_counting(config: Config) -> Iterator[str]:
    """Yield a sentence for every entry that can never have an effect, by path and text."""
    universe = universe_of(config)
    for written in all_lists(config):
        denied = together(universe.read(text) for text in written.lists.deny)
        for path, entry in _entries(written, universe):
            why = _why_never(config, universe, written, entry, str(path[-2]), denied)
            if why:
                yield f"{path_text(path)}: {entry.text!r} {why}"
    for path, entry in _asked(config, universe):
        nothing = _names_nothing(universe, entry)
        if nothing:
            yield f"{path_text(path)}: {entry.text!r} {nothing}"


def unknown_channels(config: Config) -> Iterator[str]:
    """Yield a sentence for every chat group of a channel that nothing here is called."""
    written: list[tuple[Path, Mapping[str, object]]] = [(("groups",), config.groups)]
    written += [(("plugins", plugin, "groups"), own.groups) for plugin, own in config.plugins.items()]
    for path, channels in written:
        for channel in channels:
            if channel.lower() not in catalog.CHANNELS:
                why = "is no channel that Sayso knows, so these rules hold for no chat of a known one"
                hint = near(channel, catalog.CHANNELS)
                yield f"{path_text((*path, channel))}: {channel!r} {why}{hint}"


def _names_nothing(universe: Universe, entry: Entry) -> str | None:
    if entry.kind is Kind.UNKNOWN:
        hint = near(entry.text, (*universe.tools, *universe.groups))
        return f"names no known tool or group, so it has no effect{hint}"
    return None if entry.tools else "matches no registered tool, so it has no effect"


def _why_never(
    config: Config,
    universe: Universe,
    written: WrittenLists,
    entry: Entry,
    key: str,
    denied: frozenset[str],
) -> str | None:
    nothing = _names_nothing(universe, entry)
    if nothing or key == "deny":
        return nothing
    if entry.tools <= denied:
        return f"has no effect, because {path_text((*written.path, 'deny'))} denies all of it"
    if written.agent is not None and _for_owners(config, written.agent, entry):
        return f"has no effect, because agents.{written.agent}.owner is false"
    return _outside_profile(config, written, entry) if key == "allow" else None


def _for_owners(config: Config, agent: str, entry: Entry) -> bool:
    return entry.tools <= catalog.OWNER_ONLY and not config.agent(agent).owner


def _outside_profile(config: Config, written: WrittenLists, entry: Entry) -> str | None:
    """Say that an agent's allow list names what neither its profile nor an alsoAllow brings in."""
    if (
        written.agent is None
        or written.path[-1] != "tools"
        or len(written.path) != len(("agents", "id", "tools"))
    ):
        return None
    universe = universe_of(config)
    own, tools = config.agent(written.agent).tools, config.tools
    name = own.profile or tools.profile
    also = together(universe.read(text) for text in (*own.also_allow, *tools.also_allow))
    if name is ProfileName.FULL or entry.tools & (catalog.PROFILES[name] | also):
        return None
    return f"has no effect: the {name.value} profile does not hold it, and allow only narrows; use alsoAllow"


def sections_without_tools(config: Config) -> Iterator[str]:
    """Yield a sentence for each section that restricts tools which an agent does not have."""
    sections = (("exec", config.tools.exec), ("fs", config.tools.fs))
    for name, section in sections:
        if section is not None:
            for agent in config.agents.by_id or (_MAIN,):
                yield from _without_tools(config, agent, name)


def _without_tools(config: Config, agent: str, section: str) -> Iterator[str]:
    universe, own = universe_of(config), config.agent(agent).tools
    profile = own.profile or config.tools.profile
    if profile is ProfileName.FULL:
        return
    also = together(universe.read(text) for text in (*own.also_allow, *config.tools.also_allow))
    if missing := sorted(_RESTRICTED[section] - catalog.PROFILES[profile] - also):
        yield (
            f"tools.{section}: restricts tools and brings none in, and the {profile.value} profile of "
            f"{agent} does not hold {' and '.join(missing)}; agents.{agent}.tools.alsoAllow: "
            f"[{', '.join(missing)}] adds them"
        )


def _entries(written: WrittenLists, universe: Universe) -> Iterator[tuple[Path, Entry]]:
    lists = written.lists
    for key, texts in (("allow", lists.allow), ("alsoAllow", lists.also_allow), ("deny", lists.deny)):
        for index, text in enumerate(texts):
            yield (*written.path, key, index), universe.read(text)


def _asked(config: Config, universe: Universe) -> Iterator[tuple[Path, Entry]]:
    for index, text in enumerate(config.tools.ask.tools):
        yield ("tools", "ask", "tools", index), universe.read(text)


def near(text: str, known: Iterable[str]) -> str:
    """Give the nearest known name as the end of a sentence, or nothing."""
    names = sorted(known)
    found = difflib.get_close_matches(normalise(text), names, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def path_text(path: Path) -> str:
    """Write a path as people do: `agents.main.tools.deny[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
