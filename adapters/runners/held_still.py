"""Keeps what a run begins with as it was looked at: its place until it has been opened, its text to the end.

A program, a script and whatever runs it are found by name a last time when the run starts. From before the
last look on, a lease of the kernel lets nobody write them, and a watch on every directory and link on the way
to them tells of what is exchanged: before the start the run is refused, in the first moments it is killed.
How long an interpreter reads its script nobody can tell (a shell does while it runs it, Perl runs the
beginning before it reads the rest, of an archive each member is read when it is wanted): who opens one for
writing later gets it, and the run ends first.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import stat
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from posixpath import dirname, join
from threading import Lock
from typing import Final

from adapters.runners.exchanges import EXCHANGED, MODIFIED, Watched, exchanges
from core.errors import BindingMismatch, RunError
from core.model.plan import Beginning

_BEGUN_S: Final = 2.0  # by then an interpreter has read what it was given, on a busy machine too
_LOOK_BEGUN_S: Final = 0.02
_LOOK_WRITTEN_S: Final = 0.3
_MAX_LINKS: Final = 40
_RUN: Final = 0o111
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_NO_LEASE: Final = frozenset((errno.EACCES, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.EPERM))


class HeldStill:
    """Watches what a run begins with, and ends the run where that is exchanged or written."""

    def __init__(self) -> None:
        self._at_first = ExitStack()  # what is let go when the run has begun
        self._all_along = ExitStack()
        self._leased: dict[str, int] = {}  # all along
        self._kept = False
        self._watching = False
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = False
        self._over = False
        self._exchanged: str | None = None
        self._written: str | None = None

    @classmethod
    @contextmanager
    def holding(cls, beginning: Beginning) -> Iterator[HeldStill]:
        """Hold these files; raises RunError where one is being written, or cannot be watched.

        What only root can change on the way and in the file needs nothing. To be left when the run is over.
        """
        held = cls()
        first = dict.fromkeys((*beginning.first, *beginning.later))
        words = (path for path in beginning.words if path not in first)
        with held._all_along, held._at_first:
            for path in first:
                held._hold(path, surely=True, later=path in beginning.later)
            for path in words:
                held._hold(path, surely=False, later=True)
            yield held

    def check(self) -> None:
        """Raise BindingMismatch where something was exchanged since they are held."""
        self._hear()
        if self._exchanged:
            raise BindingMismatch((self._exchanged,))

    def guard(self, process: subprocess.Popen[bytes], begins: Callable[[], bool] = lambda: True) -> None:
        """Kill the group of a process that was just started where something is exchanged or written.

        `begins` tells whether the command itself can have begun. Comes back when there is no more to guard.
        """
        with self._lock:
            self._process = process
            if self._exchanged:
                self._kill()
        try:
            with _ending(process) as ended:
                if self._until_begun(begins, ended):
                    self._all_through(ended)
            self._hear()
        except OSError as error:
            self._end(f"one of its files, for all that is known ({error.strerror})")
        finally:
            with self._lock:
                self._over = True

    def told(self, *, begun: bool) -> tuple[str, ...]:
        """Say why the run was killed, if it was; raises BindingMismatch where nothing of it had begun."""
        if self._exchanged is None and self._written is None:
            return ()
        if not begun:
            raise BindingMismatch((self._exchanged or self._written or "",))
        if self._exchanged:
            why = (
                f"it was killed, because {self._exchanged} was exchanged just when it started, so that "
                "something else may have run than was allowed: look at that file and at who can change it, "
                "then ask again"
            )
        else:
            why = (
                f"it was killed, because {self._written} was opened for writing, or exchanged, while it ran "
                "and could still be read, so that something else might have run than was allowed: change it "
                "when no run of it is under way, then ask again"
            )
        return (why,)

    def _until_begun(self, begins: Callable[[], bool], ended: Callable[[float], bool]) -> bool:
        """Wait until the command has begun, and let go what is held at first; False where it is over."""
        while not begins():
            if ended(_LOOK_BEGUN_S):
                return False
        if ended(_BEGUN_S):
            return False
        self._at_first.close()
        self._begun = True
        return True

    def _all_through(self, ended: Callable[[float], bool]) -> None:
        """Look whether somebody waits to write what is kept; the kernel has them wait."""
        while self._kept and not ended(_LOOK_WRITTEN_S):
            for path, descriptor in self._leased.items():
                if fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
                    self._end(path)
                    return

    def _end(self, path: str) -> None:
        """Kill the run, or have `check` refuse it, for what happened to this file."""
        with self._lock:
            if self._over:
                return
            if self._begun:
                self._written = self._written or path
            else:
                self._exchanged = self._exchanged or path
            self._kill()

    def _hear(self) -> None:
        if self._watching:
            exchanges().hear()

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _hold(self, path: str, *, surely: bool, later: bool) -> None:
        try:
            self._hold_all_of(path, surely=surely, later=later)
        except (FileNotFoundError, NotADirectoryError):
            raise BindingMismatch((path,)) from None
        except OSError as error:
            raise RunError(f"{path} cannot be held still while it is started: {error.strerror}") from error

    def _hold_all_of(self, path: str, *, surely: bool, later: bool) -> None:
        """Hold its place and its text.

        A word that no account may execute is rather worked on than run, perhaps by this very run.
        """
        with ExitStack() as place:
            watched = False
            for directory, name in _way(path):
                if _others_change(os.stat(directory)):  # noqa: PTH116 - for every run
                    self._watch(place, directory, name, EXCHANGED, path)
                    watched = True
            kept = surely
            with suppress(FileNotFoundError):  # the last look tells of it
                status = os.stat(path)  # noqa: PTH116 - as above
                kept |= bool(status.st_mode & _RUN)
                if _others_change(status) and stat.S_ISREG(status.st_mode):
                    later |= self._hold_file(path, kept=kept)
            kept &= later
            self._kept |= kept and watched
            (self._all_along if kept else self._at_first).push(place.pop_all())

    def _hold_file(self, path: str, *, kept: bool) -> bool:
        """Hold its text; tells whether parts of it may be opened again by name, as of an archive."""
        self._kept |= kept
        with ExitStack() as stack:
            descriptor = _opened(path)
            if descriptor is not None:
                stack.callback(os.close, descriptor)
            if descriptor is None or not _lease(path, descriptor):
                self._watch(stack, path, "", MODIFIED, path)
            elif kept:
                self._leased[path] = descriptor
            archive = descriptor is not None and _is_archive(descriptor)
            (self._all_along if kept else self._at_first).push(stack.pop_all())
            return archive

    def _watch(self, stack: ExitStack, place: str, name: str, events: int, path: str) -> None:
        self._watching = True
        stack.enter_context(exchanges().watched(place, name, events, Watched(path, self._end)))


def _opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except PermissionError:
        return None
    except BlockingIOError:
        raise RunError(
            f"{path} is held by another process (a lease), so that it could change just when it is started; "
            "close it there and ask again"
        ) from None
    except OSError as error:
        raise RunError(f"{path} cannot be held still while it is started: {error.strerror}") from error


def _is_archive(descriptor: int) -> bool:
    with open(descriptor, "rb", closefd=False) as file:
        return zipfile.is_zipfile(file)


def _lease(path: str, descriptor: int) -> bool:
    """Make whoever opens it for writing wait; False where this kernel, or file system, knows no lease.

    A mapping that was made before counts as open for writing.
    """
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


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Give what waits for its end, for so many seconds at most, and tells whether it came."""
    descriptor = os.pidfd_open(process.pid)
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    try:
        yield lambda seconds: bool(poller.poll(seconds * 1000))
    finally:
        os.close(descriptor)


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


def _others_change(status: os.stat_result) -> bool:
    """Tell whether anybody but root could change what this is."""
    return status.st_uid != 0 or bool(status.st_mode & _OTHERS_WRITE)
