"""Finds programs and directories in the file system, and tells whether others could change them."""

from __future__ import annotations

import errno
import hashlib
import posixpath
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from core.model.command import Executable, FileIdentity

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_MAX_LINKS = 40


class FilesystemResolver:
    """The Resolver over the real file system; everything that goes wrong means "not found"."""

    def __init__(self, *, hash_limit: int = 64 * 1024 * 1024) -> None:
        self._hash_limit = hash_limit

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        """Find a program as execvp would."""
        looked = (self._look(name, place) for place in _places(name, path, cwd))
        return next(filter(None, looked), None)

    def real_directory(self, path: str) -> str | None:
        """Return the real path of an existing directory, or None."""
        try:
            real = Path(path).resolve(strict=True)
            return str(real) if path.startswith("/") and real.is_dir() else None
        except (OSError, ValueError, RuntimeError):
            return None

    def _look(self, name: str, place: str) -> Executable | None:
        try:
            return self._found(name, place)
        except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links
            return None

    def _found(self, name: str, place: str) -> Executable | None:
        found = _directory_resolved(place)
        real = found.resolve(strict=True)
        status = real.stat()
        if not stat.S_ISREG(status.st_mode) or not status.st_mode & _EXECUTE:
            return None
        trusted = all(_only_root_writes(step) for step in _ways(found, real))
        digest = None if trusted else self._digest(real, status.st_size)
        if not trusted and digest is None:
            return None
        identity = FileIdentity(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, digest
        )
        return Executable(name, str(found), str(real), identity, trusted)

    def _digest(self, real: Path, size: int) -> str | None:
        """Hash the file; one that is too large, or changes size meanwhile, counts as not found."""
        if size > self._hash_limit:
            return None
        with real.open("rb") as file:
            content = file.read(self._hash_limit + 1)
        return hashlib.sha256(content).hexdigest() if len(content) == size else None


def _places(name: str, path: Sequence[str], cwd: str) -> Iterator[str]:
    if not name or name.endswith("/") or posixpath.basename(name) in {".", ".."}:
        return
    if "/" not in name:
        yield from (posixpath.join(directory, name) for directory in path if directory.startswith("/"))
    elif cwd.startswith("/"):
        yield posixpath.join(cwd, name)


def _directory_resolved(place: str) -> Path:
    directory, base = posixpath.split(place)
    return Path(directory).resolve(strict=True) / base


def _ways(found: Path, real: Path) -> set[PurePosixPath]:
    """Give the file, and every directory through which it is reached, link by link."""
    steps = {PurePosixPath(real), *PurePosixPath(real).parents}
    place = found
    for _ in range(_MAX_LINKS):
        steps.update(PurePosixPath(place).parents)
        if not place.is_symlink():
            return steps
        place = _directory_resolved(posixpath.join(str(place.parent), str(place.readlink())))
    raise OSError(errno.ELOOP, "too many links", str(found))


def _only_root_writes(path: PurePosixPath) -> bool:
    status = Path(path).stat()
    return status.st_uid == 0 and not status.st_mode & _OTHERS_WRITE
