"""What lies in the system's directories and is not for every user of the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace

from adapters.runners.accounts import Account
from core.model.plan import SandboxPlan

_MIXED = ("/etc", "/opt")  # here services and people put what is theirs, beside what is for all


def without_private(plan: SandboxPlan, account: Account) -> SandboxPlan:
    """Mask what only this account may read of the system's directories, and sockets, unless made readable.

    This looks at the entries of few directories, not below them: it is done for each run.
    """
    meant = {*plan.readable, *plan.writable}
    found = (path for place in _MIXED if place not in meant for path in _private(place, account))
    return replace(plan, masked=(*plan.masked, *(path for path in found if path not in meant)))


def _private(place: str, account: Account) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            yield from (entry.path for entry in entries if _is_private(entry, account))
    except OSError:
        return


def _is_private(entry: os.DirEntry[str], account: Account) -> bool:
    if account.drop and (entry.is_file() or entry.is_dir()):
        return False  # the account that root becomes owns nothing here, and is in no groups
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if stat.S_ISSOCK(status.st_mode):
        return True
    if account.drop or stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode):
        closed = status.st_uid == account.uid or not status.st_mode & stat.S_IXOTH
        return closed and os.access(entry.path, os.X_OK)
    return not status.st_mode & stat.S_IROTH and os.access(entry.path, os.R_OK)
