"""Files and directories held open, so that what is mounted is what was looked at.

`Sources` opens each path once, component by component, and follows no link: the operator's own links were
resolved when the configuration was read, and one that is there now was made since. Hand its descriptors to
what mounts; where that only takes paths, ask `exchanged` afterwards, before anything runs there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.errors import RunError

_COMPONENT = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Source:
    """A file or directory that is held open; `inode` tells it from every other, on device `device`."""

    path: str
    descriptor: int
    device: int
    inode: int


class Sources:
    """Holds what one run is to be shown, until it is closed."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._held: dict[str, Source] = {}

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[Sources]:
        """Give an empty one, and close what it holds afterwards."""
        with contextlib.ExitStack() as stack:
            yield cls(stack)

    @property
    def all(self) -> tuple[Source, ...]:
        """All that is held, in the order it was opened."""
        return tuple(self._held.values())

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors of all that is held; O_PATH, so that nothing can be read or written by them."""
        return tuple(source.descriptor for source in self.all)

    def hold(self, path: str) -> Source:
        """Open an absolute path, or give what is held of it; raises RunError where a link is on the way."""
        if path not in self._held:
            descriptor = open_without_links(path)
            self._stack.callback(os.close, descriptor)
            found = os.fstat(descriptor)
            self._held[path] = Source(path, descriptor, found.st_dev, found.st_ino)
        return self._held[path]


def open_without_links(path: str, root: str = "/") -> int:
    """Open a path below `root` with O_PATH; raises RunError that names the link, or what cannot be passed."""
    at = root
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in filter(None, path.split("/")):
            at = f"{at.rstrip('/')}/{name}"
            above, descriptor = descriptor, os.open(name, _COMPONENT, dir_fd=descriptor)
            os.close(above)
            _refuse_link(descriptor, path, at, name)
    except OSError as error:
        os.close(descriptor)
        raise RunError(f"{path} cannot be shown in the sandbox: {at}: {error.strerror}") from error
    except RunError:
        os.close(descriptor)
        raise
    return descriptor


def exchanged(pid: int, sources: Iterable[Source]) -> str | None:
    """Return the first place where a process sees something else than is held, or None; follows no link.

    Raises PermissionError where this process may not look into the other's file system.
    """
    for source in sources:
        try:
            descriptor = open_without_links(source.path, f"/proc/{pid}/root")
        except RunError:
            return source.path
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if (found.st_dev, found.st_ino) != (source.device, source.inode):
            return source.path
    return None


def _refuse_link(descriptor: int, path: str, at: str, name: str) -> None:
    if name == ".." or stat.S_ISLNK(os.fstat(descriptor).st_mode):
        raise RunError(
            f"{path} is not shown in the sandbox, because {at} is a link that was not there when the "
            "configuration was read; put the directory itself there, or start Sayso again if it is meant"
        )
