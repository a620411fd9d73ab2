"""Which programs print the environment of processes, in which secrets may stand."""

from __future__ import annotations

import re
from typing import Final

from core.model.command import Segment
from core.shell.names import names

# Clusters of `ps` that mean the same to every reading of them: elsewhere it may take `-axe` for `axe`.
_OF_UNIX: Final = re.compile(
    r"-[AdefFHjlLMTwyZc]+|-[AdefFHjlLMTwyZc]*[oO].*|-[pCuUgGt]", re.ASCII | re.DOTALL
)
_TAKES_NEXT: Final = re.compile(r"-[AdefFHjlLMTwyZc]*[oOpCuUgGt]|[abcdfghjlmnrsuvwxA-Z]+[oOkpt]", re.ASCII)
_LETTERS: Final = re.compile(r"-?[A-Za-z]+")
_FORMAT: Final = "environ"


def prints_environment(segment: Segment) -> bool:
    """Tell whether it prints the environment of its own process, or that of others."""
    found = names(segment)
    if "printenv" in found:
        return True
    if "ps" not in found:
        return False
    arguments = segment.argv[1:]
    return any(_FORMAT in word for word in arguments) or _asks_for_it(arguments)


def _asks_for_it(arguments: tuple[str, ...]) -> bool:
    """Tell whether `ps` is given an `e` that does not surely mean every process, as that of `-e` does."""
    before = ("", *arguments)
    words = [word for last, word in zip(before, arguments, strict=False) if not _TAKES_NEXT.fullmatch(last)]
    short = [word for word in words if word[:2] != "--" and not word.isdigit()]
    doubtful = [word for word in short if not _OF_UNIX.fullmatch(word)]
    if any(word[:1] == "-" for word in doubtful):  # then all are read anew, and values may be options
        short = [word for word in arguments if _LETTERS.fullmatch(word)]
    return any("e" in word for word in doubtful) or (bool(doubtful) and any("e" in word for word in short))
