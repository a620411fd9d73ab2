"""What is skipped for plain commands: the answer is the one of the long way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.execsec.hazards import _found, hazards
from tests.shell_world import look

_WORDS = st.sampled_from(
    [
        *(
            "git",
            "status",
            "find",
            "-exec",
            "rg",
            "--pre=x",
            "sort",
            "npm",
            "exec",
            "x",
            "timeout",
            "5",
            "env",
        ),
        *(
            "A=1",
            "sudo",
            "bash",
            "-c",
            "'git status'",
            "'cd /tmp && rg x'",
            "sh",
            "python3",
            "cd",
            "/tmp",
            "nosuch",
        ),
        *(
            "nonesuch",
            "echo",
            "eval",
            "a b",
            "*.py",
            "$X",
            "-n",
            "/srv/run.sh",
            "~/x",
            "PATH=/x",
            "2>&1",
            "''",
        ),
    ]
)
_COMMANDS = st.lists(_WORDS, min_size=1, max_size=5).map(" ".join)


def _alone(line):
    facts = look(line)
    return facts if facts.analysable else None


@given(_COMMANDS)
@settings(max_examples=800, deadline=None)
def test_a_command_alone_is_resolved_as_it_is_before_another_one(line):
    facts = _alone(line)
    followed = look(f"{line}\ntrue")
    if facts is None or facts.segments[0].words[:1] == ():
        return
    assert followed.canonical == f"{facts.canonical}; true"
    *first, last = followed.segments[:-1]
    assert facts.segments == (*first, replace(last, operator=""))


@given(_COMMANDS)
@settings(max_examples=500, deadline=None)
def test_a_command_alone_in_the_background_has_its_operator(line):
    facts, behind = _alone(line), _alone(f"{line} &")
    if facts is None:
        return
    assert behind is not None
    assert behind.canonical == f"{facts.canonical} &"
    assert behind.segments == (*facts.segments[:-1], replace(facts.segments[-1], operator="&"))


@given(_COMMANDS)
@settings(max_examples=800, deadline=None)
def test_the_hazards_of_a_command_are_all_that_the_tables_tell(line):
    for segment in look(line).segments:
        assert hazards(segment) == tuple(_found(segment))
        nowhere = replace(segment, cwd=None)
        assert hazards(nowhere) == tuple(_found(nowhere)) != ()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("git status *.py", "exec.not-literal"),
        ("LD_PRELOAD=x git status", "exec.environment"),
        ("find . -exec rm x", "exec.carrier"),
        ("npm exec x", "exec.package-runner"),
        ("sudo git status", "exec.privilege"),
        ("eval git status", "exec.carrier"),
    ],
)
def test_one_thing_that_is_not_plain_is_a_hazard(line, rule):
    assert hazards(look("git status").segments[0]) == ()
    assert [each.rule for each in hazards(look(line).segments[0])] == [rule]
