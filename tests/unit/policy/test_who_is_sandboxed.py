"""The lists for sandboxed agents count for everyone whose commands are sandboxed, and only for those."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import Config
from core.policy import ToolIdentity, ToolSet, resolve
from core.policy.catalog import CODING, OWNER_ONLY, SANDBOX_ALLOW
from core.policy.sandboxing import sandboxing_of

WRITTEN = {"sandbox": {"tools": {"deny": ["web_search"]}}}


def tools(sandboxing: dict[str, Any], agent: dict[str, Any], depth: int = 0, **more: Any) -> ToolSet:
    config = {"tools": {**WRITTEN, **more}, "sandboxing": sandboxing, "agents": {"byId": {"main": agent}}}
    return resolve(Config.model_validate(config), ToolIdentity("main", depth=depth))


@pytest.mark.parametrize(
    ("sandboxing", "agent", "depth"),
    [
        ({}, {}, 0),
        ({"mode": "all"}, {}, 0),
        ({"mode": "non-main"}, {}, 1),
        ({"mode": "off"}, {"sandbox": {"mode": "all"}}, 0),
        ({"mode": "off"}, {"pin": {"sandboxed": True}}, 0),
        ({"mode": "non-main"}, {"pin": {"depth": 1}}, 0),
    ],
)
def test_written_lists_count_where_commands_are_sandboxed(
    sandboxing: dict[str, Any], agent: dict[str, Any], depth: int
) -> None:
    assert tools(sandboxing, agent, depth).removed["web_search"].source == "tools.sandbox.tools.deny[0]"


@pytest.mark.parametrize(
    ("sandboxing", "agent", "more"),
    [
        ({"mode": "off"}, {}, {}),
        ({"mode": "non-main"}, {}, {}),
        ({"mode": "all"}, {"sandbox": {"enabled": False}}, {}),
        ({"mode": "all"}, {"sandbox": {"mode": "non-main"}}, {}),
        ({"mode": "all"}, {"exec": {"host": "gateway"}}, {}),
        ({"mode": "all"}, {}, {"exec": {"host": "gateway"}}),
    ],
)
def test_they_do_not_count_elsewhere(
    sandboxing: dict[str, Any], agent: dict[str, Any], more: dict[str, Any]
) -> None:
    assert "web_search" in tools(sandboxing, agent, **more).allowed


@pytest.mark.parametrize(
    ("agent", "depth"),
    [
        ({"sandbox": {"enabled": True}}, 0),
        ({"sandbox": {"mode": "all"}}, 0),
        ({"sandbox": {"mode": "all"}, "exec": {"host": "gateway"}}, 0),
        ({"pin": {"sandboxed": True}}, 0),
    ],
)
def test_the_built_in_lists_count_where_the_agent_is_declared_sandboxed(
    agent: dict[str, Any], depth: int
) -> None:
    found = tools({}, {**agent, "owner": True}, depth)
    assert found.allowed == SANDBOX_ALLOW
    gone = found.removed["memory_get"]
    assert (gone.step, gone.source, gone.scope) == ("sandbox", "built-in", "default")
    assert gone.path == "agents.main.sandbox.alsoAllow"


def test_the_general_mode_alone_does_not_take_the_profile_away() -> None:
    found = tools({"mode": "all"}, {}, profile="coding")
    assert found.allowed == CODING - OWNER_ONLY - {"web_search"}


def test_an_allow_list_that_was_written_counts_for_commands_in_a_sandbox_too() -> None:
    lists = {"sandbox": {"tools": {"allow": ["read", "exec"], "alsoAllow": ["web_fetch"]}}}
    assert tools({}, {}, **lists).allowed == {"read", "exec", "apply_patch", "web_fetch"}


def test_each_source_is_told_apart() -> None:
    own = {"sandbox": {"mode": "all"}, "tools": {"sandbox": {"tools": {"deny": ["read"]}}}}
    removed = tools({}, own).removed
    assert {tool: removed[tool].scope for tool in ("read", "web_search", "memory_get")} == {
        "read": "agent",
        "web_search": "global",
        "memory_get": "default",
    }
    assert removed["read"].to_json()["path"] == "agents.main.tools.sandbox.tools.deny[0]"


@pytest.mark.parametrize("claimed", [True, False])
def test_a_claim_counts_and_is_named(claimed: bool) -> None:  # noqa: FBT001 - a case of the table
    config = Config.model_validate({"sandboxing": {"mode": "off"}})
    found = sandboxing_of(config, "main", 0, claimed=claimed)
    assert (found.commands, found.agent) == (claimed, claimed)
    assert found.source == ("claimed" if claimed else "sandboxing.mode")


def test_a_workspace_of_the_sandboxes_own_confines_file_tools() -> None:
    assert tools({"workspaceAccess": "none"}, {}).confined_by == "sandboxing.workspaceAccess"
    own = tools({}, {"sandbox": {"workspaceAccess": "none"}})
    assert own.confined_by == "agents.main.sandbox.workspaceAccess"
    assert "write" in own.allowed
    assert tools({}, {}, fs={"workspaceOnly": True}).confined_by == "tools.fs.workspaceOnly"
    assert tools({"workspaceAccess": "ro"}, {}).confined_by is None
