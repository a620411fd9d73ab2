"""Which parts of a word may be a path that its program opens."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from core.model.command import Expansion, Segment

_SEPARATOR: Final = re.compile(r"[=:@,]")
_CLUSTER: Final = re.compile(r"-[A-Za-z0-9#]+")
_HOME: Final = re.compile(r"^(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
_UNKNOWN: Final = frozenset((Expansion.VARIABLE, Expansion.TILDE))
# At the beginning of a word, or of a part that could be a path.
_HERE: Final = re.compile(r"(^|[=:@,]|^-[A-Za-z]+)(?:~\+|\$PWD|\$\{PWD\})(?=/|\Z|\$)")
_OF_OTHERS: Final = re.compile(r"(^|[=:@,])~([A-Za-z_][\w.-]*)(?=/|\Z)")
_BACKSLASH: Final = "\\"
_JOINED: Final = re.compile(r"-[A-Za-z0-9]*")
_WITHIN: Final = re.compile(r"(?<=[^=:@,])\$(?:\w+|\{\w+\}|[*@#?$!-])")
_LONGEST_NAME: Final = 255  # bytes; of a longer run the path begins in the last so many
LONGEST_PATH: Final = 4096  # bytes; the kernel opens no longer one, however it is written
_SLASHES: Final = re.compile(r"/{2,}")


def path_pieces(text: str) -> Sequence[str]:
    """Give the word, its parts at `=`, `:`, `@` and `,`, and what short options may have joined to them."""
    parts = _SEPARATOR.split(text)
    pieces = [text, *parts] if len(parts) > 1 else [text]
    if "-" in text:
        pieces += [behind for part in dict.fromkeys(pieces) for behind in _behind_options(part)]
    return pieces


def expanded(segment: Segment, home: str) -> Sequence[str]:
    """Give what the words that bash would expand may become, as far as it can be told.

    `$PWD` and `~+` are where it runs, `~name` is beside the home, and a variable behind something else counts
    as `*`: it is a part of a name. What a word that begins with another one becomes nobody can tell.
    """
    changed = [word.value for word in segment.words if word.expansions & _UNKNOWN]
    found = (text for value in changed for text in _expanded(value, segment.places, home))
    return [text for text in dict.fromkeys(found) if text not in changed]


def _expanded(value: str, places: Sequence[str], home: str) -> Iterator[str]:
    for place in places or ("$PWD",):
        here = _HERE.sub(rf"\1{place.replace(_BACKSLASH, 2 * _BACKSLASH)}", value)
        there = _OF_OTHERS.sub(lambda match: match[1] + _home_of(match[2], home), here)
        joined = _JOINED.match(there)
        end = joined.end() if joined else 0
        yield there[:end] + _WITHIN.sub("*", there[end:])


def _home_of(user: str, home: str) -> str:
    return "/root" if user == "root" else posixpath.join(posixpath.dirname(home), user)


def at_home(piece: str, home: str) -> str:
    """Put the home in the place of `~` and `$HOME` at the beginning, as a shell would."""
    return _HOME.sub(lambda _: home, piece) if home and piece[:1] in {"~", "$"} else piece


def _behind_options(part: str) -> Iterator[str]:
    """Give what follows each letter of `-abPATH`, since any of them may be the one that takes a path."""
    if part[:1] != "-" or part[:2] == "--":
        return
    part = _SLASHES.sub("/", part)
    yield part[len("-o") :]
    if "/" in part:
        yield part[part.index("/") :]
    cluster = _CLUSTER.match(part)
    if cluster is not None and len(part) <= LONGEST_PATH + cluster.end():
        end = cluster.end()
        yield from (part[at:] for at in range(max(len("-ab"), end - _LONGEST_NAME), end + 1))
