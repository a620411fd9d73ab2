"""What must hold for every configuration and identity."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.config import AgentSettings, AgentTools, Config, ProfileName, ToolLists, ToolSettings
from core.config.agents import Agents
from core.policy import ToolIdentity, resolve
from core.policy.catalog import GROUPS, OWNER_ONLY, TOOLS
from core.policy.universe import Universe

PLUGINS = {"weather": ("forecast", "radar")}
REGISTERED = sorted(TOOLS | {"forecast", "radar"})

entries = st.one_of(
    st.sampled_from(REGISTERED),
    st.sampled_from(sorted(GROUPS)),
    st.sampled_from(
        ["*", "web_*", "session?_*", "weather", "group:plugins", "unknown", "Bash", "apply-patch"]
    ),
)
lists = st.lists(entries, max_size=4).map(tuple)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    tools = ToolSettings(
        profile=draw(st.sampled_from(ProfileName)),
        allow=draw(lists),
        also_allow=draw(lists),
        deny=draw(lists),
    )
    own = AgentTools(
        allow=draw(lists),
        also_allow=draw(lists),
        deny=draw(lists),
        sandbox={"tools": ToolLists(allow=draw(lists), also_allow=draw(lists))},
    )
    agent = AgentSettings(owner=draw(st.booleans()), tools=own)
    defaults = {"subagents": {"max_spawn_depth": draw(st.integers(0, 3))}}
    return Config(tools=tools, agents=Agents(defaults=defaults, by_id={"main": agent}))


identities = st.builds(
    ToolIdentity,
    agent=st.sampled_from(["main", "other"]),
    depth=st.integers(0, 3),
    sandboxed=st.booleans(),
    plugins=st.sampled_from([{}, PLUGINS]),
)


def with_tools(config: Config, **changes: object) -> Config:
    return config.model_copy(update={"tools": config.tools.model_copy(update=changes)})


@given(configs(), identities)
def test_every_registered_tool_is_either_allowed_or_accounted_for(config: Config, who: ToolIdentity) -> None:
    found = resolve(config, who)
    assert found.allowed | found.removed.keys() == Universe.of(who.plugins).tools
    assert not found.allowed & found.removed.keys()
    assert all(gone.reason and gone.source and gone.step for gone in found.removed.values())


@given(configs(), identities)
def test_deny_wins(config: Config, who: ToolIdentity) -> None:
    universe = Universe.of(who.plugins)
    denied = {tool for entry in config.tools.deny for tool in universe.read(entry).tools}
    assert not resolve(config, who).allowed & denied


@given(configs(), identities, entries)
def test_one_more_denial_never_admits_a_tool(config: Config, who: ToolIdentity, entry: str) -> None:
    stricter = with_tools(config, deny=(*config.tools.deny, entry))
    assert resolve(stricter, who).allowed <= resolve(config, who).allowed


@given(configs(), identities, st.randoms(use_true_random=False))
def test_the_order_of_a_list_means_nothing(config: Config, who: ToolIdentity, random: object) -> None:
    shuffled = {}
    for key in ("allow", "also_allow", "deny"):
        values = list(getattr(config.tools, key))
        random.shuffle(values)
        shuffled[key] = tuple(values)
    assert resolve(with_tools(config, **shuffled), who).allowed == resolve(config, who).allowed


@given(configs(), identities)
def test_a_child_never_has_what_its_parent_lacks(config: Config, who: ToolIdentity) -> None:
    child = replace(who, depth=who.depth + 1)
    assert resolve(config, child).allowed <= resolve(config, who).allowed


@given(configs(), identities)
def test_a_sandboxed_agent_never_has_more_than_a_free_one(config: Config, who: ToolIdentity) -> None:
    free, boxed = replace(who, sandboxed=False), replace(who, sandboxed=True)
    assert resolve(config, boxed).allowed <= resolve(config, free).allowed


@given(configs(), identities, st.text(max_size=12), st.text(max_size=12))
def test_what_an_agent_claims_adds_nothing(
    config: Config, who: ToolIdentity, provider: str, model: str
) -> None:
    claimed = replace(who, provider=provider, model=model)
    assert resolve(config, claimed).allowed <= resolve(config, who).allowed


@given(configs(), identities)
def test_resolving_twice_gives_the_same(config: Config, who: ToolIdentity) -> None:
    assert resolve(config, who) == resolve(config, who)


@given(configs(), identities)
def test_owner_tools_are_for_owners(config: Config, who: ToolIdentity) -> None:
    if not config.agent(who.agent).owner:
        assert not resolve(config, who).allowed & OWNER_ONLY
