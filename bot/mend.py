"""Commands that people are told to run on a path: a shell takes it as it is, and it is said who may."""

from __future__ import annotations

import os
import pwd
import shlex
from pathlib import Path


def run_on(path: str | Path, *commands: str) -> str:
    """Write commands that change a path; as whom is said where that is another than who reads this."""
    quoted = shlex.quote(str(path))
    owner = 0 if any(command.startswith("chown") for command in commands) else _owner(Path(path))
    account = f"as {account_name(owner)}: " if owner != os.geteuid() else ""
    return account + " && ".join(f"{command} {quoted}" for command in commands)


def _owner(path: Path) -> int:
    """Give whose it is, or, where there is nothing yet, who owns the place to make it."""
    for place in (path, *path.parents):
        try:
            return place.stat().st_uid
        except OSError:
            continue
    return 0


def account_name(uid: int) -> str:
    """Name an account; one without a name by its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
