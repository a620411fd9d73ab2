"""Several reasons as one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

MOST_REASONS: Final = 3


def joined(reasons: Iterable[str]) -> str:
    """Say each reason once, of many the first few; what holds for several commands is said once of all."""
    every = tuple(dict.fromkeys(reasons))
    more = len(every) - MOST_REASONS
    rest = (f"and {more} more",) if more > 0 else ()
    return "; ".join((*_grouped(every[:MOST_REASONS]), *rest))


def _grouped(reasons: Iterable[str]) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for reason in reasons:
        subject, quoted, what = reason.partition("` ") if reason[:1] == "`" else ("", "", "")
        same.setdefault(what or reason, []).append(subject + quoted if what else "")
    for what, (first, *others) in same.items():
        also = f" (so too {' and '.join(map(str.rstrip, others))})" if others else ""
        yield f"{first}{what}{also}"
