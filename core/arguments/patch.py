"""Which files a patch touches. Strict: what is not wholly understood is refused, never skipped.

Two forms are read: the envelope (`*** Begin Patch` … `*** End Patch`) and unified diffs as git writes
them, with names behind `a/` and `b/`. A line that another reader could take for a header is refused as well:
else the files that are judged would not be the files that are changed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from core.arguments.patched import Action, PatchedFile, added_bytes, unclear
from core.arguments.unclear import UnclearArgumentError
from core.arguments.unified_diff import read_unified_diff

_MOST_FILES = 500
_BEGIN = "*** Begin Patch"
_HIDDEN_HEADER = re.compile(
    r"\s+\*{3}\s*(?:begin|end|add|update|delete|remove|move|rename|copy|environment)\b", re.IGNORECASE
)
_OTHER_LINE_ENDS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def read_patch(text: str) -> tuple[PatchedFile, ...]:
    """Return every file that a patch touches; raises UnclearArgumentError for all that is not understood."""
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        _refuse_disguised(line, number)
    _refuse_second_form(lines)
    files = _envelope(lines) if lines[0] == _BEGIN else read_unified_diff(lines)
    if len(files) > _MOST_FILES:
        raise UnclearArgumentError(f"the patch touches more than {_MOST_FILES} files; send it in parts")
    _refuse_repeated(files)
    return files


def _refuse_disguised(line: str, number: int) -> None:
    if "\0" in line or _OTHER_LINE_ENDS.search(line):
        raise unclear(number, "holds a NUL or a line end other than \\n")
    if _HIDDEN_HEADER.match(line):
        raise unclear(number, "begins with blanks and then reads like a header")


def _refuse_second_form(lines: list[str]) -> None:
    """Refuse a body in which a reader of unified diffs would find a header of its own."""
    if lines[0] != _BEGIN:
        return
    for number, (line, following) in enumerate(pairwise(lines), 1):
        if line.startswith("--- ") and following.startswith("+++ "):
            raise unclear(number, "reads like the header of another kind of patch")


def _refuse_repeated(files: Iterable[PatchedFile]) -> None:
    seen: set[str] = set()
    for file in files:
        name = posixpath.normpath(file.path)
        if name in seen:
            raise UnclearArgumentError(f"the patch names {file.path!a} twice, so it is not judged")
        seen.add(name)


_NAMES = {
    "*** Add File: ": Action.ADD,
    "*** Update File: ": Action.UPDATE,
    "*** Delete File: ": Action.DELETE,
    "*** Move to: ": Action.MOVE_TO,
}
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"


def _envelope(lines: list[str]) -> tuple[PatchedFile, ...]:
    """Read the lines of an envelope; each is a header, the body of the file above it, or refused."""
    if lines[-1] != _END:
        raise unclear(len(lines), f"is not `{_END}`, with which such a patch ends")
    reader = _EnvelopeReader()
    for number, line in enumerate(lines[1:-1], 2):
        reader.take(line, number)
    return reader.finished(len(lines))


class _EnvelopeReader:
    def __init__(self) -> None:
        self._files: list[PatchedFile] = []
        self._action: Action | None = None
        self._body = 0

    def take(self, line: str, number: int) -> None:
        """Account for one line."""
        header = next((header for header in _NAMES if line.startswith(header)), None)
        if header is not None:
            self._open(_NAMES[header], _name(line.removeprefix(header), number), number)
        elif _is_body(line, self._action):
            self._body += 1
            self._files[-1] = replace(self._files[-1], brings=self._files[-1].brings + added_bytes(line))
        else:
            raise unclear(number, "is neither a header nor what may stand below the one before it")

    def finished(self, number: int) -> tuple[PatchedFile, ...]:
        """Return the files."""
        self._close(number)
        if not self._files:
            raise UnclearArgumentError("the patch touches no file")
        return tuple(self._files)

    def _open(self, action: Action, name: str, number: int) -> None:
        if action is not Action.MOVE_TO:
            self._close(number)
        elif self._action is not Action.UPDATE or self._body:
            raise unclear(number, "moves a file but does not follow an update's header")
        else:
            self._files[-1] = PatchedFile(self._files[-1].path, Action.MOVE_FROM)
        self._files.append(PatchedFile(name, action))
        self._action, self._body = action, 0

    def _close(self, number: int) -> None:
        if self._action is Action.UPDATE and not self._body:
            raise unclear(number, "ends an update that changes nothing")


def _is_body(line: str, action: Action | None) -> bool:
    if action is Action.ADD:
        return line.startswith("+")
    if action not in {Action.UPDATE, Action.MOVE_TO}:
        return False
    return line in {"", "@@", _END_OF_FILE} or line.startswith(("@@ ", " ", "+", "-"))


def _name(name: str, number: int) -> str:
    if not name or name != name.strip() or name[0] in "\"'`~" or name.endswith("/") or "\t" in name:
        raise unclear(
            number, "does not name a file plainly: no quotes, ~, blanks around it or slash behind it"
        )
    return name
