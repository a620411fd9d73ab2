"""Plain lines are split without the grammar; here the scanner and the grammar are asked all the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.shell.builtins import BUILTINS, RESERVED
from core.shell.parse import _confirm, parse, parse_by_grammar, parse_plain
from core.shell.plain import MAX_PLAIN, plain_tokens
from core.shell.scan import Refused, scan

_PARTS = st.one_of(
    st.sampled_from(
        [
            *sorted(
                {*BUILTINS, *RESERVED, "A=b", "A+=b", "A=", "a.b=c", "in", "{}", "HEAD~3", "a=~", "~", "-"}
            ),
            *("'", '"', "'a b'", '"c d"', '"!"', "'\n'", '"it\'s"', "'\"'", '"\\"', "'\\'", '"$"', "'é'"),
            *(
                "|",
                "||",
                "&",
                "&&",
                ";",
                ";;",
                "\n",
                "|&",
                "&>",
                "2>&1",
                ">&2",
                "1>&2",
                "2>/dev/null",
                ">/dev/null",
            ),
            *("&>/dev/null", "</dev/null", "1>/dev/null", "2>", "3>/dev/null", "12>/dev/null", "1", "2", "3"),
            *(
                "*",
                "?",
                "*.py",
                "[a]",
                "\\;",
                "\\\n",
                "$X",
                "#",
                "a#b",
                "!",
                "(",
                ")",
                "`",
                "é",
                "^",
                "%1",
                ",",
                "@",
            ),
        ]
    ),
    st.text("ab1_./:@%+,^=~{}*?-", min_size=1, max_size=5),
)
_SEPARATORS = st.sampled_from([" ", " ", " ", "", "  ", "\t"])
_LINES = st.lists(st.tuples(_PARTS, _SEPARATORS), min_size=1, max_size=8).map(
    lambda parts: "".join(part + separator for part, separator in parts)
)


@given(_LINES)
@settings(max_examples=3000, deadline=None)
def test_a_plain_line_has_the_tokens_that_the_scanner_finds_and_the_grammar_confirms(line):
    tokens = plain_tokens(line)
    if tokens is None:
        return
    assert tokens == scan(line)
    try:
        commands = parse_plain(line)
    except Refused:
        return
    assert parse_by_grammar(line) == commands


def _read(parsing, line):
    try:
        return parsing(line)
    except Refused as refused:
        return refused.refusal


@given(_LINES)
@settings(max_examples=500, deadline=None)
def test_a_line_gets_the_same_answer_on_either_way(line):
    assert _read(parse, line) == _read(parse_by_grammar, line)


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git commit -m 'Fix the parser' && git push",
        'rg "a b" src/*.py | wc -l',
        "A=1 make -j4 test 2>&1 | tail -20",
        "find . -name '*.py' | xargs -I{} wc -l {}",
        "git diff HEAD~3 --stat; ls\nls >/dev/null &",
        'echo \'é "x" $HOME \\\' "it\'s!"',
    ],
)
def test_everyday_lines_are_plain(line):
    assert parse_plain(line) == parse_by_grammar(line)


@pytest.mark.parametrize(
    "line",
    [
        *(f"echo a{char}b" for char in "'\"\\$`(){}[]#!<>\r\0\v\f\x7f\u00a0é"),
        *(f'echo "a{char}b"' for char in '"\\$`'),
        "echo ~",
        "echo a=~/x",
        "echo a:~/x",
        "echo #",
        "echo a;#b",
        "echo {a,b}",
        "echo 3>/dev/null",
        "echo a>/dev/null",
        "echo 2>/dev/null2",
        "echo 2>/dev/null'x'",
        "echo >/dev/nul?",
        "echo |& cat",
        "echo &>x",
        "echo ;; x",
        "echo x \\\n y",
        "[ -f x ]",
        "echo " + "a" * MAX_PLAIN,
    ],
)
def test_what_may_mean_more_is_put_to_the_grammar(line):
    assert parse_plain(line) is None


def test_reserved_words_are_refused_without_the_grammar():
    for word in RESERVED:
        with pytest.raises(Refused):
            parse(f"{word} a b")


@pytest.mark.parametrize(
    ("line", "scanned"),
    [("a; b", "a"), ("a", "a; b"), ("a 'b c'", "a b c"), ("a b", "a=b"), ("a\nb c", "a\nb")],
)
def test_the_grammar_must_find_what_the_scanner_found_no_more_and_no_less(line, scanned):
    _confirm(line, scan(line))
    with pytest.raises(Refused) as found:
        _confirm(line, scan(scanned))
    assert found.value.refusal.construct == "ambiguous"


def test_what_the_grammar_does_not_know_is_refused():
    with pytest.raises(Refused) as found:
        _confirm("a (b", scan("a b"))
    assert found.value.refusal.construct == "syntax"
