"""The grammar's second opinion: bashlex must find exactly the tokens that the scanner found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import bashlex

from core.shell.assemble import SimpleCommand, assemble
from core.shell.scan import Kind, Refused, Token, scan

_Found = tuple[Kind, int, int]
_KINDS: Final[dict[str, Kind]] = {
    "word": Kind.WORD,
    "assignment": Kind.WORD,
    "operator": Kind.OPERATOR,
    "pipe": Kind.OPERATOR,
    "redirect": Kind.REDIRECTION,
}
# Nothing in it means anything to a shell but the blanks, so there is one reading and no other to compare.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+,-]+(?: +[A-Za-z0-9_./:@%+,=-]+)*")
_GROUPS: Final = frozenset(("list", "pipeline", "command"))


def parse(text: str) -> tuple[SimpleCommand, ...]:
    """Split a line into simple commands; raises Refused, and nothing else."""
    tokens = scan(text)
    commands = assemble(tokens)
    if not _PLAIN.fullmatch(text):
        _confirm(text, tokens)
    return commands


def _confirm(text: str, tokens: Sequence[Token]) -> None:
    ours = [
        (token.kind, token.start, token.end)
        for token in tokens
        if token.kind is not Kind.OPERATOR or token.texts != ("\n",)
    ]
    for mine, theirs in zip(ours, _grammar(text), strict=False):
        if mine != theirs:
            raise Refused("ambiguous", mine[1], "two readings of this line differ, so it is not judged")


def _grammar(text: str) -> list[_Found]:
    try:
        return [found for tree in bashlex.parse(text) for found in _flatten(tree)]
    except Refused:
        raise
    except Exception as error:  # bashlex raises nearly anything on input that it does not know
        position = getattr(error, "position", 0)
        raise Refused("syntax", position, "the line does not parse as shell grammar") from error


def _flatten(node: Any) -> Iterator[_Found]:  # noqa: ANN401 - bashlex is untyped
    if node.kind in _GROUPS:
        for part in node.parts:
            yield from _flatten(part)
        return
    kind = _KINDS.get(node.kind)
    if kind is None:
        raise Refused("syntax", node.pos[0], f"`{node.kind}` is not judged")
    yield kind, node.pos[0], node.pos[1]
