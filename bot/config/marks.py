"""How a file stood when it was read: by that one finds out later whether it was written or exchanged."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.config.way import Way, followed

Mark = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """How a file stood that was read, and by which way; none where it came as a descriptor."""

    mark: Mark
    way: Way


def mark_of(path: str) -> Mark | None:
    """Tell how a file stands now; None where it cannot be looked at."""
    try:
        return _mark(os.stat(path))  # noqa: PTH116 - before and after every run on the host
    except OSError:
        return None


def is_handed_over(path: Path) -> bool:
    """Tell whether a path names what the process was started with, as `/dev/stdin`."""
    return path.is_relative_to("/dev") or path.is_relative_to("/proc")


def read_marked(path: Path, *, pipes: bool = False) -> tuple[bytes, Source]:
    """Read a file, and tell how the very file stood that was read; raises OSError.

    It waits for nobody, but where it may be a pipe for whoever writes that.
    """
    opener = None if pipes else _at_once
    with _reached(path) as (name, way), open(name, "rb", opener=opener) as file:
        if not pipes and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = file.read()
        # Afterwards, so that nothing is written in between.
        return content, Source(_mark(os.fstat(file.fileno())), way)


@contextmanager
def _reached(path: Path) -> Iterator[tuple[str, Way]]:
    """Give a name of the very file that the way leads to."""
    if is_handed_over(path):
        yield str(path), ()
        return
    with followed(str(path.absolute())) as (descriptor, way):
        yield f"/proc/self/fd/{descriptor}", way


def _at_once(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NONBLOCK)
    except BlockingIOError:
        raise OSError(errno.EAGAIN, "another process holds it (a lease): close it there") from None


def _mark(status: os.stat_result) -> Mark:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
