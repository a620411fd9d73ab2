"""Tells processes in another user namespace than the daemon's, as held runs have, from others."""

from __future__ import annotations

import os
from pathlib import Path


def lives_apart(pid: int) -> bool | None:
    """Tell whether a process is in another user namespace than this one; None where nobody can see."""
    try:
        theirs = os.readlink(f"/proc/{pid}/ns/user")  # noqa: PTH115 - no path, a name of the kernel's
    except PermissionError:
        return _is_mapped_otherwise(pid)
    except OSError:
        return None
    return theirs != os.readlink("/proc/self/ns/user")  # noqa: PTH115 - as above


def _is_mapped_otherwise(pid: int) -> bool | None:
    """Compare what all may read, also of another user's process and of one that may not be dumped."""
    try:
        return Path(f"/proc/{pid}/uid_map").read_bytes() != Path("/proc/self/uid_map").read_bytes()
    except OSError:
        return None
