"""When open questions end: by the wall clock, which people read, or by the steady one, whichever is first.

A wall clock that is put back lets nothing wait longer, and one that is put forward (or was asleep with the
machine) ends what is past its time.
"""

from __future__ import annotations

import heapq

from core.model.request import Request, State
from core.ports import Clock

# What is allowed just before its deadline is given this much longer at most.
LONGEST_EXTENSION_S = 15.0


class Deadlines:
    """Follows the requests that are open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}
        self._by_wall: list[tuple[int, str]] = []
        self._by_steady: list[tuple[float, str]] = []

    def note(self, request: Request) -> None:
        """Follow a request for as long as it is open."""
        if request.state not in (State.WAITING, State.APPROVED):
            self._ends.pop(request.id, None)
            return
        end = self._steady_end(request)
        self._ends[request.id] = end
        heapq.heappush(self._by_wall, (request.deadline, request.id))
        heapq.heappush(self._by_steady, (end, request.id))

    def _steady_end(self, request: Request) -> float:
        now = self._clock.monotonic()
        window = request.deadline - request.created_at
        end = now + min(request.deadline - self._clock.now(), window) / 1000
        before = self._ends.get(request.id)
        return end if before is None else min(end, max(before, now + LONGEST_EXTENSION_S))

    def passed(self, request: Request) -> bool:
        """Tell whether the time of an open request is up."""
        if request.deadline <= self._clock.now():
            return True
        end = self._ends.get(request.id)
        return end is not None and end <= self._clock.monotonic()

    def due(self) -> list[str]:
        """Take out the ids that may be past their time."""
        wall, steady = self._clock.now(), self._clock.monotonic()
        ids: dict[str, None] = {}
        while self._by_wall and self._by_wall[0][0] <= wall:
            ids[heapq.heappop(self._by_wall)[1]] = None
        while self._by_steady and self._by_steady[0][0] <= steady:
            ids[heapq.heappop(self._by_steady)[1]] = None
        return [request_id for request_id in ids if request_id in self._ends]

    def again(self, request_id: str, delay_s: float) -> None:
        """Give an id once more after a while."""
        heapq.heappush(self._by_steady, (self._clock.monotonic() + delay_s, request_id))

    def next_in_s(self, longest: float) -> float:
        """Tell how long nothing is due, at most `longest`."""
        waits = [longest]
        if self._by_wall:
            waits.append((self._by_wall[0][0] - self._clock.now()) / 1000)
        if self._by_steady:
            waits.append(self._by_steady[0][0] - self._clock.monotonic())
        return max(min(waits), 0.001)
