"""Unified diffs as git writes them, to the files they touch.

Every line is accounted for: hunks by the counts in their headers, all else by exact headers. Names stand
behind `a/` and `b/`: without them programs that strip a directory change other files than those that do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.arguments.patched import Action, PatchedFile, added_bytes, unclear
from core.arguments.unclear import UnclearArgumentError

_DIFF = re.compile(r"diff --git (\S+) (\S+)")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@(?: .*)?")
_INDEX = re.compile(r"index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: 100(?:644|755))?")
_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) 100(?:644|755)")
_SIMILARITY = re.compile(r"(?:dis)?similarity index \d{1,3}%")
_RENAME = re.compile(r"rename (from|to) (\S+)")
_NOTHING = "/dev/null"
_NO_NEWLINE = "\\ No newline at end of file"


def read_unified_diff(lines: Sequence[str]) -> tuple[PatchedFile, ...]:
    """Return the files of a diff; raises UnclearArgumentError."""
    reader = _Reader(lines)
    files: list[PatchedFile] = []
    while reader.more:
        files += _section(reader)
    return tuple(files)


class _Reader:
    """The lines, and how far they are read."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.at = 0

    @property
    def more(self) -> bool:
        return self.at < len(self._lines)

    @property
    def line(self) -> str:
        return self._lines[self.at] if self.more else ""

    @property
    def following(self) -> str:
        return self._lines[self.at + 1] if self.at + 1 < len(self._lines) else ""

    def step(self) -> str:
        line = self.line
        self.at += 1
        return line

    def refused(self, why: str) -> UnclearArgumentError:
        return unclear(self.at + 1, why)


class _Header:
    """What the lines before the hunks say about one file."""

    def __init__(self) -> None:
        self.git: tuple[str, str] | None = None
        self.renamed: dict[str, str] = {}
        self.modes: set[str] = set()
        self.names: tuple[str | None, str | None] | None = None
        self.added = 0


def _section(reader: _Reader) -> tuple[PatchedFile, ...]:
    start = reader.at + 1
    header = _Header()
    if reader.line.startswith("diff --git "):
        _git_header(reader, header)
    if reader.line.startswith("--- "):
        header.names = _names(reader)
        header.added = _hunks(reader)
    elif header.git is None:
        raise reader.refused("is no header of a patch that is judged here")
    return _files(header, start)


def _git_header(reader: _Reader, header: _Header) -> None:
    found = _DIFF.fullmatch(reader.line)
    if found is None:
        raise reader.refused("names no two files plainly")
    header.git = (_plain(reader, found[1], "a/"), _plain(reader, found[2], "b/"))
    reader.step()
    while reader.more and not reader.line.startswith(("--- ", "diff --git ")):
        _extended(reader, header)
        reader.step()


def _extended(reader: _Reader, header: _Header) -> None:
    line = reader.line
    if rename := _RENAME.fullmatch(line):
        once = rename[1] not in header.renamed
        header.renamed[rename[1]] = _plain(reader, rename[2], "")
    elif mode := _MODE.fullmatch(line):
        once = mode[1] not in header.modes
        header.modes.add(mode[1])
    else:
        once = bool(_INDEX.fullmatch(line) or _SIMILARITY.fullmatch(line))
    if not once:
        raise reader.refused("is not understood: links, copies and binary changes are not judged")


def _names(reader: _Reader) -> tuple[str | None, str | None]:
    old = _side(reader, "--- ", "a/")
    new = _side(reader, "+++ ", "b/")
    return old, new


def _side(reader: _Reader, mark: str, prefix: str) -> str | None:
    if not reader.line.startswith(mark):
        raise reader.refused(f"does not begin with `{mark}`, which must follow here")
    name = reader.line.removeprefix(mark)
    path = None if name == _NOTHING else _plain(reader, name, prefix)
    reader.step()
    return path


def _plain(reader: _Reader, name: str, prefix: str) -> str:
    """Take the prefix off a name that all programs read alike."""
    path = name.removeprefix(prefix)
    odd = not name.startswith(prefix) or re.search(r"[\s\"'`\\]", path)
    parts = path.split("/")
    if odd or {"", ".", ".."} & set(parts) or path.startswith("~"):
        wanted = f" behind {prefix}" if prefix else ""
        raise reader.refused(
            f"does not name a file plainly{wanted}: no quotes, blanks, backslashes, `.` or `..`"
        )
    return path


def _hunks(reader: _Reader) -> int:
    """Read the hunks of a file and count the bytes that they add."""
    added = 0
    if not reader.line.startswith("@@ "):
        raise reader.refused("is not the beginning of a hunk, which must follow here")
    while reader.line.startswith("@@ "):
        found = _HUNK.fullmatch(reader.line)
        if found is None:
            raise reader.refused("is no header of a hunk")
        reader.step()
        added += _body(reader, *(1 if count is None else int(count) for count in found.groups()))
    return added


def _body(reader: _Reader, old: int, new: int) -> int:
    added = 0
    while old > 0 or new > 0:
        if reader.line.startswith("--- ") and reader.following.startswith("+++ "):
            raise reader.refused("is counted as text but reads like the header of a file")
        kind = reader.line[:1] or " "
        if not reader.more or kind not in " -+":
            raise reader.refused("does not belong to a hunk, and the one above is shorter than it says")
        old -= kind in " -"
        new -= kind in " +"
        added += added_bytes(reader.line)
        reader.step()
        _skip_newline_note(reader)
    if old < 0 or new < 0:
        raise reader.refused("comes too late: the hunk above is longer than it says")
    return added


def _skip_newline_note(reader: _Reader) -> None:
    if reader.line == _NO_NEWLINE:
        reader.step()


def _files(header: _Header, start: int) -> tuple[PatchedFile, ...]:
    old, new = _both(header, start)
    if old is None and new is not None:
        return (PatchedFile(new, Action.ADD, header.added),)
    if new is None and old is not None:
        return (PatchedFile(old, Action.DELETE),)
    if old is None or new is None:
        raise unclear(start, "begins a change of no file")
    if old == new and not header.renamed:
        return (PatchedFile(old, Action.UPDATE, header.added),)
    if header.renamed != {"from": old, "to": new} or old == new:
        raise unclear(start, "begins a change whose headers name different files")
    return PatchedFile(old, Action.MOVE_FROM), PatchedFile(new, Action.MOVE_TO, header.added)


def _both(header: _Header, start: int) -> tuple[str | None, str | None]:
    """Return the file before and after, None where there is none; all headers must tell the same."""
    if header.git is None:
        return header.names or (None, None)
    old, new = header.git
    told = (
        None if "new file mode" in header.modes else old,
        None if "deleted file mode" in header.modes else new,
    )
    if header.names is not None and header.names != told:
        raise unclear(start, "begins a change whose headers name different files")
    if (None in told and old != new) or (header.names is None and not (header.renamed or header.modes)):
        raise unclear(start, "begins a change whose headers do not tell what happens")
    return told
