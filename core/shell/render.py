"""The canonical form: the line re-assembled from analysed words, each quoted, programs by verified path."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from core.model.command import CommandFacts, Word
from core.shell.builtins import RESERVED

_SAFE: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_SAFE_PATH: Final = re.compile(r"/[\w@%+:,./-]*", re.ASCII)  # as a command it can be nothing else
# What runs a line that is more than one program.
# `-p`: it takes no functions, no options and no BASH_ENV from the environment.
SHELL: Final = "/bin/bash"
_BASH: Final = (SHELL, "--noprofile", "--norc", "-p", "-c")


def quote(value: str) -> str:
    """Quote a literal argument; plain where every character is safe."""
    return value if _SAFE.fullmatch(value) or value == "]" else shlex.quote(value)


def quote_command(value: str) -> str:
    """Quote a command's name, so that it is never an assignment, a reserved word or an option of a shell."""
    if value == "[" or _SAFE_PATH.fullmatch(value):
        return value
    quoted = shlex.quote(value)
    means_more = value in RESERVED or value.isdecimal() or "=" in value or value[:1] in {"-", "+"}
    return f"'{value}'" if means_more and quoted == value else quoted


def word(value: Word) -> str:
    """Render a word: literal ones quoted, others as their validated source."""
    if value.expansions:
        return value.source
    return value.value if _SAFE.fullmatch(value.value) else quote(value.value)


def words(values: Iterable[Word]) -> str:
    """Render words, as the canonical argument string has them."""
    return " ".join(map(word, values))


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
    return _only_program(facts) or (*_BASH, facts.canonical)


def starts_shell(argv: Sequence[str]) -> bool:
    """Tell whether this is our own shell with a line."""
    return tuple(argv[: len(_BASH)]) == _BASH


def _only_program(facts: CommandFacts) -> tuple[str, ...] | None:
    if len(facts.segments) != 1 or not facts.analysable:
        return None
    segment = facts.segments[0]
    plain = not (segment.assignments or segment.redirections or segment.through or segment.operator)
    if segment.executable is not None and segment.literal and plain:
        return (segment.executable.path, *segment.argv[1:])
    return None
