"""Which parts of a word may be a path that its program opens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_SEPARATOR: Final = re.compile(r"[=:@,]")
_CLUSTER: Final = re.compile(r"-[A-Za-z0-9#]+")
_HOME: Final = re.compile(r"^(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
_LONGEST_NAME: Final = 255  # bytes; of a longer run the path begins in the last so many


def path_pieces(text: str) -> Sequence[str]:
    """Give the word, its parts at `=`, `:`, `@` and `,`, and what short options may have joined to them."""
    parts = _SEPARATOR.split(text)
    pieces = [text, *parts] if len(parts) > 1 else [text]
    if "-" in text:
        pieces += [behind for part in dict.fromkeys(pieces) for behind in _behind_options(part)]
    return pieces


def at_home(piece: str, home: str) -> str:
    """Put the home in the place of `~` and `$HOME` at the beginning, as a shell would."""
    return _HOME.sub(lambda _: home, piece) if home and piece[:1] in {"~", "$"} else piece


def _behind_options(part: str) -> Iterator[str]:
    """Give what follows each letter of `-abPATH`, since any of them may be the one that takes a path."""
    if part[:1] != "-" or part[:2] == "--":
        return
    yield part[len("-o") :]
    if "/" in part:
        yield part[part.index("/") :]
    cluster = _CLUSTER.match(part)
    if cluster is not None:
        end = cluster.end()
        yield from (part[at:] for at in range(max(len("-ab"), end - _LONGEST_NAME), end + 1))
