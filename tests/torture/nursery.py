"""Forks daemons, one after the other: what each start would spend on importing is spent once.

Reads a line for each daemon to start; writes `pid N` when it is there and `ended STATUS` when it is gone.
"""

from __future__ import annotations

import os
import sys

import bot.wiring  # noqa: F401 - imported here, so that it is there in every daemon
from bot.cli import main


def _daemon() -> int:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    return main(["up", *sys.argv[1:]])


def _nurse() -> None:
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            sys.exit(_daemon())
        os.write(1, f"pid {pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    _nurse()
