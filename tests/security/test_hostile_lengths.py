"""Text made to be long to judge: an answer with a reason, in little time, and never a yes."""

from __future__ import annotations

import time

import pytest

from core.shell.inspect import MAX_LENGTH
from tests.shell_world import judge, look

PATIENCE_S = 8.0  # of this thread; what was found to be endless took minutes

HOSTILE = {
    "nearly 64 KiB of one word": "rg " + "a" * (MAX_LENGTH - 4),
    "64 KiB of one word": "rg " + "a" * (MAX_LENGTH - 3),
    "more than 64 KiB": "rg " + "a" * MAX_LENGTH,
    "a mebibyte": "a" * 1024 * 1024,
    "10,000 operators": "rg x;" * 10_000,
    "10,000 pipes": "rg x|" * 10_000 + "rg",
    "10,000 newlines": "\n" * 10_000 + "rg x > y",
    "1,000 nested quotes": "bash -c " + "'\"" * 1000 + "x" + "\"'" * 1000,
    "1,000 shells in shells": "bash -c " * 1000 + "'rg $(id)'",
    "1,000 substitutions in substitutions": "rg " + "$(" * 1000 + "id" + ")" * 1000,
    "1,000 expansions in expansions": "rg " + "${x:-" * 1000 + "id" + "}" * 1000,
    "10,000 opened braces": "rg " + "{a," * 10_000,
    "10,000 parentheses": "(" * 10_000,
    "4,000 wrappers": "env " * 4000 + "id $X",
    "60 shells": ";".join(["bash -c 'rg x; rg y'"] * 60),
    "our own name over and over, refused": "rg $(" + "sayso " * 10_000,
    "our own name over and over, as code": "python3 -c '" + "sayso " * 10_000 + "'",
    "our own name over and over, as a word": "rg $X '" + "sayso " * 10_000 + "'",
    "paths over and over": "rg $X " + "/a/../b=c:d@e,f " * 3000,
    "globs over and over": "rg " + "/*/?/[a]/{b} " * 3000,
    "letters beyond ASCII, and a control character": "é" * 60_000 + "\x01",
    "awk that prints over and over": "rg $X | awk '" + "print " * 10_000 + "'",
    "awk with pipes over and over": "rg $X | awk '" + "||" * 30_000 + "'",
    "sed with brackets over and over": "rg $X | sed 's/" + "[^a]" * 15_000 + "'",
    "sed with classes over and over": "rg $X | sed 's/" + "[[:a:]" * 10_000 + "'",
    "sed with commands over and over": "rg $X | sed '" + "1,2p;" * 12_000 + "x'",
    "lone surrogates": "rg " + "\ud800" * 30_000,
    "NULs": "rg " + "\0" * 30_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_answered_soon_and_never_allowed(name):
    began = time.thread_time()
    judgement = judge(HOSTILE[name], "/usr/bin/id", deny=["*nothing*", "nothing"])
    took = time.thread_time() - began
    assert str(judgement.decision.effect) in {"ask", "deny"}
    assert judgement.decision.reason
    assert took < PATIENCE_S


@pytest.mark.parametrize("text", ["rg \ud800", "\udcff", "rg '\ud83d' x > y", "sayso lock \udc00"])
def test_half_a_character_is_refused_where_the_operator_wrote_deny_rules_too(text):
    judgement = judge(text, "**", deny=["*x*", "rg"])
    assert str(judgement.decision.effect) == "deny"
    assert [refusal.construct for refusal in look(text).refused] == ["lone-surrogate"]


def test_our_verbs_are_still_found_beside_half_a_character():
    assert judge("sayso lock \udc00").decision.rule == judge("sayso lock").decision.rule


def test_so_many_shells_that_their_lines_would_take_for_ever_are_refused():
    line = ";".join(["bash -c 'rg x'"] * 16)
    assert look(line).analysable
    assert [refusal.construct for refusal in look(f"{line}; bash -c 'rg x'").refused] == ["too-many-shells"]


@pytest.mark.parametrize("command", ["rg {}", ["rg", "{}"]])
@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
def test_length_counts_in_bytes_and_64_kib_of_them_are_too_many(command, letter):
    def found(size):
        text = letter * (size // len(letter.encode()))
        text += "a" * (size - len(text.encode()))
        whole = command.format(text) if isinstance(command, str) else [each.format(text) for each in command]
        return [(each.construct, each.reason) for each in look(whole).refused]

    longest = MAX_LENGTH - 1 - len("rg ") - (len("''") if letter != "a" and isinstance(command, list) else 0)
    assert found(longest) == []
    ((construct, reason),) = found(longest + 1)
    assert construct == "too-long"
    assert "64 KiB (65,536 bytes) long or more" in reason


def test_many_pictures_are_refused_where_no_program_could_be_handed_them():
    judgement = judge(["expr", "length", "😀" * 40_000], "/usr/bin/expr", "expr")
    assert judgement.decision.rule == "exec.too-long"
    assert "at character" not in judgement.decision.reason


def test_a_line_that_grows_by_quoting_beyond_what_the_kernel_takes_is_refused():
    quotes = "rg " + '"' + "'" * 40_000 + '"'
    assert [refusal.construct for refusal in look(quotes).refused] == ["too-long"]
    assert look("rg " + '"' + "'" * 1_000 + '"').analysable
