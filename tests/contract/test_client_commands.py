"""Commands in the shapes in which coding agents call their shells, and what rides along with them."""

from __future__ import annotations

import pytest

from core.model.call import ToolCall
from core.model.decision import Effect
from tests.core_system import MAIN

CONFIG = {"tools": {"exec": {"host": "gateway", "security": "allowlist", "ask": "on-miss"}}}


def examined(make_system, tool, args, cwd=None):
    system = make_system(CONFIG)
    case = system.judge.examine(ToolCall(tool, MAIN, args=args, cwd=cwd))
    return case, system.judge.verdict(case)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Bash", {"command": "cat notes", "description": "look", "timeout": 120_000}),
        ("shell", {"command": ["cat", "notes"], "timeout_ms": 1000}),
        ("local_shell", {"command": ["cat", "notes"]}),
        ("container.exec", {"command": ["cat", "notes"], "workdir": None}),
        ("exec_command", {"cmd": "cat notes", "yield_time_ms": 1000, "max_output_tokens": 500}),
        ("shell_command", {"command": "cat notes"}),
        ("exec", {"argv": ["cat", "notes"]}),
    ],
)
def test_a_command_is_read_in_the_shape_of_each_client(make_system, tool, args):
    case, verdict = examined(make_system, tool, args)
    assert case.facts.canonical.endswith("/cat notes")
    assert verdict.effect is Effect.ASK


@pytest.mark.parametrize(
    ("name", "where", "cwd"), [("workdir", "{}", None), ("cwd", "{}", None), ("workdir", "in", "{}")]
)
def test_the_directory_of_the_command_is_the_one_that_counts(make_system, tmp_path, name, where, cwd):
    (tmp_path / "in").mkdir()
    where, cwd = where.format(tmp_path), cwd and cwd.format(tmp_path)
    case, verdict = examined(make_system, "shell_command", {"command": "cat notes", name: where}, cwd)
    assert case.bound.cwd == str(tmp_path / where)
    assert verdict.effect is Effect.ASK


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"command": []},
        {"command": ["cat", 7]},
        {"command": [["cat"]]},
        {"command": {"line": "cat"}},
        {"command": None},
        {"argv": "cat notes"},
        {"command": "cat a", "cmd": "cat b"},
        {"command": ["cat", "a"], "argv": ["cat", "a"]},
        {"cmd": "cat a", "argv": None},
        {"cmd": "cat a", "workdir": "/", "cwd": "/"},
        {"cmd": "cat a", "workdir": "in"},
        {"cmd": "cat a", "workdir": ""},
        {"cmd": "cat a", "workdir": 7},
        {"cmd": "cat a", "workdir": ["/"]},
        {"cmd": "cat a", "tty": True},
        {"cmd": "cat a", "env": {"PATH": "/x"}},
        {"command": "cat a", "with_escalated_permissions": True},
        {"action": {"type": "exec", "command": ["cat", "a"]}},
    ],
)
def test_near_misses_are_refused(make_system, args):
    case, verdict = examined(make_system, "shell", args)
    assert verdict.effect is Effect.DENY
    assert verdict.decision.rule == "exec.no-command"
    assert case.facts is None


def test_a_directory_that_is_none_is_refused(make_system, tmp_path):
    _, verdict = examined(make_system, "shell", {"command": ["ls"], "workdir": str(tmp_path / "no")})
    assert verdict.decision.rule == "exec.cwd"
