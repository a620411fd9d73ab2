"""Finds programs and directories in the file system, and tells whether others could change them."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from stat import (
    S_ISCHR,
    S_ISDIR,
    S_ISGID,
    S_ISLNK,
    S_ISREG,
    S_ISUID,
    S_IWGRP,
    S_IWOTH,
    S_IXGRP,
    S_IXOTH,
    S_IXUSR,
)
from typing import Self

from adapters.resolvers.aliases import aliases
from adapters.resolvers.reading import BEGINNING, Reading
from core.model.command import NOT_LOOKED_AT, UNHASHED, Directory, Executable, FileIdentity, RealPath

_OTHERS_WRITE = S_IWGRP | S_IWOTH
_EXECUTE = S_IXUSR | S_IXGRP | S_IXOTH
_MAX_LINKS = 40
_PATHS_KEPT = 64
_OUTPUTS = frozenset(("/dev/stdout", "/dev/stderr"))
_EMPTY_DEVICES = frozenset((os.makedev(1, 3), os.makedev(1, 7)))  # /dev/null and /dev/full
_ELF = b"\x7fELF"
_NOT_THERE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG))
_HERE = frozenset(("", "."))
_NO_FILE = frozenset(("", ".", ".."))
_TO_DIRECTORY = ("/", "/.", "/..")


class _MagicLinkError(OSError):
    """A link below /proc, which leads elsewhere for each process."""


class _ClosedByRootError(PermissionError):
    """A directory that we may not enter, and that nobody but root can change."""


class FilesystemResolver:
    """The Resolver over the real file system; everything that goes wrong means "not found"."""

    def __init__(
        self,
        *,
        hash_limit: int = 64 * 1024 * 1024,
        total_limit: int = 192 * 1024 * 1024,
        seconds: float = 3.0,
    ) -> None:
        self._hash_limit = hash_limit
        self._total_limit = total_limit
        self._seconds = seconds
        self._left: Reading | None = None  # what is left to read, where this is for one command
        self._fixed: dict[str, os.stat_result] | None = None  # directories, where this is for one command

    def for_one_command(self) -> Self:
        """Return the same with a limit on what is read and how long, over all that it is asked.

        Directories on the way to which nobody but root changes anything are looked at once.
        """
        limited = self.__new__(type(self))
        limited.__dict__.update(self.__dict__, _left=None, _fixed={})
        return limited

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        """Find a program as execvp would."""
        for place in _places(name, path, cwd):
            if found := self._look(name, place):
                return found
        return None

    def file(self, path: str) -> FileIdentity | None:
        """Tell a regular file from every other; of what is none, no text can be known beforehand."""
        if self._reading.over:
            return NOT_LOOKED_AT
        try:
            _status(path)
            _, real, status, trusted = self._resolved(path)
            if S_ISREG(status.st_mode):
                return self._identity(real, status, trusted=trusted)
            return None if _is_only_a_place(status) else NOT_LOOKED_AT
        except _MagicLinkError:
            return None if path in _OUTPUTS else NOT_LOOKED_AT
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            return None if error.errno in _NOT_THERE else self._hidden(path)

    def _hidden(self, path: str) -> FileIdentity | None:
        """Tell what root alone hides, and could put there, from what anybody else may show again."""
        with suppress(OSError, ValueError):
            try:
                self._resolved(path)
            except _ClosedByRootError:
                return None
        return NOT_LOOKED_AT

    def beginning(self, path: str, identity: FileIdentity) -> bytes | None:
        """Give the first bytes of a file that was looked at.

        One that root alone can change, and we cannot read, no interpreter could read either.
        """
        if identity.sha256 not in {None, UNHASHED} and self._fixed is not None:
            return self._reading.beginning(identity)
        return _beginning_or_none(path, identity)

    def real_directory(self, path: str) -> str | None:
        """Return the real path of an existing directory, or None."""
        try:
            real = posixpath.realpath(path, strict=True)
            return real if path.startswith("/") and S_ISDIR(_status(real).st_mode) else None
        except (OSError, ValueError):
            return None

    def directory(self, path: str) -> Directory | None:
        """Tell which directory is at an absolute path now, or None."""
        try:
            status = _status(path)
        except (OSError, ValueError):
            return None
        return Directory(path, status.st_dev, status.st_ino) if S_ISDIR(status.st_mode) else None

    def real_path(self, path: str) -> RealPath | None:
        """Follow an absolute path through every link as far as it exists; None where that cannot be told."""
        if not path.startswith("/") or "\0" in path:
            return None
        try:
            return None if _passes_magic_link(path) else _seen(posixpath.realpath(path))
        except (OSError, ValueError):
            return None

    def _look(self, name: str, place: str) -> Executable | None:
        try:
            # A miss costs no exception.
            return self._found(name, place) if os.access(place, os.F_OK) else None
        except (OSError, ValueError):
            return None

    def _found(self, name: str, place: str) -> Executable | None:
        found, real, status, trusted = self._resolved(place)
        if not _is_program(status):
            return None
        identity = self._identity(real, status, trusted=trusted)
        if identity.sha256 == UNHASHED:
            return None
        script = _beginning_or_none(real, identity) != _ELF
        privileged = not script and _is_privileged(real, status)
        return Executable(
            name, found, real, identity, trusted, aliases(place, found, real), script, privileged
        )

    def _resolved(self, place: str) -> tuple[str, str, os.stat_result, bool]:
        """Tell a file's path by real directories, its real path, what it is, and if only root changes it."""
        if not place.startswith("/"):
            raise ValueError(place)
        way = _Way()
        directory, _, base = place.rpartition("/")
        status = self._fixed.get(directory) if self._fixed else None
        if status is None:
            real_directory, status = way.follow("/", way.look("/"), directory)
            if self._fixed is not None and way.trusted and real_directory == directory:
                self._fixed[directory] = status
        else:
            real_directory = directory
        real, found = way.follow(real_directory, status, base)
        path = f"{real_directory}/{base}" if real_directory != "/" else f"/{base}"
        return path, real, found, way.trusted

    def _identity(self, real: str, status: os.stat_result, *, trusted: bool) -> FileIdentity:
        digest = None if trusted else self._digest(real, status) or UNHASHED
        return FileIdentity(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, digest
        )

    def _digest(self, real: str, seen: os.stat_result) -> str | None:
        """Hash the file that was looked at; None for one too large, exchanged meanwhile, or closed to us."""
        try:
            return self._reading.digest(real, seen)
        except FileNotFoundError:
            raise
        except OSError:  # its rights, or the lease of another process, forbid it for now
            return None

    @property
    def _reading(self) -> Reading:
        if self._left is not None:
            return self._left
        begun = Reading(file_limit=self._hash_limit, total_limit=self._total_limit, seconds=self._seconds)
        if self._fixed is not None:
            self._left = begun
        return begun


