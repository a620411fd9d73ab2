"""Finds and kills processes of a run by the marker in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARKER = "SAYSO_RUN"
_PASSES = 20  # a process may fork while it is looked for; each pass finds what the last one left


def kill_leftovers(request_id: str) -> int:
    """Kill every process whose environment says it belongs to this run; returns how many were killed.

    A process that removed the marker from its environment is not found, nor, for a daemon that is not root,
    one that runs as another user.
    """
    killed: set[int] = set()
    for _ in range(_PASSES):
        found = {pid for pid in _marked(request_id) if _kill(pid, request_id)}
        if found <= killed:
            break
        killed |= found
    return len(killed)


def marked(request_id: str) -> tuple[int, ...]:
    """Return the live processes of a run that still carry its marker."""
    return tuple(_marked(request_id))


def _marked(request_id: str) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _carries(int(entry.name), request_id):
            yield int(entry.name)


def _carries(pid: int, request_id: str) -> bool:
    if pid == os.getpid():
        return False
    try:
        return f"{MARKER}={request_id}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _kill(pid: int, request_id: str) -> bool:
    """Kill by a descriptor taken before the second look, so that a reused pid is never hit."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _carries(pid, request_id):
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            return True
        return False
    finally:
        os.close(descriptor)
