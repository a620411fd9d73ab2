"""What `sh -c` is given to run, where the whole of it stands in the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename
from typing import Final

from msgspec import Struct

from core.model.command import Word
from core.shell.builtins import BUILTINS
from core.shell.render import quote

_ONLY_BASH: Final = ("|&",)  # others know no such sign; what they make of `&>` is rebuilt in signs all know
_COMMAND_OPTIONS: Final = frozenset(("-c", "-lc", "-cl"))
# `$0 "$1"` and its like: a command that is wholly among the operands.
_BLANKS: Final = re.compile(r"[ \t]+")
_PROGRAM: Final = frozenset(("$0", '"$0"', "${0}", '"${0}"'))
_PARAMETER: Final = re.compile(
    r'(?P<quote>"?)\$(?:(?P<digit>[0-9])|\{(?P<braced>[0-9])\})(?P=quote)', re.ASCII
)
_ALL: Final = frozenset(('"$@"', '"${@}"'))
# An unquoted parameter is split and globbed: only what neither changes is the same word behind it.
_UNCHANGED: Final = re.compile(r"[A-Za-z0-9_./:@%+,=-]+")


class ShellScript(Struct, frozen=True):
    """What a shell runs: a `text` to be parsed, or the `words` of one command that are known already."""

    text: str = ""
    words: tuple[Word, ...] = ()


def shell_script(words: Sequence[Word]) -> ShellScript | None:
    """Read `sh -c LITERAL` or `sh -lc LITERAL`; operands only where LITERAL says what becomes of them."""
    rest = _behind_option([word.value for word in words])
    if rest and not _knows(words[0].value, rest[0]):
        return None
    if not rest or not all(word.literal for word in words) or rest[0][:1] in {"-", "+"}:
        return None
    script, operands = rest[0], rest[1:]
    if not operands:
        return ShellScript(text=script)
    command = _positional(script, operands)
    return ShellScript(words=tuple(Word(value, quote(value)) for value in command)) if command else None


def _knows(shell: str, script: str) -> bool:
    """Tell whether a shell reads a script as bash does, whose grammar judges it; `sh` may be any other."""
    return basename(shell) == "bash" or not any(sign in script for sign in _ONLY_BASH)


def _behind_option(words: Sequence[str]) -> Sequence[str]:
    if words[1:2] and words[1] in _COMMAND_OPTIONS:
        return words[2:]
    return words[3:] if list(words[1:3]) == ["-l", "-c"] else ()


def _positional(script: str, operands: Sequence[str]) -> list[str] | None:
    """Put the operands where the script names them; None for a script that does anything else."""
    replaced, *pieces = _BLANKS.split(script.strip(" \t"))
    if replaces := replaced == "exec":
        replaced, *pieces = pieces or [""]
    if replaced not in _PROGRAM:
        return None
    values: list[str] = []
    for piece in (replaced, *pieces):
        put = _values(piece, operands)
        if put is None:
            return None
        values += put
    return values if values[0] and not (replaces and values[0] in BUILTINS) else None


def _values(piece: str, operands: Sequence[str]) -> list[str] | None:
    if piece in _ALL:
        return list(operands[1:])
    parameter = _PARAMETER.fullmatch(piece)
    if parameter is None:
        return None
    index = int(parameter["digit"] or parameter["braced"])
    value = operands[index] if index < len(operands) else ""
    if parameter["quote"]:
        return [value]
    return [value] if _UNCHANGED.fullmatch(value) else None
