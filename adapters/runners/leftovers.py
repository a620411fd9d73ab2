"""Finds and kills processes of a run by the mark of its namespace, or the marker in their environment.

bwrap carries the marker too: where its parent is killed while it sets up, its child has not asked yet to die
with it, and waits for it for ever or starts the command without a daemon.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARKER: Final = "SAYSO_RUN"
_MARK: Final = "/dev/sayso-run-"
_PASSES: Final = 20  # a process may fork while it is looked for; each pass finds what the last one left
_PIDS_PER_S: Final = 1_000_000  # more than any machine gives out
_FEW: Final = 1_000  # ids, which are looked at one by one sooner than all processes are listed
_LOADS: Final = Path("/proc/loadavg")
_LIMIT: Final = Path("/proc/sys/kernel/pid_max")


def mark_of(request_id: str) -> str:
    """Name the mount that tells of every process of a held run whose it is; none can leave or remove it."""
    return f"{_MARK}{request_id}"


@dataclass(frozen=True, slots=True)
class Since:
    """A process that was among the first of a run, and for how long there have been some."""

    pid: int
    seconds: float


def kill_leftovers(request_id: str, since: Since | None = None) -> int:
    """Kill every process of a run; returns how many were killed.

    `since` is told of a held run, whose processes cannot hide. Of one that is not held, a process that
    removed the marker from its environment is not found, nor, for a daemon that is not root, another user's.
    """
    killed: set[int] = set()
    for _ in range(_PASSES):
        found = {pid for pid in marked(request_id, since) if _kill(pid, request_id)}
        if found <= killed:
            break
        killed |= found
    return len(killed)


def marked(request_id: str, since: Since | None = None) -> tuple[int, ...]:
    """Return the live processes of a run; those of a held run, where it is told since when there are some."""
    held = since is not None
    return tuple(pid for pid in _candidates(since) if _carries(pid, request_id, held=held))


def _candidates(since: Since | None) -> Sequence[int]:
    """Give the ids of those that can be the run's: ids go up, until they begin anew."""
    if since is not None and since.seconds * _PIDS_PER_S < int(_LIMIT.read_bytes()):
        later = range(since.pid, int(_LOADS.read_bytes().split()[-1]) + 1)
        if 0 < len(later) < _FEW:
            return later
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - after many runs


def _carries(pid: int, request_id: str, *, held: bool = False) -> bool:
    if pid == os.getpid():
        return False
    return any(_is_marked(thread, request_id, held=held) for thread in _living(pid))


def _living(pid: int) -> Iterator[str]:
    """Give where one can look into a process: its first thread, or each other where that has ended."""
    first = f"/proc/{pid}"
    try:
        os.stat(f"{first}/ns/mnt")  # noqa: PTH116 - as above
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield from (f"{first}/task/{thread}" for thread in os.listdir(f"{first}/task"))  # noqa: PTH208 - as above
    except OSError:  # it may be there, and not ours to look into so
        yield first
    else:
        yield first


def _is_marked(process: str, request_id: str, *, held: bool) -> bool:
    elsewhere = _is_elsewhere(process)
    if held and not elsewhere:
        return False
    # Reading a table of mounts waits for namespaces that are just being torn down, so that few are read.
    if elsewhere and _is_in(f"{process}/mountinfo", f" {mark_of(request_id)} ".encode(), b""):
        return True
    return _is_in(f"{process}/environ", f"\0{MARKER}={request_id}\0".encode(), b"\0")


def _is_elsewhere(process: str) -> bool:
    """Tell whether a process has another mount namespace than this one."""
    try:
        return os.stat(f"{process}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116 - as above
    except FileNotFoundError:
        return False
    except OSError:  # as above
        return True


def _is_in(path: str, text: bytes, before: bytes) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            return text in before + file.read()
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
