"""What a held run on the host does not have: from a plan and what is there to an ordered list of mounts.

The run's mount namespace shows everything as it is, but for Sayso's own state and programs, the sockets and
spools of programs that start others on request, and the terminals of others. What was taken away cannot be
put back: the namespace belongs to a user namespace in which the command has no rights.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from posixpath import dirname
from typing import Final

from adapters.runners.accounts import Account
from adapters.runners.further_mounts import DEVICES, further_mounts
from adapters.runners.home import closed_top, home_layout, nearest
from adapters.runners.mounts import Effect, Mount
from adapters.runners.other_names import mounts_now, other_names
from core.model.plan import SandboxPlan
from core.sandbox.protected import CROWDED, RUNTIME, RUNTIME_SHOWN, SPOOLS

_CONTROL: Final = ("cgroup", "cgroup2")
_CGROUPS: Final = "/sys/fs/cgroup"  # one mount on it keeps all below
_BOUND: Final = Path("/proc/net/unix")
_PATH_COLUMN: Final = 7


def host_mounts(plan: SandboxPlan, account: Account, *, by_person: bool, cwd: str) -> tuple[Mount, ...]:
    """Order the mounts of a held run on the host; a deeper one decides, of equal ones what hides.

    What a person allowed may reach the sockets that the operator opens, and write all of the home.
    """
    wanted: dict[str, Effect] = {}
    sockets = has_sockets(plan, by_person=by_person)
    reachable = [path for path in plan.masked if account.barrier(path) is None]
    kept = [path for path in plan.read_only if account.barrier(path) is None]
    shown = [mount.path for mount in _opened(plan.readable)]
    hidden = list(_hidden(reachable))
    for mount in (
        *hidden,
        *_shut(account),
        *_further(account, by_person=by_person),
        *(_sockets(account) if sockets else ()),  # the filter leaves others none to reach
        *_unwritable(kept),
    ):
        wanted.setdefault(mount.path, mount.effect)
    for mount in () if by_person else _unwritable(_cgroups(account)):
        wanted.setdefault(mount.path, mount.effect)
    laid = {} if by_person else _where_not_kept(home_layout(account, plan.workspace), wanted)
    spared = _spared(plan, account, cwd, by_person=by_person)
    rooms = [room for room in _rooms(hidden, account, laid | wanted) if room not in spared]
    below = {path: effect for room in rooms for path, effect in closed_top(room).items()}
    wanted = below | laid | dict.fromkeys(rooms, Effect.SHOW) | wanted
    unchanged = [path for path, effect in laid.items() if effect is Effect.SHOW]
    for mount in _pinned((*reachable, *kept, *shown, *unchanged), account):
        if nearest(wanted, mount.path) is not Effect.SHOW:  # a pin is writable; there nothing can be renamed
            wanted.setdefault(mount.path, mount.effect)
    visible = (Mount(Effect.SHOW, path) for path in shown)
    return (*_ordered(wanted), *visible, *_opened(plan.sockets if sockets else ()))


def has_sockets(plan: SandboxPlan, *, by_person: bool) -> bool:
    """Tell whether a held run has Unix sockets: where a person allowed it, and the operator opens some."""
    return by_person and bool(plan.sockets)


def keeps_unwritten(plan: SandboxPlan, account: Account, path: str, cwd: str, *, by_person: bool) -> bool:
    """Tell whether a run that begins now cannot write what takes the place of a hidden file meanwhile."""
    if plan.unheld is not None or path not in plan.masked or not os.path.isfile(path):  # noqa: PTH113 - for every run
        return False
    room = dirname(os.path.realpath(path))
    open_to_it = room in _spared(plan, account, cwd, by_person=by_person)
    return not open_to_it and account.barrier(path) is None and account.may_change(room)


def _spared(plan: SandboxPlan, account: Account, cwd: str, *, by_person: bool) -> frozenset[str]:
    """Give the places that are never closed for what is hidden in them."""
    own = (os.path.realpath(account.home or "/"), cwd) if by_person else ()
    return CROWDED | {plan.workspace, *own}


def devices(account: Account) -> tuple[str, ...]:
    """List what a run keeps of /dev: what its account may open and is no terminal of anybody."""
    return _devices(account, os.stat("/dev").st_mtime_ns)  # noqa: PTH116 - for every run


@lru_cache(maxsize=16)
def _devices(account: Account, _changed: int) -> tuple[str, ...]:
    with os.scandir("/dev") as found:
        kept = (entry.path for entry in found if _is_kept(entry, account))
        return tuple(sorted(kept))


def _hidden(paths: Iterable[str]) -> Iterator[Mount]:
    for path in paths:
        for name in (os.path.realpath(path), *other_names(os.path.realpath(path))):
            if os.path.lexists(name):
                yield _hiding(name)


def _hiding(path: str) -> Mount:
    return Mount(Effect.HIDE_DIRECTORY if Path(path).is_dir() else Effect.HIDE_FILE, path)


def _shut(account: Account) -> Iterator[Mount]:
    """Hide where the sockets and spools of programs lie that start others."""
    for place in (RUNTIME, *SPOOLS):
        if Path(place).is_dir() and account.barrier(place) is None:
            yield Mount(Effect.HIDE_DIRECTORY, place)
    for place in RUNTIME_SHOWN:
        if os.path.exists(place) and account.barrier(place) is None:  # noqa: PTH110 - for every run
            yield Mount(Effect.OPEN, os.path.realpath(place))


def _further(account: Account, *, by_person: bool) -> Iterator[Mount]:
    """Hide what is mounted once more of that which a run has anew, or not at all."""
    for place in further_mounts(processes=not by_person):
        if account.barrier(place) is None:
            yield _hiding(place)


def _sockets(account: Account) -> Iterator[Mount]:
    """Hide the sockets that the account could connect to."""
    reachable = (path for path in _bound_sockets() if account.barrier(path) is None)
    for path in dict.fromkeys(_room(path) for path in reachable if account.may(path, os.W_OK)):
        yield _hiding(path)


def _bound_sockets() -> Iterator[str]:
    """Find every socket that is bound to a path now, but for those in places that are hidden or known."""
    for line in _BOUND.read_bytes().splitlines()[1:]:
        row = line.split(None, _PATH_COLUMN)
        path = os.fsdecode(row[_PATH_COLUMN]) if len(row) > _PATH_COLUMN else ""
        if path.startswith("/") and not path.startswith(f"{RUNTIME}/") and _is_socket(path):
            yield os.path.realpath(path)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - for every socket of the machine
    except OSError:
        return False


def _room(path: str) -> str:
    """Give the directory of a socket where that holds nothing else, so that its successor is hidden too."""
    room = dirname(path)
    if room in CROWDED:
        return path
    try:
        with os.scandir(room) as found:
            alone = all(stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode) for entry in found)
    except OSError:
        return path
    return room if alone else path


def _unwritable(paths: Iterable[str]) -> Iterator[Mount]:
    for path in paths:
        real = os.path.realpath(path)
        for name in (real, *other_names(real)):
            if os.path.lexists(name):
                yield Mount(Effect.SHOW, name)


def _cgroups(account: Account) -> Iterator[str]:
    """Find where control groups can be changed, by which all processes in one are frozen or killed."""
    mounted = (mount.place for mount in mounts_now() if mount.kind in _CONTROL)
    found = dict.fromkeys(_CGROUPS if place.startswith(f"{_CGROUPS}/") else place for place in mounted)
    yield from (place for place in found if os.path.isdir(place) and account.barrier(place) is None)  # noqa: PTH112 - for every run


def _where_not_kept(laid: Mapping[str, Effect], kept: Mapping[str, Effect]) -> dict[str, Effect]:
    """Leave out what would open again what is kept anyway."""
    return {
        path: effect
        for path, effect in laid.items()
        if effect is Effect.SHOW or nearest(kept, path) is not Effect.SHOW
    }


def _rooms(hidden: Iterable[Mount], account: Account, laid: Mapping[str, Effect]) -> Iterator[str]:
    """Find the directories of hidden files that the account can change.

    Another file in the place of a hidden one, put there from outside, is not hidden in a run under way: the
    directory is closed too, so that it can only be read.
    """
    files = (mount.path for mount in hidden if mount.effect is Effect.HIDE_FILE)
    for room in dict.fromkeys(map(dirname, files)):
        if nearest(laid, room) is not Effect.SHOW and account.may_change(room):
            yield room


def _pinned(paths: Iterable[str], account: Account) -> Iterator[Mount]:
    """Bind onto itself each directory above that the account could rename, so that it cannot."""
    above = (parent for path in paths for parent in map(str, Path(os.path.realpath(path)).parents))
    for directory in dict.fromkeys(above):
        if directory != "/" and account.may_change(dirname(directory)):
            yield Mount(Effect.PIN, directory)


def _opened(sockets: Sequence[str]) -> Iterator[Mount]:
    for path in sockets:
        if os.path.exists(path):  # noqa: PTH110 - for every run
            yield Mount(Effect.OPEN, os.path.realpath(path))


def _ordered(wanted: dict[str, Effect]) -> list[Mount]:
    """Leave out what lies below something hidden and is hidden, kept or pinned there anyway."""
    ordered: dict[str, Effect] = {}
    for path in sorted(wanted, key=lambda each: (each.count("/"), each)):
        within = nearest(ordered, dirname(path)) is Effect.HIDE_DIRECTORY
        if wanted[path] is Effect.OPEN or not within:
            ordered[path] = wanted[path]
    return [Mount(effect, path) for path, effect in ordered.items()]


def _is_kept(entry: os.DirEntry[str], account: Account) -> bool:
    if DEVICES.fullmatch(entry.name) is None or entry.is_symlink():
        return False
    return account.may(entry.path, os.R_OK | (os.X_OK if entry.is_dir() else os.W_OK))
