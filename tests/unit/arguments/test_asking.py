"""`tools.ask`: which calls are put to a person, and what judging all arguments of a call comes to."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.arguments.ask import asked_by_tool
from core.arguments.judge import judge_arguments
from core.model.call import ToolCall
from core.model.decision import Effect, strictest
from core.model.session import SessionKey


class NoNames:
    """A NameResolver that knows no host."""

    def addresses(self, host: str) -> tuple[str, ...]:
        assert host
        return ()


@pytest.mark.parametrize(
    ("pattern", "tool", "asked"),
    [
        ("message", "message", True),
        ("message", "Message ", True),
        ("message", "messages", False),
        ("mess*", "message", True),
        ("*", "anything_new", True),
        ("mcp__files__*", "mcp__files__read", True),
        ("mcp__files__*", "mcp__other__read", False),
        ("group:fs", "apply-patch", True),
        ("group:fs", "web_fetch", False),
        ("Write", "write", True),
        ("bash", "exec", True),
        ("notes", "note_add", True),
        ("notes", "note_del", False),
        ("group:plugins", "note_add", True),
        ("group:plugins", "read", False),
    ],
)
def test_a_pattern_asks_for_the_tools_it_names(yard, pattern, tool, asked):
    config = {"tools": {"ask": {"tools": ["nodes", pattern]}}, "plugins": {"notes": {"tools": ["note_add"]}}}
    decision = asked_by_tool(tool, yard.around(config))
    assert (decision is not None) is asked
    if decision:
        assert (decision.effect, decision.rule, decision.source) == (
            Effect.ASK,
            "tool.ask",
            "tools.ask.tools[1]",
        )
        assert pattern in decision.reason


def judge(yard: Any, tool: str, args: dict[str, Any], tools: dict[str, Any]) -> Any:
    call = ToolCall(tool, SessionKey.main("main"), args=args)
    return judge_arguments(call, yard.around({"tools": tools}), FilesystemResolver(), NoNames())


def test_all_that_concerns_a_call_is_put_together(yard):
    rules = {"ask": {"tools": ["write"], "paths": ["**/x"]}, "write": {"allow": ["./**"]}}
    judgement = judge(yard, "Write", {"file_path": "x"}, rules)
    assert [each.rule for each in judgement.decisions] == ["tool.ask", "tool.path-allowed", "tool.ask-path"]
    assert strictest(judgement.decisions).effect is Effect.ASK
    assert {each.kind for each in judgement.constraints} == {"real-path", "max-size-bytes"}


def test_no_question_softens_a_denial(yard):
    judgement = judge(
        yard, "write", {"path": "/etc/x"}, {"ask": {"tools": ["*"]}, "write": {"deny": ["/etc"]}}
    )
    assert strictest(judgement.decisions).rule == "tool.path-denied"


def test_web_tools_are_judged_by_their_own_rules(yard):
    judgement = judge(yard, "web_fetch", {"url": "http://127.0.0.1/"}, {"read": {"deny": ["**"]}})
    assert strictest(judgement.decisions).effect is Effect.DENY
    assert "path" not in strictest(judgement.decisions).rule


def test_a_call_that_no_rule_concerns_gets_no_decision(yard):
    judgement = judge(yard, "sessions_list", {"query": "/etc/shadow"}, {"read": {"deny": ["**"]}})
    assert (judgement.decisions, judgement.constraints) == ((), ())
