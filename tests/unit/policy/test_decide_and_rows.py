"""One call against the frozen set, and the rows of `sayso tools --batch`."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import Config
from core.errors import RequestError
from core.model.decision import Effect, Layer
from core.model.principal import Claims
from core.model.session import SessionKey
from core.policy import ToolIdentity, decide, identity_of, resolve, tools_row
from core.policy.catalog import TOOLS

CODING = Config.model_validate({"tools": {"profile": "coding", "deny": ["write"]}})
TOOLSET = resolve(CODING, ToolIdentity("main"))


@pytest.mark.parametrize("name", ["exec", "Bash", " EXEC "])
def test_a_tool_in_the_set_is_allowed_and_the_source_is_named(name: str) -> None:
    decision = decide(TOOLSET, name)
    assert (decision.layer, decision.effect) == (Layer.TOOL_POLICY, Effect.ALLOW)
    assert (decision.rule, decision.source) == ("profile.coding", "tools.profile")


def test_a_denied_tool_names_rule_and_place() -> None:
    decision = decide(TOOLSET, "Write")
    assert decision.effect is Effect.DENY
    assert (decision.rule, decision.source) == ("tool.denied", "tools.deny[0]")
    assert decision.reason == "tools.deny[0] denies write"


@pytest.mark.parametrize("name", ["exce", "", "exec\u200b", "group:fs", "*", "bash -c"])
def test_a_name_that_nobody_registered_is_denied(name: str) -> None:
    decision = decide(TOOLSET, name)
    assert (decision.effect, decision.rule) == (Effect.DENY, "tool.unknown")


def test_the_nearest_name_is_suggested_and_a_long_one_is_cut() -> None:
    assert "nearest is exec" in decide(TOOLSET, "exce").reason
    assert len(decide(TOOLSET, "x" * 1_000_000).reason) < 200
    assert "\u202e" not in decide(TOOLSET, "a\u202eb").reason


def test_a_row_accounts_for_every_tool() -> None:
    row = tools_row(CODING, {"id": "r1", "agent": "main"})
    assert row["id"] == "r1"
    assert set(row["allowed"]) | set(row["denied"]) == TOOLS
    assert row["denied"]["write"]["step"] == "tools.allow"
    assert row["denied"]["write"]["source"] == "tools.deny[0]"
    assert row["warnings"] == []
    assert row["strippedAllowlist"] is False


def test_a_row_brings_plugins() -> None:
    config = Config.model_validate({"tools": {"allow": ["weather"]}})
    row = tools_row(config, {"plugins": {"weather": ["forecast"]}})
    assert row["strippedAllowlist"] is True
    assert "forecast" in row["allowed"]


def test_of_two_depths_the_larger_counts() -> None:
    session = "agent:main:main:subagent:a:subagent:b"
    assert identity_of({"session": session, "depth": 1}).depth == 2
    assert identity_of({"session": session, "depth": 3}).depth == 3


def test_an_identity_carries_the_chat_of_its_session() -> None:
    who = ToolIdentity.of(SessionKey.parse("agent:main:slack:C1"), Claims(provider="acme", sandboxed=True))
    assert (who.channel, who.peer, who.provider, who.sandboxed) == ("slack", "C1", "acme", True)
    assert hash(who) == hash(who)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"agent": 1}, "agent"),
        ({"agent": "Main!"}, "agent"),
        ({"depth": "1"}, "depth"),
        ({"depth": True}, "depth"),
        ({"depth": -1}, "depth"),
        ({"sandboxed": "no"}, "sandboxed"),
        ({"session": "main"}, "session"),
        ({"session": "agent:other:main", "agent": "main"}, "session"),
        ({"plugins": ["x"]}, "plugins"),
        ({"plugins": {"x": "y"}}, "plugins"),
        ({"plugins": {"x": [1]}}, "plugins"),
    ],
)
def test_a_bad_row_names_the_field(row: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as refused:
        tools_row(CODING, row)
    assert refused.value.field == field
