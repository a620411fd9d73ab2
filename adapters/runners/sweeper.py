"""What the guardian does in its process: it hears of runs, and ends them when the daemon is gone.

It is started from memory, so that it imports of Sayso only what is put there for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import sys
import time
from typing import Final

from adapters.runners.leftovers import kill_leftovers

LONGEST: Final = 256
READY: Final = b"ready"
_PR_SET_DUMPABLE: Final = 4
_SWEEPING_S: Final = 2.0  # by then a process that was just being started carries the marker
_PAUSE_S: Final = 0.02


def main() -> None:
    """Listen on the socket that is standard input until the daemon is gone, then end what it left."""
    # As the daemon is: another process of its user could write code into it otherwise.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    runs: set[str] = set()
    with socket.socket(fileno=sys.stdin.fileno()) as control, contextlib.suppress(ConnectionError):
        control.send(READY)
        while said := control.recv(LONGEST).decode():
            (runs.add if said[0] == "+" else runs.discard)(said[1:])
    _sweep(runs)


def _sweep(runs: set[str]) -> None:
    until = time.monotonic() + _SWEEPING_S
    while runs and time.monotonic() < until:
        for request_id in runs:
            kill_leftovers(request_id)
        time.sleep(_PAUSE_S)
