"""What of its account's home a run may write that a rule alone admits: directories of work, and no more.

What other programs of the same user read and run later lies at the top of the home, in what begins with a
dot, and where programs are kept. Such names are without end, so that none is listed: all of it can be read
and not changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, join
from typing import Final

from adapters.runners.accounts import Account
from adapters.runners.mounts import Effect
from adapters.runners.other_names import parts_elsewhere
from core.sandbox.protected import CROWDED, PROGRAM_PLACES

_OF_THE_KERNEL: Final = ("/dev", "/proc", "/sys")


def home_layout(account: Account, workspace: str) -> dict[str, Effect]:
    """Lay out the home: it cannot be changed, its directories of work and the workspace can."""
    home = os.path.realpath(account.home or "/")
    if not _is_to_close(home, account):
        return {}
    laid = closed_top(home)
    for path in [path for path in laid if path != home and _is_closed(basename(path))]:
        del laid[path]
    laid |= _programs(home, laid)
    laid |= dict.fromkeys(_led_to(home, laid, account, workspace), Effect.SHOW)
    if _is_to_open(workspace, home, laid):
        laid[workspace] = Effect.PIN
    return laid | _elsewhere(home, laid, account)


def closed_top(directory: str) -> dict[str, Effect]:
    """Close the top of a directory: nothing can be made, exchanged or written there but in directories."""
    return {directory: Effect.SHOW} | dict.fromkeys(_directories(directory), Effect.WORK)


def nearest(laid: Mapping[str, Effect], path: str) -> Effect | None:
    """Give what decides about a path: what is laid on it, or on the first directory above that has any."""
    while path not in laid and path != "/":
        path = dirname(path)
    return laid.get(path)


def _is_to_close(home: str, account: Account) -> bool:
    if home in CROWDED or not os.path.isdir(home) or account.barrier(home) is not None:  # noqa: PTH112 - for every run
        return False
    if not account.may(home, os.X_OK):
        return False
    closed = (path for path in _directories(home) if _is_closed(basename(path)))
    return account.may_change(home) or any(map(account.may_change, closed))


def _is_closed(name: str) -> bool:
    return name.startswith(".") or name in PROGRAM_PLACES


def _programs(home: str, laid: Mapping[str, Effect]) -> dict[str, Effect]:
    """Close places of programs within directories of work, and where there is none, the place to make it."""
    closed: dict[str, Effect] = {}
    for place in (join(home, name) for name in PROGRAM_PLACES if "/" in name):
        if dirname(place) in laid:
            there = place in _directories(dirname(place))
            closed |= {place: Effect.SHOW} if there else closed_top(dirname(place))
    return closed


def _led_to(home: str, laid: Mapping[str, Effect], account: Account, workspace: str) -> Iterator[str]:
    """Find where links at the top and one level below lead from closed places (`.bashrc` to `dotfiles/…`)."""
    for link in _links(home):
        real = os.path.realpath(link)
        above = real in CROWDED or real == workspace or home.startswith(f"{real}/")
        if not above and nearest(laid, real) is not Effect.SHOW and _is_own(real, account):
            yield real


def _links(home: str) -> Iterator[str]:
    for entry in _entries(home):
        if not _is_closed(entry.name):
            continue
        if entry.is_symlink():
            yield entry.path
        elif entry.is_dir(follow_symlinks=False):
            yield from (each.path for each in _entries(entry.path) if each.is_symlink())
    yield from (join(home, name) for name in PROGRAM_PLACES)


def _is_own(path: str, account: Account) -> bool:
    if path.startswith(tuple(f"{place}/" for place in _OF_THE_KERNEL)) or account.barrier(path) is not None:
        return False
    try:
        found = os.stat(path)  # noqa: PTH116 - for every run
    except OSError:
        return False
    return found.st_uid == account.uid and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))


def _is_to_open(workspace: str, home: str, laid: Mapping[str, Effect]) -> bool:
    """Tell whether the operator's workspace lies where all is closed; a closed place as a whole is none.

    The directory that a run asks for opens nothing: it is the agent that names it.
    """
    if not workspace.startswith(f"{home}/") or os.path.realpath(workspace) != workspace:
        return False
    within = workspace[len(home) + 1 :]
    whole = within in PROGRAM_PLACES or ("/" not in within and _is_closed(within))
    return not whole and nearest(laid, workspace) is Effect.SHOW


def _elsewhere(home: str, laid: Mapping[str, Effect], account: Account) -> dict[str, Effect]:
    """Lay out the same where other mounts show the home, or a part of it, under other names."""
    found: dict[str, Effect] = {}
    for name, inside in parts_elsewhere(home):
        part = join(home, inside).rstrip("/")
        whole = {name: Effect.SHOW} if nearest(laid, part) is Effect.SHOW else {}
        below = {path: effect for path, effect in laid.items() if path.startswith(f"{part}/")}
        whole |= {name + path[len(part) :]: effect for path, effect in below.items()}
        found |= {path: effect for path, effect in whole.items() if _is_there(path, account)}
    return {path: effect for path, effect in found.items() if path not in laid}


def _is_there(path: str, account: Account) -> bool:
    return os.path.exists(path) and account.barrier(path) is None  # noqa: PTH110 - for every run


def _directories(directory: str) -> list[str]:
    """List directories that are no links and that can be looked at."""
    found = (entry.path for entry in _entries(directory) if entry.is_dir(follow_symlinks=False))
    return [path for path in found if os.path.isdir(path)]  # noqa: PTH112 - for every run


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
