"""Who is in a group, as far as this machine lists its accounts."""

from __future__ import annotations

import grp
import os
import pwd
from functools import lru_cache
from typing import Final

_ACCOUNTS: Final = ("/etc/passwd", "/etc/group")


def is_alone_in(gid: int, uid: int) -> bool:
    """Tell whether a group is this user's alone, but for root; of one without a name nobody knows."""
    members = members_of(gid)
    return members is not None and members <= {uid, 0}


def members_of(gid: int) -> frozenset[int] | None:
    """List who is in a group; None for one without a name."""
    changed = tuple(os.stat(path).st_mtime_ns for path in _ACCOUNTS)  # noqa: PTH116 - for every run
    return _members(gid, changed)


@lru_cache(maxsize=64)
def _members(gid: int, _changed: tuple[int, ...]) -> frozenset[int] | None:
    try:
        named = grp.getgrgid(gid).gr_mem
    except KeyError:
        return None
    entries = pwd.getpwall()
    return frozenset(entry.pw_uid for entry in entries if entry.pw_gid == gid or entry.pw_name in named)
