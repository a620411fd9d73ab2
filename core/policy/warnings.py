"""Warnings told once: what was told is remembered, up to a bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

MOST_REMEMBERED = 256


class ToldWarnings:
    """Lets a warning through the first time; the ones told longest ago are forgotten beyond the bound."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._told: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._told)

    def fresh(self, warnings: Iterable[str]) -> tuple[str, ...]:
        """Return the warnings that were not told lately, and remember them."""
        return tuple(warning for warning in warnings if self._first_time(warning))

    def _first_time(self, warning: str) -> bool:
        known = warning in self._told
        self._told[warning] = None
        self._told.move_to_end(warning)
        if len(self._told) > self._most:
            self._told.popitem(last=False)
        return not known
