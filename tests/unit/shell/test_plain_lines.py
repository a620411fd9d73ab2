"""Plain lines are split without the grammar; here it is asked all the same."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.shell.builtins import BUILTINS, RESERVED
from core.shell.parse import _PLAIN, _confirm, parse
from core.shell.scan import Refused, scan

_WORDS = st.one_of(
    st.sampled_from(sorted({*BUILTINS, *RESERVED, "coproc", "A=b", "A+=b", "1", "-", "%1", ",", "2", "in"})),
    st.text(string.ascii_letters + string.digits + "_./:@%+,=-", min_size=1, max_size=6),
)
_BLANKS = st.sampled_from([" ", " ", "   "])
_LINES = st.lists(st.tuples(_WORDS, _BLANKS), min_size=1, max_size=6).map(
    lambda parts: "".join(word + blank for word, blank in parts).strip()
)


@given(_LINES)
@settings(max_examples=1500, deadline=None)
def test_the_grammar_agrees_with_every_plain_line_that_is_accepted(line):
    if not _PLAIN.fullmatch(line):
        return
    try:
        commands = parse(line)
    except Refused:
        return
    _confirm(line, scan(line))
    assert [word.value for command in commands for word in command.words] == line.split()


@pytest.mark.parametrize(
    "line",
    [
        *(f"echo a{char}b" for char in "'\"\\$`(){}[]*?~!#&|;<>\n\t^\r\0\v\f\x7f\u00a0é"),
        " echo a",
        "echo a ",
        "echo a\n",
        "A=b",
        "A=b make",
        "A+=b make",
        "",
        "ls | wc",
    ],
)
def test_what_may_mean_more_is_put_to_the_grammar(line):
    assert not _PLAIN.fullmatch(line)


def test_reserved_words_are_refused_without_the_grammar():
    for word in RESERVED:
        with pytest.raises(Refused):
            parse(f"{word} a b")
