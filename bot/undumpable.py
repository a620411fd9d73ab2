"""Closes the daemon's memory and environment, in which tokens stand, to other processes of its user."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def close_to_other_processes() -> str | None:
    """Give this process' files in /proc to root, and leave no core dumps; returns what went wrong."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0:
            return None
        return os.strerror(ctypes.get_errno())
    except (OSError, AttributeError) as error:
        return str(error)
