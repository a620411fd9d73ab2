"""Braces and exclamation marks in words: literal where bash takes them as they are, and only there."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.command import Expansion
from core.shell.parse import parse
from tests.shell_world import effect, look

AS_THEY_ARE = [
    *("{", "}", "{}", "{a}", "{a", "a}", "a{b", "{a}{b}", "{{}}", "}{", "{ {", "} }", "{ }", "a { b } c"),
    *(
        "HEAD@{1}",
        "stash@{0}",
        "@{u}..",
        "@{u}..HEAD",
        "HEAD^{commit}",
        "HEAD@{1}..HEAD@{2}",
        "..@{u}",
        "^{}",
    ),
    *(
        "{{.State}}",
        "{{.ID}},{{.Names}}",
        "--format={{.ID}}",
        "-I{}",
        '{"a":1}',
        "http://x/{id}",
        "x{y}z,{w}",
    ),
    *("'*.{js,ts}'", '"X: {}"', "'{print $1, $2}'", "\\{a,b}", "{a\\,b}", "{a','b}", "{a,b\\}", "{'x, y'}"),
    *(
        "!",
        "a!",
        "!a",
        "!!",
        '"a!"',
        "! -f x",
        "{},{}",
        "-d {}",
        "{a,{b}",
        "{a,b{c}",
        "a,b}",
        ",{a}",
    ),
]
EXPANDED = [
    *("{a,b}", "x{a,b}y", "{,}", "{a,}", "file{,}", "{1..3}", "{a..c}", "{3..1..2}", "{-1..-3}", "{01..03}"),
    *(
        "{a}{b,c}",
        "{{a,b}}",
        "x{},b}",
        "{a},b}",
        '{"a":1,"b":2}',
        "{a,'b c'}",
        '{a,"}"}',
        "}{a,b}{",
        "{a,b},{",
    ),
    *("{-exec,id,';'}", "'x'{a,b}", "{$X,b}", "{*,b}", "@{a,b}", "{a,}b,}", "\\{{a,b}"),
]


def bash_makes_of(words: str) -> list[str]:
    """Ask bash what words it makes of these, with nothing in the directory or the environment to expand."""
    ran = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-f", "-c", f"printf '%s\\0' {words}"],
        capture_output=True,
        env={},
        check=True,
    )
    return ran.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("words", AS_THEY_ARE)
def test_what_bash_takes_as_it_is_is_literal_and_rendered_quoted(words: str) -> None:
    facts = look(f"rg {words}")
    assert facts.refused == ()
    assert facts.segments[0].literal
    assert list(facts.segments[0].argv[1:]) == bash_makes_of(words)
    again = look(facts.canonical)
    assert (again.canonical, again.segments[0].argv[1:]) == (facts.canonical, facts.segments[0].argv[1:])
    assert effect(f"rg {words}", "/usr/bin/rg") == "allow"


@pytest.mark.parametrize("words", EXPANDED)
def test_what_bash_makes_other_words_of_is_not_literal_and_is_asked_about(words: str) -> None:
    facts = look(f"rg {words}")
    assert facts.refused == ()
    assert Expansion.BRACE in set().union(*(word.expansions for word in facts.segments[0].words))
    assert effect(f"rg {words}", "/usr/bin/rg") == "ask"
    assert words in facts.canonical


@pytest.mark.parametrize(
    ("line", "construct"),
    [
        ("{ ls; }", "group"),
        ("ls; } x", "group"),
        ("! ls", "negation"),
        ("ls; !", "negation"),
        ("!ls", "history-expansion"),
        ("{ls,-l} x", "dynamic-command"),
        ("A=1 { ls; }", "group"),
    ],
)
def test_as_the_first_word_they_are_refused_by_name(line: str, construct: str) -> None:
    assert [refusal.construct for refusal in look(line).refused] == [construct]


_WORDS = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "{",
            "}",
            ",",
            "..",
            ".",
            "a",
            "b",
            "1",
            "3",
            "-",
            "'",
            '"',
            "\\",
            "''",
            '","',
            "'}'",
            "{}",
            "!",
        ]
    ),
    min_size=1,
    max_size=9,
).map("".join)


@given(_WORDS)
@settings(max_examples=500, deadline=None)
def test_no_word_that_bash_would_expand_is_taken_for_literal(word: str) -> None:
    line = f"rg {word}"
    facts = look(line, parse=parse)
    if facts.analysable and facts.segments[0].literal:
        assert list(facts.segments[0].argv[1:]) == bash_makes_of(word)


@pytest.mark.parametrize("word", ["{" * 30_000, "{" + "," * 30_000, ",}" * 15_000, "{a,b}" * 6_000])
def test_long_words_of_braces_are_read_in_no_time(word: str) -> None:
    assert look(f"rg {word}").analysable
