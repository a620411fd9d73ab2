"""The one place that reads the time."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clocks."""

    def now(self) -> int:
        """Return the wall clock, in epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()
