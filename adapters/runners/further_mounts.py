"""Where devices, terminals, processes and runtime files are shown once more, as in the tree of a chroot.

A held run has a `/dev` of its own, one that a rule alone admits a `/proc` of its own, and none a `/run`:
further mounts of the same, and bind mounts of pieces of them, would give it back what it has not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from adapters.runners.other_names import MountedAt, is_same, mounts_now, names_in
from core.sandbox.protected import RUNTIME, SPOOLS, hidden_on_host

# Beside what bwrap puts into a /dev of its own; no terminals, and nothing that types into them (uinput).
DEVICES: Final = re.compile(
    r"accel|disk|dri|fuse|hwrng|kfd|kvm|loop\d+|mapper|net|nvidia[\w-]*|rtc\d*|snd|vhost-[\w-]+|video\d+|vsock"
)
_OF_BUBBLEWRAP: Final = re.compile(r"full|null|random|tty|urandom|zero")
_DEV: Final = "/dev"
_PROC: Final = "/proc"
_TERMINALS: Final = ("devpts", "devtmpfs")


def further_mounts(*, processes: bool) -> Iterator[str]:
    """Find each place at which a run could reach such a thing; with `processes` those of others too."""
    mounts = mounts_now()
    for mount in _of_kinds(mounts, processes=processes):
        if _is_on_top(mount):
            yield mount.place
    yield from (name for path, name in _other_names(mounts) if is_same(path, name) and os.path.lexists(name))


@lru_cache(maxsize=4)
def _of_kinds(mounts: tuple[MountedAt, ...], *, processes: bool) -> tuple[MountedAt, ...]:
    kinds = (*_TERMINALS, "proc") if processes else _TERMINALS
    anew = (_DEV, _PROC) if processes else (_DEV,)
    return tuple(
        mount
        for mount in mounts
        if mount.kind in kinds
        and not _within(mount.place, anew)
        and not (mount.kind == "devtmpfs" and _is_kept(mount.root))
    )


@lru_cache(maxsize=2)
def _other_names(mounts: tuple[MountedAt, ...]) -> tuple[tuple[str, str], ...]:
    """Pair what a run has not with its other names; a piece that it has anyway is none."""
    found = [(_DEV, name) for name, part in names_in(_DEV, mounts) if not _is_kept(part)]
    for place in map(os.path.realpath, (RUNTIME, *SPOOLS)):
        names = names_in(place, mounts)
        found += [(place, name) for name, part in names if hidden_on_host(f"{place}/{part}".rstrip("/"))]
    return tuple((path, name) for path, name in found if not _within(name, (path, _DEV)))


def _is_kept(part: str) -> bool:
    """Tell whether a piece of /dev is one that the run's own has too."""
    name = part.lstrip("/").split("/", 1)[0]
    return bool(DEVICES.fullmatch(name) or _OF_BUBBLEWRAP.fullmatch(name))


def _is_on_top(mount: MountedAt) -> bool:
    """Tell whether a mount can be reached, and is not covered by another one."""
    try:
        device = os.stat(mount.place).st_dev  # noqa: PTH116 - for every run
    except OSError:
        return False
    return mount.device == b"%d:%d" % (os.major(device), os.minor(device))


def _within(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
