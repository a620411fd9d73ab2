"""Lines that `python -m tests.fuzz` and its like found: each once broke what the analysis promises."""

from __future__ import annotations

import time

import pytest

from core.execsec.hazards import hazards
from core.shell.parse import parse_by_grammar, parse_plain
from tests.shell_world import World, look


@pytest.mark.parametrize(
    "line", ["bash -c A=1", "bash -c 'A=1 && ls'; ls", "env B=2 sh -c 'A=*'", "nice bash -c A="]
)
def test_an_assignment_alone_in_a_shell_raises_nothing(line: str) -> None:
    facts = look(line)
    assert facts.analysable
    assert all(hazards(segment) is not None for segment in facts.segments)


@pytest.mark.parametrize("line", ["sh -c '' x", "bash -c ' ' x y", "sh -c '\t' '' && ls"])
def test_an_empty_script_with_operands_raises_nothing(line: str) -> None:
    facts = look(line)
    assert facts.analysable
    assert facts.segments[0].through == ()


@pytest.mark.parametrize("name", ["-c", "--rcfile", "+x", "-"])
def test_a_name_like_an_option_stays_a_name_in_what_is_rebuilt(name: str) -> None:
    nowhere = World(missing={name})
    facts = look(f"sh -c '$0 \"$1\"' {name} x", world=nowhere)
    again = look(facts.canonical, world=nowhere)
    assert [segment.argv for segment in facts.segments] == [(name, "x")]
    assert [segment.argv for segment in again.segments] == [(name, "x")]
    assert again.canonical == facts.canonical


def test_what_a_builtin_does_in_a_shell_of_its_own_leaves_the_directory_known() -> None:
    assert [segment.cwd for segment in look("bash -c 'shift'; rg x").segments] == ["/srv", "/srv"]
    assert [segment.cwd for segment in look("shift; rg x").segments] == ["/srv", None]


@pytest.mark.parametrize(
    "line", ["a '~'b", "a 'x`y'", "a b'~'", "a '$('", "a } }", "a { b", "a 'b~'~'c'", "a \"'\"~'"]
)
def test_the_grammar_reads_what_bash_reads_in_no_time(line: str) -> None:
    began = time.perf_counter()
    try:
        judged = look(f"{line} $X")
    finally:
        assert time.perf_counter() - began < 2
    assert judged.refused == () or judged.refused[0].construct == "unbalanced-quote"
    plain = parse_plain(line)
    assert plain is None or parse_by_grammar(line) == plain


def test_a_brace_that_closes_more_than_it_should_still_expands() -> None:
    assert not look("rg x{},b}").segments[0].literal
