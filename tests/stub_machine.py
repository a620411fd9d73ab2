"""A directory to run lines in, and programs that note how they were called; a real bash runs the lines."""

from __future__ import annotations

import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.model.command import CommandFacts, Segment
from core.shell.inspect import inspect
from core.shell.parse import Parse, parse

STUBS = ("one", "two", "three")
BASH = ("/bin/bash", "--noprofile", "--norc", "-c")
_STUB = """#!/bin/bash
printf '%s\\0' "${{0##*/}}" "$#" "$PWD" "$A" "$B" "$@" >> {log}/$$
"""
_FIXED = ("name", "count", "cwd", "A", "B")


class Machine:
    """Stubs first on the PATH; `account` is who runs the lines, where that is not ourselves."""

    def __init__(self, root: Path, *, names: Sequence[str] = STUBS, account: str | None = None) -> None:
        self.bin, self.cwd, self._log = root / "bin", root / "cwd", root / "log"
        self._as: dict[str, Any] = {"user": account, "extra_groups": ()} if account else {}
        self.bin.mkdir()
        (self.cwd / "sub" / "deeper").mkdir(parents=True)
        self.path = (str(self.bin), "/usr/bin", "/bin")
        self._log.mkdir()
        self._log.chmod(0o777)  # a file for each process: bash writes a row in pieces where it holds newlines
        for name in names:
            stub = self.bin / name
            stub.write_text(_STUB.format(log=shlex.quote(str(self._log))))
            stub.chmod(0o755)

    def inspect(self, line: str, parse: Parse = parse) -> CommandFacts:
        command = CommandText(line=line)
        return inspect(command, cwd=str(self.cwd), path=self.path, resolver=FilesystemResolver(), parse=parse)

    def run(self, argv: Sequence[str]) -> Counter[tuple[Any, ...]]:
        """Run; give a row (name, cwd, A, B, arguments) for every stub that ran, in any order."""
        for note in self._log.iterdir():
            note.unlink()
        env = {"PATH": ":".join(self.path), "LC_ALL": "C.UTF-8", "HOME": str(self.cwd)}
        subprocess.run(
            argv,
            cwd=self.cwd,
            env=env,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            **self._as,
        )
        notes = (note.read_bytes().decode("utf-8", "replace") for note in self._log.iterdir())
        return Counter(row for note in notes for row in _rows(note.split("\0")))


def judged_row(segment: Segment) -> tuple[Any, ...]:
    """Give the row that a segment must leave, if it runs."""
    variables = {"A": "", "B": ""} | {name: value.value for name, value in segment.assignments}
    return (segment.argv[0], segment.cwd, variables["A"], variables["B"], segment.argv[1:])


def _rows(pieces: list[str]) -> Iterator[tuple[Any, ...]]:
    while len(pieces) > 1:
        name, count, *noted = pieces[: len(_FIXED)]
        end = len(_FIXED) + int(count)
        yield (name, *noted, tuple(pieces[len(_FIXED) : end]))
        pieces = pieces[end:]
