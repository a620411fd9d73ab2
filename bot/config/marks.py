"""How a file stood when it was read: by that one finds out later whether it was written or exchanged."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

Mark = tuple[int, ...]


def mark_of(path: str) -> Mark | None:
    """Tell how a file stands now; None where it cannot be looked at."""
    try:
        return _mark(os.stat(path))  # noqa: PTH116 - before and after every run on the host
    except OSError:
        return None


def read_marked(path: Path, *, pipes: bool = False) -> tuple[bytes, Mark]:
    """Read a file, and tell how the very file stood that was read; raises OSError.

    It waits for nobody, but where it may be a pipe for whoever writes that.
    """
    opener = None if pipes else _at_once
    with open(path, "rb", opener=opener) as file:
        if not pipes and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = file.read()
        return content, _mark(os.fstat(file.fileno()))  # afterwards, so that nothing is written in between


def _at_once(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NONBLOCK)
    except BlockingIOError:
        raise OSError(errno.EAGAIN, "another process holds it (a lease): close it there") from None


def _mark(status: os.stat_result) -> Mark:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
