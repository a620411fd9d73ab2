"""The way to a file, opened step by step: whose is what is met, and who else could change it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from posixpath import dirname, join
from typing import Final

from adapters.runners.accounts import others_may_write

_MOST_LINKS: Final = 40  # as many as the kernel follows
_ON_THE_WAY: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Step:
    """A directory, a link or, at the end, a file; `settled` where root alone can put another in its place."""

    path: str
    uid: int
    mode: int
    identity: tuple[int, int]
    others_write: bool
    settled: bool = True

    @property
    def is_directory(self) -> bool:
        """Tell whether it is a directory, and no link to one."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Tell whether it is a link."""
        return stat.S_ISLNK(self.mode)

    @property
    def is_sticky(self) -> bool:
        """Tell whether in this directory each can exchange what is their own alone."""
        return bool(self.mode & stat.S_ISVTX)


Way = tuple[Step, ...]


def another_on(before: Way, now: Way) -> str | None:
    """Name a directory by which a way has become another one, unless root alone can have done it."""
    old, new = ([step for step in way if step.is_directory] for way in (before, now))
    same = sum(1 for _ in takewhile(lambda both: _is_same(*both), zip(old, new, strict=False)))
    return next((step.path for step in (*new[same:], *old[same:]) if not step.settled), None)


def _is_same(old: Step, new: Step) -> bool:
    return (old.path, old.identity) == (new.path, new.identity)


def way_to(path: str) -> Way:
    """Look at the way to a path; raises OSError where it leads nowhere."""
    with followed(path) as (_, way):
        return way


@contextmanager
def followed(path: str) -> Iterator[tuple[int, Way]]:
    """Follow an absolute path, each step from within the one before, and hold where it ends.

    What others exchange meanwhile is either met or not: what was told is what the descriptor was reached by.
    """
    at, place, links = os.open("/", _ON_THE_WAY | os.O_DIRECTORY), "/", 0
    inside = _step(place, at, None)
    steps, left = [inside], path.split("/")[::-1]
    try:
        while left:
            name = left.pop()
            if name in ("", "."):
                continue
            found = os.open(name, _ON_THE_WAY, dir_fd=at)
            spot = dirname(place) if name == ".." else join(place, name)
            steps.append(step := _step(spot, found, inside))
            if step.is_link:
                links += 1
                target = _target(found, links)
                left += target.split("/")[::-1]
                if not target.startswith("/"):
                    continue
                found, spot, step = os.open("/", _ON_THE_WAY | os.O_DIRECTORY), "/", steps[0]
            os.close(at)
            at, place, inside = found, spot, step
        yield at, tuple(steps)
    finally:
        os.close(at)


def _target(link: int, count: int) -> str:
    try:
        if count > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _step(path: str, descriptor: int, inside: Step | None) -> Step:
    found = os.fstat(descriptor)
    link = stat.S_ISLNK(found.st_mode)  # whose mode means nothing
    others = not link and others_may_write(found, f"/proc/self/fd/{descriptor}")
    return Step(
        path,
        found.st_uid,
        found.st_mode,
        (found.st_dev, found.st_ino),
        others,
        inside is None or _is_settled(found.st_uid, inside),
    )


def _is_settled(uid: int, inside: Step) -> bool:
    closed = not inside.mode & 0o022 or (inside.is_sticky and uid == 0)
    return inside.uid == 0 and closed
