"""Keeps what a run begins with as it was looked at, until it has begun.

A program, a script and whatever runs it are found by name a last time when the run starts. From before the
last look on, a lease of the kernel lets nobody write them, and a watch on every directory and link on the way
to them tells of what is exchanged: before the start the run is refused, in the first moments it is killed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import signal
import stat
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from posixpath import dirname, join
from typing import Final

from core.errors import BindingMismatch, RunError

_BEGUN_S: Final = 2.0  # by then an interpreter has read what it was given, on a busy machine too
_MAX_LINKS: Final = 40
_EVENT: Final = struct.Struct("iIII")  # of inotify: which watch, what, a cookie, the length of the name
_BUFFER: Final = 64 * 1024
_MODIFIED, _MOVED, _CREATED, _DELETED, _OVERFLOW = 0x2, 0xC0, 0x100, 0x200, 0x4000
_EXCHANGED: Final = _MOVED | _CREATED | _DELETED
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_NO_LEASE: Final = frozenset((errno.EACCES, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.EPERM))


class HeldStill:
    """Watches what a run begins with; `exchanged` names what ended it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._watch: int | None = None
        self._places: dict[tuple[int, str], str] = {}
        self.exchanged: str | None = None

    @classmethod
    @contextmanager
    def holding(cls, paths: Iterable[str]) -> Iterator[HeldStill]:
        """Hold these files; raises RunError where one is being written, or cannot be watched.

        What only root can change on the way and in the file needs nothing.
        """
        with ExitStack() as stack:
            held = cls(stack)
            for path in paths:
                held._hold(path)
            yield held

    def check(self) -> None:
        """Raise BindingMismatch where something was exchanged since they are held."""
        if self._watch is not None and (exchanged := self._told()):
            raise BindingMismatch((exchanged,))

    def guard(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the group of a process that was just started where something is exchanged; then let go."""
        with self._stack:
            if self._watch is None:
                return
            try:
                self.exchanged = self._first_told(process.pid, time.monotonic() + _BEGUN_S)
            except OSError as error:
                self.exchanged = f"one of its files, for all that is known ({error.strerror})"
            if self.exchanged:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def told(self, *, begun: bool) -> tuple[str, ...]:
        """Say why the run was killed, if it was; raises BindingMismatch where nothing of it had begun."""
        if self.exchanged is None:
            return ()
        if not begun:
            raise BindingMismatch((self.exchanged,))
        why = (
            f"it was killed, because {self.exchanged} was exchanged just when it started, so that something "
            "else may have run than was allowed: look at that file and at who can change it, then ask again"
        )
        return (why,)

    def _first_told(self, pid: int, deadline: float) -> str | None:
        ended = os.pidfd_open(pid)
        self._stack.callback(os.close, ended)
        poller = select.poll()
        for descriptor in filter(None, (self._watch, ended)):
            poller.register(descriptor, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poller.poll(left * 1000))
            if self._watch in ready and (exchanged := self._told()):
                return exchanged
            if ended in ready:
                return None
        return None

    def _hold(self, path: str) -> None:
        for directory, name in _way(path):
            if _others_change(directory):
                self._places[self._watched(directory, _EXCHANGED), name] = path
        with suppress(FileNotFoundError):  # the last look tells of it
            if _others_change(path) and not self._leased(path):
                self._places[self._watched(path, _MODIFIED), ""] = path

    def _leased(self, path: str) -> bool:
        """Make whoever opens it for writing wait; False where this kernel, or file system, knows no lease.

        A mapping that was made before counts as open for writing.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            return False
        self._stack.callback(os.close, descriptor)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # which nobody minds
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            raise RunError(
                f"{path} is open for writing in another process, so that it could change just when it is "
                "started; close it there and ask again"
            ) from None
        except OSError as error:
            if error.errno in _NO_LEASE:
                return False
            raise
        return True

    def _watched(self, path: str, events: int) -> int:
        if self._watch is None:
            self._watch = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "a watch")
            self._stack.callback(os.close, self._watch)
        return _checked(_libc().inotify_add_watch(self._watch, os.fsencode(path), events), path)

    def _told(self) -> str | None:
        """Read what happened, and name what it was that was exchanged."""
        watch = self._watch
        if watch is None:
            return None
        with suppress(BlockingIOError):
            while events := os.read(watch, _BUFFER):
                for number, what, name in _events(events):
                    if what & _OVERFLOW:
                        return "one of its files, as far as is known (more happened than can be watched)"
                    if found := self._places.get((number, name)):
                        return found
        return None


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        number, what, _, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield number, what, os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length


def _way(path: str) -> Iterator[tuple[str, str]]:
    """Give each name that is looked up on the way to a file, with its directory; links are followed.

    Each is given before it is followed, so that a watch on it tells of every change afterwards.
    """
    rest, at, links = path.split("/"), "/", 0
    while rest and links <= _MAX_LINKS:
        name = rest.pop(0)
        if name in {"", "."}:
            continue
        if name == "..":
            at = dirname(at)
            continue
        yield at, name
        try:
            target = os.readlink(join(at, name))  # noqa: PTH115 - the text, not a Path
        except OSError:
            at = join(at, name)
            continue
        links += 1
        rest = [*target.split("/"), *rest]
        at = "/" if target.startswith("/") else at


def _others_change(path: str) -> bool:
    """Tell whether anybody but root could change what is there."""
    status = os.stat(path)  # noqa: PTH116 - for every run
    return status.st_uid != 0 or bool(status.st_mode & _OTHERS_WRITE)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(answer: int, what: str) -> int:
    if answer >= 0:
        return answer
    number = ctypes.get_errno()
    limits = {errno.EMFILE: "fs.inotify.max_user_instances", errno.ENOSPC: "fs.inotify.max_user_watches"}
    hint = f"; raise {limits[number]} (sysctl)" if number in limits else ""
    raise RunError(f"{what} cannot be watched while the run starts: {os.strerror(number)}{hint}")
