"""Names and list entries are brought to one spelling before anything is compared."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.policy import normalise
from core.policy.catalog import GROUPS, TOOLS
from core.policy.patterns import Names, compiled
from core.policy.universe import Kind, Universe


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("bash", "exec"),
        (" Bash ", "exec"),
        ("apply-patch", "apply_patch"),
        ("Read", "read"),
        ("WebFetch", "web_fetch"),
        ("WebSearch", "web_search"),
        ("MultiEdit", "edit"),
        ("EXEC", "exec"),
    ],
)
def test_other_spellings_of_a_tool_mean_the_tool(written: str, meant: str) -> None:
    assert normalise(written) == meant


@pytest.mark.parametrize("written", ["exec\u200b", "\uff45xec", "exec ute", "ba sh", ""])
def test_look_alikes_stay_unknown(written: str) -> None:
    assert normalise(written) not in TOOLS


@given(st.text())
def test_normalising_twice_changes_nothing_for_known_names(text: str) -> None:
    once = normalise(text)
    assert once not in TOOLS or normalise(once) == once


@pytest.mark.parametrize(
    ("pattern", "matches", "misses"),
    [
        ("web_*", {"web_search", "web_fetch"}, {"browser"}),
        ("rea?", {"read"}, {"exec"}),
        ("*", {"exec", "browser"}, set()),
        ("e[x]ec", set(), {"exec"}),
        ("exe", set(), {"exec"}),
        ("*.*", set(), {"exec"}),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, matches: set[str], misses: set[str]) -> None:
    found = compiled(pattern).among(Names.of(TOOLS))
    assert matches <= found
    assert not misses & found


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    started = time.perf_counter()
    assert compiled("*" * 2000 + "z").among(Names.of(["a" * 60 + "z" + "a"])) == frozenset()
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize("text", ["*_" * 6 + "x", "*_" * 60 + "x", "*_?" * 30 + "*", "?*" * 60 + "x"])
def test_a_pattern_of_many_parts_takes_no_time(text: str) -> None:
    started = time.perf_counter()
    compiled(text).matches("_" * 125)
    assert time.perf_counter() - started < 0.05


@given(st.text("ab*?\n", max_size=8), st.text("ab\n", max_size=8))
def test_a_pattern_means_what_trying_all_ways_means(pattern: str, name: str) -> None:
    def meets(pattern: str, name: str) -> bool:
        if not pattern:
            return not name
        if pattern[0] == "*":
            return meets(pattern[1:], name) or (bool(name) and meets(pattern, name[1:]))
        return bool(name) and pattern[0] in ("?", name[0]) and meets(pattern[1:], name[1:])

    assert compiled(pattern).matches(name) is meets(pattern, name)


def test_groups_expand_and_an_unknown_group_is_nothing() -> None:
    universe = Universe()
    assert universe.read("group:fs").tools == GROUPS["group:fs"]
    assert universe.read("Group:FS").tools == GROUPS["group:fs"]
    assert universe.read("group:clawdbot") == universe.read("group:clawdbot")
    assert universe.read("group:clawdbot").tools == universe.read("group:openclaw").tools
    assert universe.read("group:nothing").kind is Kind.UNKNOWN
    assert universe.read("group:*").tools == frozenset()


def test_a_plugin_is_named_by_its_id_and_by_the_group_of_all_plugins() -> None:
    universe = Universe.of({"Weather": ["forecast", "Radar"], "other": ["thing"]})
    assert universe.read("weather").tools == {"forecast", "radar"}
    assert universe.read("group:plugins").tools == {"forecast", "radar", "thing"}


def test_a_plugin_called_like_an_mcp_server_is_meant_too() -> None:
    universe = Universe.of({"mcp__github": ["gh_admin", "mcp__github__list"], "o": ["mcp__github__other"]})
    assert universe.read("mcp__github").tools == {"gh_admin", "mcp__github__list", "mcp__github__other"}
    assert universe.read("o").tools == {"mcp__github__other"}


def test_a_plugin_cannot_take_the_name_of_a_built_in_tool() -> None:
    universe = Universe.of({"evil": ["Bash", "own"], "exec": ["own2"]})
    assert universe.plugin_tools == {"own", "own2"}
    assert universe.shadowing == ("exec",)
    assert universe.read("exec").tools == {"exec"}
    assert universe.read("evil").tools == {"own"}


@given(
    st.text("ab*?_", min_size=1, max_size=8),
    st.lists(st.text("ab_", min_size=1, max_size=6), max_size=8),
)
def test_sorting_names_out_first_changes_no_answer(pattern: str, names: list[str]) -> None:
    plain = compiled(pattern)
    assert plain.among(Names.of(names)) == {name for name in names if plain.matches(name)}