def _passes_magic_link(path: str) -> bool:
    """Tell whether a link below /proc is followed on the way: it leads elsewhere for each process."""
    rest, at, links = path.split("/"), "/", 0
    while rest:
        at = posixpath.normpath(posixpath.join(at, rest.pop(0)))
        if not posixpath.islink(at):
            continue
        links += 1
        if links > _MAX_LINKS or _below_proc(at):
            return True
        rest = [*os.readlink(at).split("/"), *rest]  # noqa: PTH115 - the text, not a Path
        at = "/" if rest[0] == "" else posixpath.dirname(at)
    return False


def _is_only_a_place(status: os.stat_result) -> bool:
    empty = S_ISCHR(status.st_mode) and status.st_rdev in _EMPTY_DEVICES
    return empty or S_ISDIR(status.st_mode)


def _below_proc(path: str) -> bool:
    return path.startswith("/proc/")


def _seen(real: str) -> RealPath | None:
    try:
        status = os.lstat(real)
    except FileNotFoundError:
        return RealPath(real, "missing")
    if S_ISLNK(status.st_mode):
        return None  # a loop of links, which realpath leaves as it is
    if S_ISREG(status.st_mode):
        return RealPath(real, "file", status.st_size)
    return RealPath(real, "directory" if S_ISDIR(status.st_mode) else "other")


