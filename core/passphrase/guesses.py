"""How long somebody must wait after wrong guesses: longer each time, and never for good."""

from __future__ import annotations

from dataclasses import dataclass

from core.ports import Clock

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
ALARM_AFTER = 5


@dataclass(frozen=True, slots=True)
class _Wrong:
    count: int
    not_before: float


class Guesses:
    """Counts wrong guesses of each user since their last right one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: dict[str, _Wrong] = {}

    def wait_s(self, user: str) -> float:
        """Return for how long no guess of this user counts; 0 where the next one does."""
        wrong = self._wrong.get(user)
        return max(0.0, wrong.not_before - self._clock.monotonic()) if wrong else 0.0

    def count(self, user: str) -> int:
        """Note a wrong guess and return how many that are in a row."""
        before = self._wrong.get(user)
        count = before.count + 1 if before else 1
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(count - 1, 10))
        self._wrong[user] = _Wrong(count, self._clock.monotonic() + wait)
        return count

    def forget(self, user: str) -> None:
        """Begin anew with this user."""
        self._wrong.pop(user, None)
