"""Finds and kills processes of a run by the mark of its namespace, or the marker in their environment.

bwrap carries the marker too: where its parent is killed while it sets up, its child has not asked yet to die
with it, and waits for it for ever or starts the command without a daemon.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MARKER: Final = "SAYSO_RUN"
_MARK: Final = "/dev/sayso-run-"
_PASSES: Final = 20  # a process may fork while it is looked for; each pass finds what the last one left
_FEW: Final = 10_000  # process ids since a run began, after which they may have begun anew
_LOADS: Final = Path("/proc/loadavg")


def mark_of(request_id: str) -> str:
    """Name the mount that tells of every process of a held run whose it is; none can leave or remove it."""
    return f"{_MARK}{request_id}"


def kill_leftovers(request_id: str, since: int | None = None) -> int:
    """Kill every process of a run; returns how many were killed. Those of a held run cannot hide.

    `since` is the id of a process of the run that was among its first. Of a run that is not held, a process
    that removed the marker from its environment is not found, nor, for a daemon that is not root, one that
    runs as another user.
    """
    killed: set[int] = set()
    for _ in range(_PASSES):
        found = {pid for pid in _marked(request_id, since) if _kill(pid, request_id)}
        if found <= killed:
            break
        killed |= found
    return len(killed)


def marked(request_id: str) -> tuple[int, ...]:
    """Return the live processes of a run."""
    return tuple(_marked(request_id))


def _marked(request_id: str, since: int | None = None) -> Iterator[int]:
    newest = _newest() if since is not None else 0
    some = range(since, newest + 1) if since is not None and 0 <= newest - since < _FEW else None
    for name in os.listdir("/proc"):  # noqa: PTH208 - looked at after every run
        if not name.isdigit() or (some is not None and int(name) not in some):
            continue
        if _carries(int(name), request_id):
            yield int(name)


def _newest() -> int:
    return int(_LOADS.read_text().split()[-1])


def _carries(pid: int, request_id: str) -> bool:
    if pid == os.getpid():
        return False
    # Reading a table of mounts waits for namespaces that are just being torn down, so that few are read.
    if _is_elsewhere(pid) and _is_in(f"/proc/{pid}/mountinfo", f" {mark_of(request_id)} ".encode(), b""):
        return True
    return _is_in(f"/proc/{pid}/environ", f"\0{MARKER}={request_id}\0".encode(), b"\0")


def _is_elsewhere(pid: int) -> bool:
    """Tell whether a process has another mount namespace than this one."""
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116 - as above
    except OSError:  # it may be there, and not ours to look into so
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
