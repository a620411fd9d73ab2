"""Hears of what is exchanged or written in watched places, by one instance of inotify for the whole daemon.

A user has few instances, and what runs in a sandbox as the same user can take them all: this one is opened
before anything runs.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import select
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Final

from adapters.runners.libc import libc
from core.errors import RunError

MODIFIED: Final = 0x2
EXCHANGED: Final = 0x40 | 0x80 | 0x100 | 0x200  # moved from and to, created, deleted
_OVERFLOW: Final = 0x4000
_ADD: Final = 0x20000000  # to what others watch of the same file
_EVENT: Final = struct.Struct("iIII")  # which watch, what, a cookie, the length of the name
_BUFFER: Final = 64 * 1024
_TOO_MUCH: Final = "one of its files, as far as is known (more happened than could be watched)"


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """A name in a directory, or a file itself, and whom to tell what about it."""

    what: str
    tell: Callable[[str], None]


class Exchanges:
    """Tells at once, from a thread of its own, what happens to watched names."""

    def __init__(self) -> None:
        self._instance = _checked(libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "exchanges of files")
        self._lock = Lock()
        self._watched: dict[tuple[int, str], list[Watched]] = {}
        self._names: Counter[int] = Counter()  # the kernel has one watch for each file or directory
        _thread.start_new_thread(self._listen, ())

    @contextmanager
    def watched(self, place: str, name: str, events: int, watched: Watched) -> Iterator[None]:
        """Watch a name in a directory, or with no name the file itself; raises RunError or OSError."""
        key = self._add(place, name, events, watched)
        try:
            yield
        finally:
            self._remove(key, watched)

    def hear(self) -> None:
        """Have told all that happened up to now."""
        with self._lock:
            self._hear()

    def _add(self, place: str, name: str, events: int, watched: Watched) -> tuple[int, str]:
        with self._lock:
            number = _checked(
                libc().inotify_add_watch(self._instance, os.fsencode(place), events | _ADD), place
            )
            self._hear()  # what happened before is nothing to it
            self._names[number] += 1
            self._watched.setdefault((number, name), []).append(watched)
            return number, name

    def _remove(self, key: tuple[int, str], watched: Watched) -> None:
        with self._lock:
            self._watched[key].remove(watched)
            if not self._watched[key]:
                del self._watched[key]
            number = key[0]
            self._names[number] -= 1
            if not self._names[number]:
                del self._names[number]
                # Of a directory that is gone the kernel has removed it; it does not use the number again.
                libc().inotify_rm_watch(self._instance, number)

    def _listen(self) -> None:
        poller = select.poll()
        poller.register(self._instance, select.POLLIN)
        while poller.poll():
            self.hear()

    def _hear(self) -> None:
        try:
            while events := os.read(self._instance, _BUFFER):
                for number, what, name in _events(events):
                    self._tell(number, what, name)
        except BlockingIOError:
            return  # that was all
        except OSError:
            self._tell_all()

    def _tell(self, number: int, what: int, name: str) -> None:
        if what & _OVERFLOW:
            self._tell_all()
        if what & (MODIFIED | EXCHANGED):
            for watched in self._watched.get((number, name), ()):
                watched.tell(watched.what)

    def _tell_all(self) -> None:
        for watched in [each for several in self._watched.values() for each in several]:
            watched.tell(_TOO_MUCH)


@cache
def exchanges() -> Exchanges:
    """Give the one of this process; raises RunError where there can be none now."""
    return Exchanges()


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        number, what, _, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield number, what, os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length


def _checked(answer: int, what: str) -> int:
    if answer >= 0:
        return answer
    number = ctypes.get_errno()
    limits = {errno.EMFILE: "fs.inotify.max_user_instances", errno.ENOSPC: "fs.inotify.max_user_watches"}
    hint = f"; raise {limits[number]} (sysctl)" if number in limits else ""
    raise RunError(f"{what} cannot be watched: {os.strerror(number)}{hint}")