def _places(name: str, path: Sequence[str], cwd: str) -> Sequence[str]:
    if name in _NO_FILE or name.endswith(_TO_DIRECTORY):
        return ()
    if "/" not in name:
        return [beginning + name for beginning in _beginnings(tuple(path))]
    return (posixpath.join(cwd, name),) if cwd.startswith("/") else ()


@lru_cache(maxsize=_PATHS_KEPT)
def _beginnings(path: tuple[str, ...]) -> tuple[str, ...]:
    """Give the directories of a PATH as programs' names stand behind them; relative ones are none."""
    return tuple(posixpath.join(directory, "") for directory in path if directory.startswith("/"))


def _status(path: str) -> os.stat_result:
    return os.stat(path)  # noqa: PTH116 - every command looks at many places; pathlib takes five times as long


def _is_program(status: os.stat_result) -> bool:
    return S_ISREG(status.st_mode) and bool(status.st_mode & _EXECUTE)


def _is_privileged(real: str, status: os.stat_result) -> bool:
    """Tell whether the kernel gives a program rights that its caller has not."""
    return bool(status.st_mode & (S_ISUID | S_ISGID)) or _has_capabilities(real, status.st_ctime_ns)


@lru_cache(maxsize=4096)
def _has_capabilities(real: str, _touched: int) -> bool:
    try:
        return bool(os.getxattr(real, "security.capability"))
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.EOPNOTSUPP)


@lru_cache(maxsize=4096)
def _beginning(path: str, _changed: int, _touched: int) -> bytes:
    """Read the first bytes of a file, the sign alone where it is a program."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        begins = file.read(BEGINNING) if S_ISREG(os.fstat(descriptor).st_mode) else b""
    return _ELF if begins.startswith(_ELF) else begins


def _beginning_or_none(path: str, identity: FileIdentity) -> bytes | None:
    try:
        return _beginning(path, identity.mtime_ns, identity.ctime_ns)
    except OSError:
        return b"" if identity.sha256 is None else None


class _Way:
    """A path followed link by link, every part of it looked at once."""

    __slots__ = ("_links", "_seen", "trusted")

    def __init__(self) -> None:
        self.trusted = True  # only root can write to what was passed
        self._links = 0
        self._seen: dict[str, os.stat_result] = {}

    def follow(self, at: str, status: os.stat_result, rest: str) -> tuple[str, os.stat_result]:
        """Return where `rest`, which begins in the real directory `at`, leads, and what is there."""
        parts, seen = rest.split("/")[::-1], self._seen
        while parts:
            part = parts.pop()
            if not S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", at)
            if part in _HERE:
                continue
            place = posixpath.dirname(at) if part == ".." else f"{at}/{part}" if at != "/" else f"/{part}"
            found = seen.get(place) or self.look(place)
            if not S_ISLNK(found.st_mode):
                at, status = place, found
                continue
            target = self._target(place)
            parts += target.split("/")[::-1]
            if target.startswith("/"):
                at, status = "/", self._seen.get("/") or self.look("/")
        return at, status

    def look(self, place: str) -> os.stat_result:
        """Look at a place below a real directory; who else can write to it counts where it is no link."""
        try:
            found = self._seen[place] = os.lstat(place)
        except PermissionError as error:
            raise (_ClosedByRootError if self.trusted else PermissionError)(*error.args) from None
        mode = found.st_mode
        if (found.st_uid or mode & _OTHERS_WRITE) and not S_ISLNK(mode):
            self.trusted = False
        return found

    def _target(self, place: str) -> str:
        self._links += 1
        if _below_proc(place):
            raise _MagicLinkError(errno.ELOOP, "leads elsewhere for each process", place)
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, "too many links", place)
        return os.readlink(place)  # noqa: PTH115 - the text, not a Path
