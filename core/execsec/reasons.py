"""Several reasons as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

MOST_REASONS: Final = 3
_OF_SOMETHING: Final = re.compile(r"(`[^`]*`) (.*)", re.DOTALL)


def joined(reasons: Iterable[str]) -> str:
    """Say each reason once, of many the first few; what holds for several commands is said once of all."""
    every = tuple(dict.fromkeys(reasons))
    more = len(every) - MOST_REASONS
    rest = (f"and {more} more",) if more > 0 else ()
    return "; ".join((*_grouped(every[:MOST_REASONS]), *rest))


def _grouped(reasons: Iterable[str]) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for reason in reasons:
        found = _OF_SOMETHING.fullmatch(reason)
        subject, what = found.groups() if found else ("", reason)
        same.setdefault(what, []).append(subject)
    for what, (first, *others) in same.items():
        also = f" (so too {' and '.join(others)})" if others else ""
        yield f"{first} {what}{also}".lstrip()
