"""Which of its words an interpreter reads as its program: a file, a module, or code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.model.command import Segment
from core.shell.inline_code import evaluates_here, is_flag
from core.shell.names import names
from core.shell.programs import INTERPRETERS, SHELLS
from core.shell.word_list import word_list

PYTHON: Final = word_list("python pypy ipython micropython pydoc pdb")
_FILTERS: Final = word_list("awk gawk mawk nawk original-awk sed gsed dc bc m4 ed red")
_MAKES: Final = word_list("make gmake bmake")
RUNS_OPERAND: Final = (INTERPRETERS | SHELLS) - _FILTERS
# Their first word may be a verb, and is a file only where it looks like one.
_WITH_VERBS: Final = word_list("bun deno tsx swift dart scala kotlin R sage")
_FILE_LIKE: Final = re.compile(r"[./]")
_MODULE: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_VALUED: Final = "mWX"
_LONG_VALUED: Final = frozenset(("--check-hash-based-pycs",))
# Letters that take a value themselves, in one of these programs, are none of a cluster that `f` ends.
_FILE_OPTION: Final = re.compile(
    r"-[^\W\d_FvCIoWeilf]*f(?P<short>.*)|--(?:file|makefile)(?:=(?P<long>.*))?", re.DOTALL
)
_STANDARD_INPUT: Final = frozenset(("-", "/dev/stdin"))


def module(segment: Segment) -> str | None:
    """Give the module of `python -m NAME`, whose file Python looks for where it runs."""
    if not names(segment) & PYTHON:
        return None
    how, given = _python(segment.argv[1:])
    return given if how == "-m" and _MODULE.fullmatch(given) else None


def operands(segment: Segment) -> Iterator[str]:
    """Give the words that may be the program, in order, up to one that can be nothing else.

    There is none where it is code or a module. The word behind an unknown option may be its value.
    """
    found = names(segment)
    if found & PYTHON:
        how, given = _python(segment.argv[1:])
        if how == "file":
            yield given
    elif found & _WITH_VERBS:
        yield from _operands(segment.argv[1:], found, verbs=True)
    elif found & RUNS_OPERAND:
        yield from _operands(segment.argv[1:], found)
    elif found & (_FILTERS | _MAKES):
        yield from _named_by_option(segment.argv[1:])


def may_be_verb(segment: Segment, operand: str) -> bool:
    """Tell whether the word may be none of a file, but what the program is to do."""
    return bool(names(segment) & _WITH_VERBS) and not _FILE_LIKE.search(operand)


def _operands(arguments: tuple[str, ...], found: frozenset[str], *, verbs: bool = False) -> Iterator[str]:
    certain, behind_option, ended = not verbs, False, False
    for argument in arguments:
        if not ended and argument[:1] in {"-", "+"} and argument != "-":
            if evaluates_here(argument, found):
                return
            ended = argument == "--"
            behind_option = not ended and not is_flag(argument, found)
            continue
        certain = certain and not behind_option
        behind_option = False
        yield argument
        if certain:
            return


def _python(arguments: tuple[str, ...]) -> tuple[str, str]:
    """Read Python's options: what the program is (`-c`, `-m`, `file`, or empty), and its text or name."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return ("file", rest[0]) if rest else ("", "")
        if argument[:1] != "-" or argument == "-":
            return "file", argument
        if argument.startswith("--"):
            del rest[: 1 if argument in _LONG_VALUED else 0]
            continue
        letter, value = _first_valued(argument)
        if letter:
            value = value or (rest.pop(0) if rest else "")
        if letter in {"c", "m"}:
            return f"-{letter}", value
    return "", ""


def _first_valued(cluster: str) -> tuple[str, str]:
    """Give the first letter of `-abVALUE` that takes a value, and what of it stands in the same word."""
    for index, letter in enumerate(cluster[1:], 2):
        if letter in _VALUED or letter == "c":
            return letter, cluster[index:]
    return "", ""


def _named_by_option(arguments: tuple[str, ...]) -> Iterator[str]:
    """Give the files that `-f` names as programs."""
    for index, argument in enumerate(arguments):
        given = _FILE_OPTION.fullmatch(argument) if argument[:1] == "-" else None
        if given:
            path = given["short"] or given["long"] or next(iter(arguments[index + 1 :]), "")
            if path not in _STANDARD_INPUT:
                yield path
