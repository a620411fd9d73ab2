"""What coding agents call their tools, and the tools of MCP servers."""

from __future__ import annotations

import pytest

from core.config import Config
from core.model.decision import Effect
from core.policy import ToolIdentity, decide, normalise, resolve
from core.policy.catalog import TOOLS
from core.policy.names import ALIASES, CLIENT_ALIASES, mcp_server, tool_fault
from core.policy.universe import Kind, Universe

GITHUB = {"github": ("mcp__github__list_issues", "mcp__github__exec"), "other": ("mcp__gitlab__list_issues",)}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Bash", "exec"),
        ("BashOutput", "process"),
        ("KillShell", "process"),
        ("Read", "read"),
        ("Glob", "read"),
        ("Grep", "read"),
        ("LS", "read"),
        ("Write", "write"),
        ("Edit", "edit"),
        ("MultiEdit", "edit"),
        ("NotebookEdit", "edit"),
        ("WebFetch", "web_fetch"),
        ("WebSearch", "web_search"),
        ("Task", "sessions_spawn"),
        ("Agent", "sessions_spawn"),
        ("shell", "exec"),
        ("local_shell", "exec"),
        ("container.exec", "exec"),
        ("exec_command", "exec"),
        ("write_stdin", "exec"),
        ("apply_patch", "apply_patch"),
        ("view_image", "read"),
    ],
)
def test_a_clients_name_means_the_tool(written: str, meant: str) -> None:
    assert normalise(written) == meant
    tools = resolve(Config.model_validate({"tools": {"deny": [meant]}}), ToolIdentity("main"))
    assert decide(tools, written).rule == "tool.denied"
    named = resolve(Config.model_validate({"tools": {"deny": [written]}}), ToolIdentity("main"))
    assert meant not in named.allowed


@pytest.mark.parametrize("name", ["PowerShell", "TodoWrite", "ExitPlanMode", "update_plan"])
def test_what_has_no_equal_is_unknown_until_it_is_registered(name: str) -> None:
    who = ToolIdentity("main")
    assert decide(resolve(Config(), who), name).rule == "tool.unknown"
    registered = Config.model_validate({"tools": {"registered": [name]}})
    assert decide(resolve(registered, who), name).effect is Effect.ALLOW


def test_clients_do_not_contradict_each_other_and_mean_built_in_tools() -> None:
    for aliases in CLIENT_ALIASES.values():
        assert aliases.items() <= ALIASES.items()
    assert set(ALIASES.values()) <= TOOLS
    assert not ALIASES.keys() & TOOLS


@pytest.mark.parametrize("name", ["mcp__x__exec", "mcp__x__Bash", "MCP__X__read", "mcp__exec__exec"])
def test_an_mcp_tool_is_never_a_built_in_one(name: str) -> None:
    assert normalise(name) == name.casefold()
    assert normalise(name) not in TOOLS
    assert decide(resolve(Config(), ToolIdentity("main")), name).rule == "tool.unknown"


def test_denying_exec_does_not_touch_an_mcp_tool_of_that_name_nor_the_other_way_round() -> None:
    def allowed(*deny: str) -> frozenset[str]:
        config = Config.model_validate({"tools": {"deny": deny}})
        return resolve(config, ToolIdentity("main", plugins=GITHUB)).allowed

    assert "mcp__github__exec" in allowed("exec")
    assert "exec" in allowed("mcp__github__exec")
    assert "mcp__github__exec" not in allowed("mcp__github__exec")


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("mcp__github__*", Kind.PATTERN),
        ("mcp__github", Kind.GROUP),
        ("github", Kind.GROUP),
        ("MCP__GitHub", Kind.GROUP),
    ],
)
def test_a_server_is_named_by_pattern_by_its_prefix_and_by_its_plugin(entry: str, kind: Kind) -> None:
    read = Universe.of(GITHUB).read(entry)
    assert (read.kind, read.tools) == (kind, set(GITHUB["github"]))


@pytest.mark.parametrize("entry", ["mcp__git", "mcp__", "gitlab", "mcp__gitlab__list"])
def test_a_near_miss_of_a_server_names_nothing(entry: str) -> None:
    assert Universe.of(GITHUB).read(entry).tools == frozenset()


@pytest.mark.parametrize("name", ["mcp__x", "mcp____tool", "mcp__x__", "xmcp__a__b", "exec"])
def test_what_is_no_mcp_name_has_no_server(name: str) -> None:
    assert mcp_server(name) is None


@pytest.mark.parametrize(
    "name", ["Bash", "exec", "LS", "group:fs", "a b", "", "x" * 200, "e\u0445ec", "-x", "*"]
)
def test_names_that_cannot_be_registered(name: str) -> None:
    assert tool_fault(name) is not None


@pytest.mark.parametrize("name", ["forecast", "mcp__github__create-issue", "files.read", "TodoWrite"])
def test_names_that_can_be_registered(name: str) -> None:
    assert tool_fault(name) is None
