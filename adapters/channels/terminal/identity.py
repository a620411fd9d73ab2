"""Who sits at the terminal: the user the daemon runs as."""

from __future__ import annotations

import os
import pwd

from core.model.principal import Reviewer


def local_reviewer() -> Reviewer:
    """Return the daemon's own user as the reviewer of its terminal."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    return Reviewer("terminal", str(uid), name)
