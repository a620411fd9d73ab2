"""Where a process of somebody else and a sandboxed run could both get to, and so meet at a Unix socket.

What comes through one undoes every mount: a descriptor of `/` from outside shows all that is outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from adapters.runners.accounts import Account, has_list
from adapters.runners.groups import is_alone_in
from adapters.runners.process import Ending, Streams
from adapters.runners.threaded import scopes_abstract_sockets
from core.model.plan import SandboxPlan
from core.sandbox.plan import visible

_VENDORS: Final = ("/opt", "/usr/local")  # of the system's directories, where others than root put things
_ABSTRACT: Final = "the host's network, where this kernel closes no abstract sockets (Linux 6.12 does)"


def meeting_place(plan: SandboxPlan, account: Account) -> str | None:
    """Name a place that the run shares with others than root and its own account, or None.

    A socket that an operator shows itself is meant to be used. It is none such place, and opens none: what
    lets a run connect to it lets it connect to any socket that others put where they can.
    """
    if plan.network and not scopes_abstract_sockets():
        return _ABSTRACT
    shared = tuple(path for path in (*plan.writable, *plan.readable) if not is_socket(path))
    open_to_others = (path for path in shared if others_get_to(path, account, shared))
    return next(open_to_others, None) or next(_of_others(plan, account), None)


def others_get_to(path: str, account: Account, shared: Sequence[str] = ()) -> bool:
    """Tell whether another account than this one and root may be able to enter a directory; in doubt yes.

    One of the account's own that is shared, or lies in what is, keeps nobody out: the run can open it.
    """
    way = (path, *map(str, Path(path).parents))
    return all(_lets_others_in(directory, account, seen=_lies_in(directory, shared)) for directory in way)


def _lies_in(path: str, shared: Sequence[str]) -> bool:
    return any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in shared)


def wanted_socket(ending: Ending, streams: Streams, place: str) -> Iterator[str]:
    """Say why a Unix socket was refused, where the run seems to have ended over one."""
    said = streams.stderr.text()[0].lower()
    if ending.exit_code != os.EX_OK and "permission denied" in said and "socket" in said:
        yield (
            "it seems to have wanted a Unix socket, and a sandboxed run has none where others can get to "
            f"what it shares with the host: {place} (a directory above it with mode 0700 keeps them out)"
        )


def is_socket(path: str) -> bool:
    """Tell whether there is a socket at a path."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - for every run
    except OSError:
        return False


def _of_others(plan: SandboxPlan, account: Account) -> Iterator[str]:
    for place in _VENDORS:
        if not visible(plan, place):
            continue
        try:
            with os.scandir(place) as entries:
                owners = ((entry.path, entry.stat(follow_symlinks=False).st_uid) for entry in entries)
                yield from (path for path, owner in owners if owner not in {0, account.uid})
        except OSError:
            continue


def _lets_others_in(directory: str, account: Account, *, seen: bool) -> bool:
    try:
        found = os.stat(directory)  # noqa: PTH116 - for every run
    except OSError:
        return True
    if seen and found.st_uid == account.uid:
        return True
    if found.st_uid not in {0, account.uid} or found.st_mode & stat.S_IXOTH or has_list(directory):
        return True
    return bool(found.st_mode & stat.S_IXGRP) and not is_alone_in(found.st_gid, account.uid)
