"""The grammar's second opinion: bashlex must find exactly the tokens that the scanner found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any, Final

from core.shell.assemble import SimpleCommand, assemble
from core.shell.plain import plain_tokens
from core.shell.scan import Kind, Refused, Token, scan

# Splits a line into simple commands; raises Refused, and nothing else.
Parse = Callable[[str], tuple[SimpleCommand, ...]]

_Found = tuple[Kind, int, int]
_KINDS: Final[dict[str, Kind]] = {
    "word": Kind.WORD,
    "assignment": Kind.WORD,
    "operator": Kind.OPERATOR,
    "pipe": Kind.OPERATOR,
    "redirect": Kind.REDIRECTION,
}
# What stands in words is the scanner's to judge: the grammar mistakes it, at times without an end.
_NO_EXPANSION: Final = -1
_CONTINUED: Final = "\\\n"
_GROUPS: Final = frozenset(("list", "pipeline", "command"))


def parse(text: str) -> tuple[SimpleCommand, ...]:
    """Split a line into simple commands; raises Refused. The grammar has no bounds of its own on time."""
    plain = parse_plain(text)
    return parse_by_grammar(text) if plain is None else plain


def parse_plain(text: str) -> tuple[SimpleCommand, ...] | None:
    """Split a line that has one reading only, at once; None where the grammar must be asked."""
    tokens = plain_tokens(text)
    return None if tokens is None else assemble(tokens)


def parse_by_grammar(text: str) -> tuple[SimpleCommand, ...]:
    """Split any line, and have the grammar confirm it."""
    tokens = scan(text)
    commands = assemble(tokens)
    _confirm(text, tokens)
    return commands


def _confirm(text: str, tokens: Sequence[Token]) -> None:
    ours = [
        (token.kind, token.start, token.end)
        for token in tokens
        if token.kind is not Kind.OPERATOR or token.texts != ("\n",)
    ]
    theirs = _grammar(_plainer(text, tokens))
    if ours != theirs:
        pairs = zip_longest(ours, theirs)
        at = next((mine[1] if mine else len(text)) for mine, other in pairs if mine != other)
        raise Refused("ambiguous", at, "two readings of this line differ, so it is not judged")


def _plainer(text: str, tokens: Sequence[Token]) -> str:
    """Put a letter for each word that is one brace, and blanks where a line goes on, for the grammar's sake.

    A brace begins or ends a group only as the first word, and there it is refused by now.
    """
    letters = list(text)
    for token in tokens:
        if token.word and token.word.source in {"{", "}"}:
            letters[token.start] = "x"
    for before, behind in pairwise(tokens):
        if _CONTINUED in text[before.end : behind.start]:  # which the scanner took for a blank
            gap = text[before.end : behind.start].replace(_CONTINUED, "  ")
            letters[before.end : behind.start] = gap
    return "".join(letters)


def _grammar(text: str) -> list[_Found]:
    try:
        return list(_found(text))
    except Refused:
        raise
    except Exception as error:  # bashlex raises nearly anything on input that it does not know
        position = getattr(error, "position", 0)
        raise Refused("syntax", position, "the line does not parse as shell grammar") from error


def _found(text: str) -> Iterator[_Found]:
    import bashlex  # noqa: PLC0415 - it works out its tables for 0.2 s, and plain lines do without

    at = 0
    while at < len(text):
        tree = bashlex.parsesingle(text[at:], expansionlimit=_NO_EXPANSION)
        if not isinstance(tree, bashlex.ast.node):  # blanks and comments alone
            return
        yield from ((kind, start + at, end + at) for kind, start, end in _flatten(tree))
        at += tree.pos[1] + len("\n")


def _flatten(node: Any) -> Iterator[_Found]:  # noqa: ANN401 - bashlex is untyped
    if node.kind in _GROUPS:
        for part in node.parts:
            yield from _flatten(part)
        return
    kind = _KINDS.get(node.kind)
    if kind is None:
        raise Refused("syntax", node.pos[0], f"`{node.kind}` is not judged")
    yield kind, node.pos[0], node.pos[1]
