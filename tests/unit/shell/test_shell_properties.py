"""Properties over generated lines: nothing raises, and the canonical form is a fixed point."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.parsers.pool import ParserPool
from core.shell.parse import Parse
from core.shell.word_list import word_list
from tests.shell_world import look

_PIECES = st.sampled_from(
    [
        *sorted(
            word_list(
                """
            a b rg -x = / : ' " \\ $ ${ } { ( ) [ ] * ? ~ ! # & && | || ; ;; < > >> 2>&1 >&2 >/dev/null $X
            "$X" ${X} $( ` cd if then fi bash -c env timeout 'a' "b" {} {a,b} $'x' é \u202e \0 %
            """
            )
        ),
        *("\u00a0", " ", "  ", "\n", "\t", "\\\n", " | ", " && ", "'a b'", '"c d"'),
    ]
)
_SOUP = st.lists(_PIECES, max_size=14).map("".join)
_ANY = st.text(st.characters(codec=None), max_size=60)


@pytest.fixture(scope="module")
def parser() -> Iterator[Parse]:
    """Parse as the daemon does, in processes that are killed: some of these lines never end otherwise."""
    with ParserPool() as pool:
        pool.start()
        yield pool.parse


@given(st.one_of(_SOUP, _ANY))
@settings(max_examples=600, deadline=None)
def test_inspect_never_raises_and_its_canonical_form_is_a_fixed_point(parser: Parse, line: str) -> None:
    facts = look(line, parse=parser)
    assert facts.analysable is not bool(facts.refused)
    if facts.analysable:
        again = look(facts.canonical, parse=parser)
        assert again.refused == ()
        assert again.canonical == facts.canonical
        assert [segment.argv[1:] for segment in again.segments] == [s.argv[1:] for s in facts.segments]


@given(st.lists(_ANY, max_size=5))
@settings(max_examples=200, deadline=None)
def test_inspect_never_raises_for_an_argv_and_keeps_every_word(argv: list[str]) -> None:
    facts = look(argv)
    if facts.analysable and not facts.segments[0].through:
        assert facts.segments[0].argv == tuple(argv)
