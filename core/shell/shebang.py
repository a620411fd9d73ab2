"""What the kernel starts for a file that begins with `#!`."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from core.model.command import Segment, Word
from core.shell.environment import NAME
from core.shell.names import variants

READ: Final = 256  # bytes of a file in which the kernel looks for it
_MARK: Final = b"#!"
_BLANK: Final = b" \t"
_BLANKS: Final = re.compile(r"[ \t]+")
# Without one of these `env` takes its argument for the name of a program, blanks and all.
_SPLITS: Final = re.compile(r"(?:-[iv]*S|--split-string=)[ \t]*")
_SPLIT_OTHERWISE: Final = re.compile(r"[\\$\"'#\f\v\r]")


def interpreters(segment: Segment, beginning: bytes | None) -> tuple[Segment, ...] | None:
    """Give what a file that begins so is run by, as commands in the file's place; None if that is not known.

    The first is what `#!` names, with its argument; the second, where that is `env`, what it looks for.
    """
    if beginning is not None and not beginning.startswith(_MARK):
        return ()
    named = _named(beginning) if beginning is not None else None
    if named is None:
        return None
    program, argument = named
    if "env" not in variants(program):
        return (_command(segment, program, *([argument] if argument else [])),)
    words = _behind_env(argument)
    return (_command(segment, program), _command(segment, *words)) if words else None


def _named(beginning: bytes) -> tuple[str, str] | None:
    line, newline, _ = beginning[len(_MARK) : READ].partition(b"\n")
    if b"\0" in line or (not newline and len(beginning) >= READ):
        return None
    try:
        program, _, argument = _first(line.strip(_BLANK).decode())
    except UnicodeDecodeError:
        return None
    return (program if "/" in program else f"./{program}", argument) if program else None


def _first(line: str) -> tuple[str, str, str]:
    blank = _BLANKS.search(line)
    return (line[: blank.start()], blank[0], line[blank.end() :]) if blank else (line, "", "")


def _behind_env(argument: str) -> list[str] | None:
    """Give the words that `env` runs; none where its options, or what it sets, may change where it looks."""
    splits = _SPLITS.match(argument)
    if splits is None:
        return None if argument.startswith("-") or "=" in argument or not argument else [argument]
    rest = argument[splits.end() :]
    words = [] if _SPLIT_OTHERWISE.search(rest) else rest.split()
    while words and _assigns(words[0]):
        words.pop(0)
    return words if words and not words[0].startswith("-") and "=" not in words[0] else None


def _assigns(word: str) -> bool:
    name = word.partition("=")[0]
    return "=" in word and name != "PATH" and NAME.fullmatch(name) is not None


def _command(segment: Segment, *words: str) -> Segment:
    given = tuple(Word(word, word) for word in words)
    return replace(segment, words=given, executable=None, builtin=False, wrappers=())
