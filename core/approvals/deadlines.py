"""When open questions end: by the wall clock, which people read, or by the steady one, whichever is first."""

from __future__ import annotations

import heapq

from core.ports import Clock


class Deadlines:
    """The deadlines of what is open.

    A wall clock that is set back keeps no question open longer than its window; one that is set forward ends
    it when people's clocks say so.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_wall: list[tuple[int, str]] = []
        self._by_steady: list[tuple[float, str]] = []
        self._known: dict[str, tuple[int, float]] = {}

    def put(self, request_id: str, deadline: int, longest_ms: int) -> None:
        """Keep a deadline, no further away than `longest_ms`; the same one again changes nothing."""
        known = self._known.get(request_id)
        if known is not None and known[0] == deadline:
            return
        left_ms = max(0, min(deadline - self._clock.now(), longest_ms))
        end = self._clock.monotonic() + left_ms / 1000
        self._known[request_id] = (deadline, end)
        heapq.heappush(self._by_wall, (deadline, request_id))
        heapq.heappush(self._by_steady, (end, request_id))

    def forget(self, request_id: str) -> None:
        """Drop what is no longer open."""
        self._known.pop(request_id, None)

    def again(self, request_id: str, delay_ms: int) -> None:
        """Look at it again after a while, whatever its deadline says."""
        heapq.heappush(self._by_wall, (self._clock.now() + delay_ms, request_id))

    def over(self, request_id: str, deadline: int) -> bool:
        """Tell whether this deadline is reached by either clock."""
        _, end = self._known.get(request_id, (deadline, None))
        return deadline <= self._clock.now() or (end is not None and end <= self._clock.monotonic())

    def take(self) -> str | None:
        """Take out one whose time may be up; None where there is none."""
        now, steady_now = self._clock.now(), self._clock.monotonic()
        while self._by_wall and self._by_wall[0][0] <= now:
            found = heapq.heappop(self._by_wall)[1]
            if found in self._known:
                return found
        while self._by_steady and self._by_steady[0][0] <= steady_now:
            found = heapq.heappop(self._by_steady)[1]
            if found in self._known:
                return found
        return None

    def left_s(self, longest_s: float) -> float:
        """Tell how long nothing is due, `longest_s` at most."""
        wall = (self._by_wall[0][0] - self._clock.now()) / 1000 if self._by_wall else longest_s
        steady = self._by_steady[0][0] - self._clock.monotonic() if self._by_steady else longest_s
        return min(wall, steady, longest_s)
