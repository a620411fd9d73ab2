"""What was given for a time: it ends by the wall clock, which people read, or by the steady one."""

from __future__ import annotations

from core.ports import Clock


class Lasting:
    """What lasts for a time, by the steady clock: a wall clock that is set back makes nothing last longer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}

    def begin(self, key: str, until: int, longest_ms: int) -> None:
        """Keep what lasts until this time of the wall clock, `longest_ms` from now at most."""
        now = self._clock.monotonic()
        left_ms = max(0, min(until - self._clock.now(), longest_ms))
        self._ends[key] = now + left_ms / 1000

    def over(self, key: str) -> bool:
        """Tell whether its time is over; what was never begun is not."""
        end = self._ends.get(key)
        return end is not None and end <= self._clock.monotonic()

    def forget(self, key: str) -> None:
        """Drop what ended."""
        self._ends.pop(key, None)
