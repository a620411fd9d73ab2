"""The tables of the specification, written down once more as rows: catalog and table must not drift apart."""

from __future__ import annotations

import pytest

from core.config import Config, ProfileName
from core.policy import ToolIdentity, catalog, normalise, resolve
from core.policy.universe import Universe

OWNER = {"byId": {"main": {"owner": True}}}

GROUPS = {
    "group:fs": "read write edit apply_patch",
    "group:runtime": "exec process",
    "group:web": "web_search web_fetch",
    "group:memory": "memory_search memory_get",
    "group:sessions": (
        "sessions_list sessions_history sessions_send sessions_spawn sessions_yield subagents session_status"
    ),
    "group:ui": "browser canvas",
    "group:messaging": "message",
    "group:automation": "cron gateway",
    "group:nodes": "nodes",
    "group:agents": "agents_list",
    "group:media": "image image_generate tts",
}
PROFILES = {
    "coding": (
        "read write edit apply_patch exec process web_search web_fetch memory_search memory_get "
        "sessions_list sessions_history sessions_send sessions_spawn sessions_yield subagents session_status "
        "cron image image_generate"
    ),
    "messaging": "message sessions_list sessions_history sessions_send session_status",
    "minimal": "session_status",
}
NAMED_ONLY = "browser canvas gateway nodes agents_list tts"
OWNER_ONLY = "whatsapp_login cron gateway nodes"
NO_SUBAGENT = "gateway agents_list whatsapp_login session_status cron memory_search memory_get sessions_send"
NO_LEAF = "subagents sessions_list sessions_history sessions_spawn"
SANDBOX_ALLOW = (
    "exec process read write edit apply_patch image sessions_list sessions_history sessions_send "
    "sessions_spawn sessions_yield subagents session_status"
)
SANDBOX_DENY = "browser canvas nodes cron gateway discord telegram slack"
SPELLINGS = {"bash": "exec", "apply-patch": "apply_patch"}


def names(row: str) -> frozenset[str]:
    return frozenset(row.split())


EVERY_TOOL = frozenset[str]().union(*map(names, GROUPS.values())) | {"whatsapp_login"}


def allowed(config: dict, **identity: object) -> frozenset[str]:
    return resolve(Config.model_validate(config), ToolIdentity("main", **identity)).allowed


@pytest.mark.parametrize(("group", "row"), GROUPS.items())
def test_a_group_has_exactly_the_tools_of_its_row(group: str, row: str) -> None:
    assert catalog.GROUPS[group] == names(row)
    assert Universe.of().read(group).tools == names(row)


def test_there_are_no_other_groups_than_the_rows_and_the_product() -> None:
    assert catalog.GROUPS.keys() - GROUPS.keys() == {"group:openclaw", "group:clawdbot"}


def test_there_are_no_other_tools_than_those_of_the_rows() -> None:
    assert catalog.TOOLS == EVERY_TOOL


@pytest.mark.parametrize(("profile", "row"), PROFILES.items())
def test_an_owner_gets_exactly_the_row_of_the_profile(profile: str, row: str) -> None:
    assert allowed({"tools": {"profile": profile}, "agents": OWNER}) == names(row)


def test_full_is_every_tool_but_the_six_that_must_be_named() -> None:
    assert allowed({"tools": {"profile": "full"}, "agents": OWNER}) == EVERY_TOOL - names(NAMED_ONLY)
    assert {profile.value for profile in ProfileName} == {"full", *PROFILES}


def test_no_profile_holds_one_of_the_six() -> None:
    assert names(NAMED_ONLY) == catalog.NAMED_ONLY
    for row in catalog.PROFILES.values():
        assert not row & names(NAMED_ONLY)


@pytest.mark.parametrize("tool", sorted(names(OWNER_ONLY)))
def test_owner_only_tools_are_for_owners(tool: str) -> None:
    wanted = {"tools": {"allow": [tool], "alsoAllow": [tool]}}
    assert allowed(wanted) == frozenset()
    assert allowed({**wanted, "agents": OWNER}) == {tool}


def test_no_other_tool_is_owner_only() -> None:
    assert names(OWNER_ONLY) == catalog.OWNER_ONLY


def test_subagents_lose_exactly_their_rows() -> None:
    config = {
        "tools": {"alsoAllow": ["group:automation", "group:nodes", "group:agents"]},
        "agents": {**OWNER, "defaults": {"subagents": {"maxSpawnDepth": 2}}},
    }
    assert names(NO_SUBAGENT) <= allowed(config)
    assert allowed(config) - allowed(config, depth=1) == names(NO_SUBAGENT)
    assert allowed(config, depth=1) - allowed(config, depth=2) == names(NO_LEAF)


def test_an_agent_declared_sandboxed_gets_exactly_the_row() -> None:
    assert allowed({"agents": OWNER}, sandboxed=True) == names(SANDBOX_ALLOW)
    assert names(SANDBOX_DENY) <= catalog.SANDBOX_DENY


@pytest.mark.parametrize(("written", "meant"), SPELLINGS.items())
def test_other_spellings_count_in_calls_and_in_lists(written: str, meant: str) -> None:
    assert normalise(written) == meant
    assert meant not in allowed({"tools": {"deny": [written]}})
