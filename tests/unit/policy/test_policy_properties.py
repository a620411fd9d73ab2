"""What must hold for every configuration and identity."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.config import Config, ProfileName
from core.policy import ToolIdentity, ToolSet, resolve
from core.policy.catalog import GROUPS, OWNER_ONLY, TOOLS
from core.policy.scene import universe_of

Plain = dict[str, Any]

MAIL = {"mail": ("send_mail", "mcp__mail__drafts")}
CONFIGURED = {
    "weather": {"tools": ["forecast", "radar"]},
    "maps": {"tools": ["route", "mcp__maps__find"], "includes": ["weather"]},
}
REGISTERED = sorted(TOOLS | {"forecast", "radar", "route", "mcp__maps__find", "clock", "send_mail"})

entries = st.one_of(
    st.sampled_from(REGISTERED),
    st.sampled_from(sorted(GROUPS)),
    st.sampled_from(
        [
            *("*", "web_*", "session?_*", "*e*", "mcp__*", "mcp__maps", "mcp__maps__*"),
            *("weather", "maps", "mail", "group:plugins", "unknown", "Bash", "apply-patch", "Glob"),
        ]
    ),
)
lists = st.fixed_dictionaries(
    {}, optional={key: st.lists(entries, max_size=4) for key in ("allow", "alsoAllow", "deny")}
)
profiles = st.sampled_from([profile.value for profile in ProfileName])
modes = st.sampled_from(["off", "non-main", "all"])
accesses = st.sampled_from(["rw", "ro", "none"])
of_providers = st.dictionaries(
    st.sampled_from(["acme", "acme/small"]),
    st.builds(dict.__or__, lists, st.fixed_dictionaries({}, optional={"profile": profiles})),
    max_size=2,
)
for_sandboxed = st.fixed_dictionaries({"tools": lists})
of_chats = st.fixed_dictionaries(
    {}, optional={"slack": st.fixed_dictionaries({"C1": st.builds(dict, tools=lists)})}
)
tool_sections = st.builds(
    dict.__or__,
    lists,
    st.fixed_dictionaries(
        {"profile": profiles, "registered": st.just(["clock"])},
        optional={
            "byProvider": of_providers,
            "sandbox": for_sandboxed,
            "subagents": for_sandboxed,
            "exec": st.sampled_from([{}, {"ask": "off"}, {"host": "gateway"}]),
            "fs": st.just({}),
            "browser": st.builds(dict, enabled=st.booleans()),
        },
    ),
)
agents_tools = st.builds(
    dict.__or__,
    lists,
    st.fixed_dictionaries(
        {}, optional={"profile": profiles, "byProvider": of_providers, "sandbox": for_sandboxed}
    ),
)
agents = st.fixed_dictionaries(
    {"owner": st.booleans(), "tools": agents_tools},
    optional={
        "sandbox": st.fixed_dictionaries(
            {}, optional={"enabled": st.booleans(), "mode": modes, "workspaceAccess": accesses}
        ),
        "pin": st.builds(dict, depth=st.integers(0, 2), sandboxed=st.booleans()),
        "subagents": st.builds(dict, maxSpawnDepth=st.integers(0, 3)),
    },
)


@st.composite
def configs(draw: st.DrawFn) -> Plain:
    return {
        "tools": draw(tool_sections),
        "agents": {
            "defaults": {"subagents": {"maxSpawnDepth": draw(st.integers(0, 3))}},
            "byId": {"main": draw(agents)},
        },
        "groups": draw(of_chats),
        "plugins": {**CONFIGURED, "keeper": {"groups": draw(of_chats)}},
        "sandboxing": {"mode": draw(modes), "workspaceAccess": draw(accesses)},
    }


identities = st.builds(
    ToolIdentity,
    agent=st.sampled_from(["main", "other"]),
    provider=st.sampled_from([None, "acme"]),
    model=st.sampled_from([None, "small"]),
    depth=st.integers(0, 3),
    sandboxed=st.booleans(),
    plugins=st.sampled_from([{}, MAIL]),
    channel=st.just("slack"),
    peer=st.sampled_from(["C1", "C2"]),
)


def resolved(plain: Plain, who: ToolIdentity) -> ToolSet:
    return resolve(Config.model_validate(plain), who)


def replaced(plain: Plain, path: tuple[str, ...], value: list[str]) -> Plain:
    """Return the configuration with one list replaced."""
    copied = deepcopy(plain)
    below = copied
    for part in path[:-1]:
        below = below.setdefault(part, {})
    below[path[-1]] = value
    return copied


FOR_SANDBOXED = ("tools", "sandbox", "tools")
ANYWHERE = st.sampled_from(
    [
        ("tools",),
        ("agents", "byId", "main", "tools"),
        ("tools", "byProvider", "acme"),
        ("agents", "byId", "main", "tools", "byProvider", "acme/small"),
        FOR_SANDBOXED,
        ("tools", "subagents", "tools"),
        ("groups", "slack", "C1", "tools"),
        ("plugins", "keeper", "groups", "slack", "C1", "tools"),
    ]
)


def written(plain: Plain, path: tuple[str, ...], key: str) -> list[str]:
    below = plain
    for part in path:
        below = below.get(part, {})
    return list(below.get(key, ()))


@given(configs(), identities)
def test_every_registered_tool_is_either_allowed_or_accounted_for(plain: Plain, who: ToolIdentity) -> None:
    found = resolved(plain, who)
    assert found.allowed | found.removed.keys() == universe_of(Config.model_validate(plain), who).tools
    assert not found.allowed & found.removed.keys()
    assert all(gone.reason and gone.source and gone.step for gone in found.removed.values())


@given(configs(), identities)
def test_deny_wins(plain: Plain, who: ToolIdentity) -> None:
    universe = universe_of(Config.model_validate(plain), who)
    texts = written(plain, ("tools",), "deny")
    if who.agent == "main":
        texts += written(plain, ("agents", "byId", "main", "tools"), "deny")
    denied = {tool for text in texts for tool in universe.read(text).tools}
    assert not resolved(plain, who).allowed & denied


@given(configs(), identities, ANYWHERE, entries)
def test_one_more_denial_never_admits_a_tool(
    plain: Plain, who: ToolIdentity, place: tuple[str, ...], entry: str
) -> None:
    denied = written(plain, place, "deny")
    # the first denial for sandboxed agents replaces the built-in ones, as one that denies nothing does
    before = replaced(plain, (*place, "deny"), denied) if place == FOR_SANDBOXED else plain
    stricter = replaced(plain, (*place, "deny"), [*denied, entry])
    assert resolved(stricter, who).allowed <= resolved(before, who).allowed


def set_aside(tools: ToolSet) -> set[str]:
    return {each.path for each in tools.allowlists if each.stripped_allowlist}


@given(configs(), identities, ANYWHERE, st.integers(0, 3))
def test_one_entry_less_in_an_allow_list_never_admits_a_tool_unless_none_is_left(
    plain: Plain, who: ToolIdentity, place: tuple[str, ...], index: int
) -> None:
    entries = written(plain, place, "allow")
    fewer = entries[:index] + entries[index + 1 :]
    less = resolved(replaced(plain, (*place, "allow"), fewer), who)
    before = resolved(plain, who)
    # a list of which only tools of plugins are left counts as none, too
    if fewer and set_aside(less) <= set_aside(before):
        assert less.allowed <= before.allowed


@given(configs(), identities, ANYWHERE, st.randoms(use_true_random=False))
def test_the_order_of_a_list_means_nothing(
    plain: Plain, who: ToolIdentity, place: tuple[str, ...], random: object
) -> None:
    shuffled = plain
    for key in ("allow", "alsoAllow", "deny"):
        values = written(plain, place, key)
        random.shuffle(values)
        if values:  # an empty list says more than none where it replaces a built-in one
            shuffled = replaced(shuffled, (*place, key), values)
    assert resolved(shuffled, who).allowed == resolved(plain, who).allowed


@given(configs(), identities, ANYWHERE)
def test_an_entry_written_twice_means_nothing_more(
    plain: Plain, who: ToolIdentity, place: tuple[str, ...]
) -> None:
    doubled = plain
    for key in ("allow", "alsoAllow", "deny"):
        values = written(plain, place, key)
        if values:
            doubled = replaced(doubled, (*place, key), 2 * values)
    assert resolved(doubled, who).allowed == resolved(plain, who).allowed


def spelled(draw: st.DrawFn, name: str | None, others: list[str]) -> str | None:
    """Give a name as a child may repeat it; a child may add one where its parent said nothing."""
    if name is None:
        return draw(st.sampled_from([None, *others]))
    return draw(st.sampled_from([name, name.upper(), f" {name}", f"{name}\t"]))


@st.composite
def families(draw: st.DrawFn) -> tuple[ToolIdentity, ToolIdentity]:
    """Draw a parent and a child of its: same agent, chat and provider, at the same moment."""
    parent = draw(identities)
    child = replace(
        parent,
        depth=parent.depth + draw(st.integers(1, 2)),
        provider=spelled(draw, parent.provider, ["acme", "other"]),
        model=spelled(draw, parent.model, ["small", "large"]),
        sandboxed=parent.sandboxed or draw(st.booleans()),
        channel=draw(st.sampled_from(["slack", "Slack"])),
    )
    return parent, child


@given(configs(), families())
def test_a_child_never_has_what_its_parent_lacks(
    plain: Plain, family: tuple[ToolIdentity, ToolIdentity]
) -> None:
    parent, child = family
    assert resolved(plain, child).allowed <= resolved(plain, parent).allowed


@given(configs(), identities)
def test_a_plugin_registered_at_run_time_changes_nothing_for_other_tools(
    plain: Plain, who: ToolIdentity
) -> None:
    without = resolved(plain, replace(who, plugins={}))
    later = resolved(plain, replace(who, plugins=MAIL))
    assert later.allowed - set(MAIL["mail"]) == without.allowed


@given(configs(), identities)
def test_a_sandboxed_agent_never_has_more_than_a_free_one(plain: Plain, who: ToolIdentity) -> None:
    free, boxed = replace(who, sandboxed=False), replace(who, sandboxed=True)
    assert resolved(plain, boxed).allowed <= resolved(plain, free).allowed


@given(configs(), identities)
def test_what_an_agent_claims_adds_nothing(plain: Plain, who: ToolIdentity) -> None:
    silent = replace(who, provider=None, model=None, depth=0, sandboxed=False)
    assert resolved(plain, who).allowed <= resolved(plain, silent).allowed


@given(configs(), identities)
def test_resolving_twice_gives_the_same(plain: Plain, who: ToolIdentity) -> None:
    assert resolved(plain, who) == resolved(plain, who)


@given(configs(), identities)
def test_owner_tools_are_for_owners(plain: Plain, who: ToolIdentity) -> None:
    if not (who.agent == "main" and plain["agents"]["byId"]["main"]["owner"]):
        assert not resolved(plain, who).allowed & OWNER_ONLY
