"""The steps of the pipeline one by one, stored roles, owners' tools at execution, warnings told once."""

from __future__ import annotations

import pytest

from core.config import Config
from core.model.decision import Effect
from core.policy import ToolIdentity, refuse_owner_only, resolve
from core.policy.catalog import SUBAGENT_DENY_ALWAYS, SUBAGENT_DENY_LEAF
from core.policy.pipeline import STEPS
from core.policy.scene import Scene
from core.policy.toolset import Admission, Role, Selection, role_of
from core.policy.warnings import ToldWarnings

LISTS = Config.model_validate(
    {
        "tools": {
            "profile": "coding",
            "deny": ["read"],
            "byProvider": {"acme": {"profile": "messaging", "deny": ["sessions_list"]}},
        },
        "agents": {
            "byId": {"main": {"tools": {"deny": ["exec"], "byProvider": {"acme": {"deny": ["process"]}}}}}
        },
        "groups": {"slack": {"C1": {"tools": {"deny": ["image"]}}}},
    }
)
WHO = ToolIdentity("main", provider="acme", channel="slack", peer="C1")


def everything() -> Selection:
    tools = Scene(LISTS, WHO).universe.names.ordered
    return Selection(dict.fromkeys(tools, Admission("registered", "tool.registered", "built-in")), {})


def test_the_order_of_the_steps_can_be_read() -> None:
    assert [step.__name__ for step in STEPS[:7]] == [
        "profile",
        "provider_profile",
        "global_lists",
        "provider_lists",
        "agent_lists",
        "agent_provider_lists",
        "group_lists",
    ]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_step_only_takes_out_says_why_and_changes_nothing_the_second_time(step) -> None:
    scene, before = Scene(LISTS, WHO), everything()
    after = step(scene, before)
    assert after.admitted.keys() <= before.admitted.keys()
    assert after.admitted.keys() | after.removed.keys() == before.admitted.keys()
    assert not after.admitted.keys() & after.removed.keys()
    assert step(scene, after).admitted.keys() == after.admitted.keys()
    assert before == everything()


@pytest.mark.parametrize(
    ("at", "tool", "label"),
    [
        (0, "message", "tools.profile"),
        (1, "write", "tools.byProvider.profile"),
        (2, "read", "tools.allow"),
        (3, "sessions_list", "tools.byProvider.allow"),
        (4, "exec", "agents.<id>.tools.allow"),
        (5, "process", "agents.<id>.tools.byProvider.allow"),
        (6, "image", "group tools.allow"),
    ],
)
def test_each_of_the_seven_steps_takes_out_its_own(at: int, tool: str, label: str) -> None:
    after = STEPS[at](Scene(LISTS, WHO), everything())
    assert after.removed[tool].step == label


def test_the_first_step_that_takes_a_tool_out_is_the_one_that_is_told() -> None:
    assert resolve(LISTS, WHO).removed["exec"].step == "tools.byProvider.profile"


@pytest.mark.parametrize(
    ("depth", "most", "role"),
    [
        (0, 0, Role.ORCHESTRATOR),
        (0, 1, Role.ORCHESTRATOR),
        (1, 1, Role.LEAF),
        (1, 2, Role.SUBAGENT),
        (1, 0, Role.LEAF),
        (3, 2, Role.LEAF),
    ],
)
def test_the_class_of_a_depth(depth: int, most: int, role: Role) -> None:
    assert role_of(depth, most) is role


@pytest.mark.parametrize(
    ("depth", "role", "lost"),
    [
        (0, Role.ORCHESTRATOR, frozenset()),
        (1, Role.SUBAGENT, SUBAGENT_DENY_ALWAYS),
        (2, Role.LEAF, SUBAGENT_DENY_ALWAYS | SUBAGENT_DENY_LEAF),
    ],
)
def test_each_depth_class_loses_its_tools(depth: int, role: Role, lost: frozenset[str]) -> None:
    config = Config.model_validate(
        {
            "tools": {"profile": "coding"},
            "agents": {"byId": {"main": {"owner": True}}, "defaults": {"subagents": {"maxSpawnDepth": 2}}},
        }
    )
    free = resolve(config, ToolIdentity("main"))
    found = resolve(config, ToolIdentity("main", depth=depth))
    assert free.allowed - found.allowed == free.allowed & lost
    assert found.role is role


@pytest.mark.parametrize("tool", ["cron", "gateway", "nodes", "whatsapp_login", " CRON "])
def test_owners_tools_are_refused_to_others_when_they_would_run(tool: str) -> None:
    config = Config.model_validate({"agents": {"byId": {"boss": {"owner": True}}}})
    refused = refuse_owner_only(config, "main", tool)
    assert refused is not None
    assert (refused.effect, refused.rule, refused.source) == (
        Effect.DENY,
        "tool.owner-only",
        "agents.main.owner",
    )
    assert refuse_owner_only(config, "boss", tool) is None


@pytest.mark.parametrize("tool", ["exec", "crons", "message"])
def test_other_tools_are_no_matter_of_ownership(tool: str) -> None:
    assert refuse_owner_only(Config(), "main", tool) is None


def test_a_warning_is_told_once() -> None:
    told = ToldWarnings()
    assert told.fresh(["a", "b", "a"]) == ("a", "b")
    assert told.fresh(["b", "c"]) == ("c",)


def test_what_was_told_longest_ago_is_forgotten_beyond_the_bound() -> None:
    told = ToldWarnings()
    told.fresh(str(number) for number in range(256))
    assert told.fresh(["0"]) == ()
    assert told.fresh(["new"]) == ("new",)
    assert len(told) == 256
    assert told.fresh(["0", "1"]) == ("1",)
