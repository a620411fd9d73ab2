"""How the event loop keeps its turn beside threads that compute."""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.001  # after so long a thread that computes gives way; Python's own 5 ms add up with each thread


def take_turns() -> None:
    """Have threads give way soon, and spare what is here for good from every later collection of garbage.

    To be called once all is started: a full collection looks at every object, and nobody runs meanwhile.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
