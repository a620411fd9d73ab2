"""Starts a process of Sayso's own code beside the daemon, with a socket to it as standard input."""

from __future__ import annotations

import os
import subprocess
import sys


def spawn(module: str, control: int) -> subprocess.Popen[bytes]:
    """Start a module with what this process imports from, and nothing else of its environment."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=control,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,
    )
