"""The canonical form: the line re-assembled from analysed words, each quoted, programs by verified path."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from core.model.command import CommandFacts, Word
from core.shell.builtins import RESERVED

_SAFE: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_BASH: Final = ("/bin/bash", "--noprofile", "--norc", "-c")


def quote(value: str) -> str:
    """Quote a literal argument; plain where every character is safe."""
    return value if _SAFE.fullmatch(value) or value == "]" else shlex.quote(value)


def quote_command(value: str) -> str:
    """Quote a command's name, so that it is never an assignment or a reserved word."""
    if value == "[":
        return value
    return f"'{value}'" if value in RESERVED or value.isdecimal() else _without_assignment(value)


def _without_assignment(value: str) -> str:
    quoted = shlex.quote(value)
    return f"'{value}'" if "=" in value and quoted == value else quoted


def word(value: Word) -> str:
    """Render a word: literal ones quoted, others as their validated source."""
    return value.source if value.expansions else quote(value.value)


def words(values: Iterable[Word]) -> str:
    """Render words, as the canonical argument string has them."""
    return " ".join([word(value) for value in values])


def command(assignments: Sequence[tuple[str, Word]], body: str, redirections: Sequence[str]) -> str:
    """Put assignments before, and redirections behind, what is already rendered."""
    return " ".join(
        [*(f"{name}={word(value)}" for name, value in assignments), *([body] if body else []), *redirections]
    )


def line(parts: Sequence[tuple[str, str]]) -> str:
    """Join (rendered command, operator) pairs."""
    pieces: list[str] = []
    for text, operator in parts:
        space = "" if operator in {"", ";"} else " "
        pieces.append(f"{text}{space}{operator}")
    return " ".join(pieces)


def run_argv(facts: CommandFacts) -> tuple[str, ...]:
    """Give what a runner executes: the program itself where that is all there is, else bash with the line."""
    if len(facts.segments) != 1 or not facts.analysable:
        return (*_BASH, facts.canonical)
    segment = facts.segments[0]
    plain = not (segment.assignments or segment.redirections or segment.through or segment.operator)
    if segment.executable is not None and segment.literal and plain:
        return (segment.executable.path, *segment.argv[1:])
    return (*_BASH, facts.canonical)
