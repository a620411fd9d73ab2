"""Tells which files are still read while they run: a shell reads its script piece by piece.

What else runs scripts (Python, Node, Ruby, Perl) reads them whole before it begins, so that they may be
edited while they run. Who reads a file is told by its `#!` where that counts, and by the programs of the run.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from posixpath import basename
from typing import Final

from core.model.plan import BoundCommand

BEGINNING: Final = 256  # the longest `#!` that the kernel reads
_ELF: Final = b"\x7fELF"
_SHELL: Final = re.compile(
    r"r?(?:a|ba|c|da|k|lk|mk|ok|pdk|po|tc|ya|z)?sh(?:-?\d[\w.+-]*|[-.]static|\.distrib)?"
)
_READS_WHOLE: Final = re.compile(r"(?:python|pypy|node|nodejs|ruby|perl|php)[\d.]*")
_NOT_PLAIN: Final = re.compile(
    r"[|`$<(]"
)  # there, which program is given which file is not told by their order


@dataclass(frozen=True, slots=True)
class Readers:
    """What may read the files of a run: `executed` are its programs, `shell` whether one reads operands."""

    executed: frozenset[str] = frozenset()
    shell: bool = True

    @classmethod
    def of(cls, bound: BoundCommand) -> Readers:
        """Look at what a run begins with."""
        executed = [path for path in bound.begins_with if path in {each.path for each in bound.executables}]
        last = basename(executed[-1]) if executed else ""
        python = _READS_WHOLE.fullmatch(last) and not _NOT_PLAIN.search(bound.canonical)
        return cls(frozenset(executed), not python and any(map(_is_shell, bound.begins_with)))

    def read_on(self, path: str, beginning: bytes) -> bool:
        """Tell whether a file that begins so may be read as a script while it runs."""
        if beginning.startswith(_ELF):
            return False
        named = _interpreter(beginning)
        if any(map(_is_shell, named)):
            return True
        return not named if path in self.executed else self.shell


def _interpreter(beginning: bytes) -> list[str]:
    """Give the words of its `#!` line; `env -Sbash` has bash in one word with the option."""
    if not beginning.startswith(b"#!"):
        return []
    words = os.fsdecode(beginning[2:].split(b"\n", 1)[0]).split()
    return [word.removeprefix("-S") for word in words]


def _is_shell(path: str) -> bool:
    real = os.path.realpath(path) if path.startswith("/") else path
    names = basename(path), basename(real)
    # Busybox is many programs, so that only what it is called by tells which it is.
    return names[0] == "busybox" or any(map(_SHELL.fullmatch, names))
