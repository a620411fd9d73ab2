"""Under which further paths a file is reachable: other mounts of the same file system."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

_TABLE: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


class MountedAt(Struct, frozen=True):
    """One mount: which file system, what of it, where, and of what kind it is."""

    device: bytes
    root: str
    place: str
    kind: str = ""


def mounts_now() -> tuple[MountedAt, ...]:
    """Give what is mounted by now, as far as this process can reach it."""
    return parse_mounts(_TABLE.read_bytes())


def other_names(path: str) -> tuple[str, ...]:
    """Give every other path at which what is at a real path, or a part of it, can be reached by now."""
    return tuple(dict.fromkeys(name for name, _ in parts_elsewhere(path)))


def parts_elsewhere(path: str) -> tuple[tuple[str, str], ...]:
    """Give the other names of a real path, each with what below the path it names: nothing for all of it.

    Another mount may cover what a table of mounts promises: where something else is by now, there is no name.
    """
    mounts = mounts_now()
    return tuple(found for found in dict.fromkeys(names_in(path, mounts)) if is_same(path, found[0]))


@lru_cache(maxsize=2)
def parse_mounts(table: bytes) -> tuple[MountedAt, ...]:
    """Read a table in the form of /proc/self/mountinfo."""
    return tuple(map(_mounted_at, table.splitlines()))


def _mounted_at(line: bytes) -> MountedAt:
    place, _, source = line.partition(b" - ")
    _, _, device, root, point, *_ = place.split(b" ")
    return MountedAt(device, _plain(root), _plain(point), source.split(b" ", 1)[0].decode())


def names_in(path: str, mounts: tuple[MountedAt, ...]) -> Iterator[tuple[str, str]]:
    """Give the other names that a real path has, or that a part of it has, by these mounts, and the part."""
    above = [mount for mount in mounts if _below(path, mount.place) is not None]
    own = max(above, key=lambda mount: len(mount.place), default=None)
    if own is None:
        return
    within = _joined(own.root, _below(path, own.place) or "")
    for mount in mounts:
        if mount.device != own.device:
            continue
        rest, part = _below(within, mount.root), _below(mount.root, within)
        name = mount.place if rest is None else _joined(mount.place, rest)
        if (rest is not None or part is not None) and name != path:
            yield name, (part or "") if rest is None else ""


def is_same(path: str, name: str) -> bool:
    """Tell whether both lie in the same file system; where one cannot be looked at, whether there is one."""
    try:
        ours, theirs = os.stat(path), os.stat(name)  # noqa: PTH116 - looked at for every run on the host
    except OSError:
        return os.path.lexists(name)
    return ours.st_dev == theirs.st_dev


def _below(path: str, directory: str) -> str | None:
    """Give the rest of a path that is this directory, or lies below it; None elsewhere."""
    if directory == "/":
        return path[1:]
    if path == directory:
        return ""
    return path[len(directory) + 1 :] if path.startswith(f"{directory}/") else None


def _joined(directory: str, rest: str) -> str:
    return f"{directory.rstrip('/')}/{rest}".rstrip("/") or "/"


def _plain(text: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda match: bytes((int(match[1], 8),)), text))
