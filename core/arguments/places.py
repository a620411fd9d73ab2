"""A path of a call, made absolute and looked at; whatever two readers could take differently is refused."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

from core.arguments.surroundings import Surroundings
from core.arguments.unclear import UnclearArgumentError
from core.display import elide, safe
from core.model.command import RealPath
from core.shell.characters import forbidden_character

_MAX_BYTES = 4096
_MAX_PART_BYTES = 255
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|file:|data:", re.IGNORECASE)
# These lead to whatever the process that opens them has open, so they are another file for each of us.
_OF_THE_READER = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/.*)?|/dev/(?:fd(?:/.*)?|stdin|stdout|stderr)")
_SHOWN = 120


Follow = Callable[[str], RealPath | None]


@dataclass(frozen=True, slots=True)
class Place:
    """A path as written, where it leads, and all names by which a rule that denies must know it."""

    written: str
    real: RealPath
    names: tuple[str, ...]


def shown(text: str) -> str:
    """Make a path fit for a reason: every character visible, the middle of a long one left out."""
    return elide(safe(text), head=_SHOWN, tail=_SHOWN).text


def locate(written: str, around: Surroundings, follow: Follow) -> Place:
    """Find out where a path leads; raises UnclearArgumentError where that cannot be told."""
    check_readable(written)
    full = posixpath.join(around.cwd, _expanded(written, around.home))
    _check_lengths(full, written)
    lexical = _normalised(full)
    real = _followed(full, written, follow)
    if ".." in full.split("/") and _followed(lexical, written, follow).path != real.path:
        raise UnclearArgumentError(
            f"{shown(written)} passes `..` behind a link, so programs differ about what it means; "
            f"write {shown(real.path)}"
        )
    names = (real.path, lexical, _in_real_directory(lexical, real.path, written, follow))
    if any(_OF_THE_READER.fullmatch(name) for name in names):
        raise UnclearArgumentError(f"{shown(written)} is another file for every process that opens it")
    return Place(written, real, tuple(dict.fromkeys(names)))


def check_readable(text: str) -> None:
    """Refuse a text that two programs would read as two paths; raises UnclearArgumentError."""
    if not text.strip():
        raise UnclearArgumentError("the path is empty")
    refused = forbidden_character(text)
    if refused or "\n" in text or "\t" in text:
        why = "it holds a tab or a line break"
        if refused:
            why = f"its character {refused.position + 1}, {refused.reason}"
        raise UnclearArgumentError(f"the path {shown(text)} is not judged: {why}")
    if text != text.strip():
        raise UnclearArgumentError(
            f"the path {shown(text)!r} begins or ends with a blank, which some programs drop; leave it out"
        )
    if _SCHEME.match(text):
        raise UnclearArgumentError(f"{shown(text)} is an address and not a path; write the path of the file")
    if text[0] in "@$" or (text[0] == "~" and text != "~" and text[1] != "/"):
        raise UnclearArgumentError(
            f"some programs read the beginning of {shown(text)} as something else; write an absolute path"
        )


def _expanded(text: str, home: str) -> str:
    if not text.startswith("~"):
        return text
    if not home:
        raise UnclearArgumentError(f"it is not known what ~ means in {shown(text)}; write an absolute path")
    return home + text[1:]


def _check_lengths(full: str, written: str) -> None:
    encoded = full.encode()
    if len(encoded) <= _MAX_PART_BYTES:
        return
    longest = max(len(part) for part in encoded.split(b"/"))
    if len(encoded) >= _MAX_BYTES or longest > _MAX_PART_BYTES:
        raise UnclearArgumentError(
            f"the path {shown(written)} is longer than the system takes ({_MAX_BYTES - 1} bytes in all, "
            f"{_MAX_PART_BYTES} for each part)"
        )


def _normalised(full: str) -> str:
    path = posixpath.normpath(full)
    return path[1:] if path.startswith("//") else path  # normpath keeps two slashes at the beginning


def _followed(path: str, written: str, follow: Follow) -> RealPath:
    real = follow(path)
    if real is None or not _encodes(real.path):
        raise UnclearArgumentError(
            f"nobody can tell where {shown(written)} leads: Sayso may not look there, or links go in circles"
        )
    return real


def _encodes(path: str) -> bool:
    return path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path)


def _in_real_directory(lexical: str, real: str, written: str, follow: Follow) -> str:
    """Give the name of a link as it stands in its real directory, so that a rule about this name holds."""
    if lexical == real:
        return real
    directory, base = posixpath.split(lexical)
    return posixpath.join(_followed(directory, written, follow).path, base)
