"""Whether bash would make several words of one that holds braces (`a{b,c}`), or takes them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

Mark = tuple[int, str]
_RANGE: Final = ".."


def expands(marks: Sequence[Mark], word: str) -> bool:
    """Tell whether braces in a word may expand; `marks` are its unquoted `{`, `}` and `,`, in order.

    Bash needs a `,` or `..` with an open brace before it, and behind it a brace that closes none opened
    there: `x{},b}` has that, `{a},{b}` has not. Dots count quoted too: what bash makes of those differs.
    """
    opened = next((at for at, char in marks if char == "{"), None)
    if opened is None:
        return False
    return any(at > opened for at in _separators_closed(sorted([*marks, *_ranges(word)], reverse=True)))


def _ranges(word: str) -> list[Mark]:
    return [(at, _RANGE) for at in range(len(word)) if word.startswith(_RANGE, at)]


def _separators_closed(backwards: Sequence[Mark]) -> list[int]:
    closing = 0
    found: list[int] = []
    for at, char in backwards:
        if char == "}":
            closing += 1
        elif char == "{":
            closing = max(0, closing - 1)
        elif closing:
            found.append(at)
    return found
