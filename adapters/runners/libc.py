"""Calls of the C library and the kernel that Python has none for."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


@cache
def libc() -> ctypes.CDLL:
    """Give the C library; `ctypes.get_errno` tells why a call failed."""
    return ctypes.CDLL(None, use_errno=True)


def system_call(number: int, *arguments: Any) -> int:  # noqa: ANN401 - whatever the call takes
    """Call the kernel by number."""
    return int(libc().syscall(number, *arguments))
