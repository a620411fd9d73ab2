"""A process that outlives a daemon that is killed, and at once ends what its runs left.

A run dies with the daemon by itself once its sandbox stands. In the milliseconds before, bwrap alone dies,
and its child goes on. This is the process as the daemon holds it, and what it does.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from adapters.own_process import spawn
from adapters.runners.leftovers import kill_leftovers
from core.errors import StartError

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE: Final = 4
_LONGEST: Final = 256
_READY: Final = b"ready"
_STARTING_S: Final = 20.0
_NOT_STARTED: Final = "the process that ends runs when Sayso is killed did not start; start Sayso again"
_TELLING_S: Final = 0.05
_CLOSING_S: Final = 1.0
_SWEEPING_S: Final = 2.0  # by then a process that was just being started carries the marker
_PAUSE_S: Final = 0.02


class Guardian:
    """Is told which runs there are; where it has ended, the next start of the daemon ends what was left."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = spawn("adapters.runners.guardian", theirs.fileno())
        self._control = ours
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hang_up()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSING_S)
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        """Wait until it has loaded all that it needs; raises StartError where it does not."""
        if self._control is None:
            return
        try:
            self._control.settimeout(_STARTING_S)
            said = self._control.recv(_LONGEST)
            self._control.settimeout(_TELLING_S)
        except OSError as error:
            raise StartError(_NOT_STARTED) from error
        if said != _READY:
            raise StartError(_NOT_STARTED)

    def pid(self) -> int | None:
        """Tell which process it is."""
        return self._process.pid if self._process is not None else None

    @contextlib.contextmanager
    def over(self, request_id: str) -> Iterator[None]:
        """Have it end what is left of this run where the daemon is killed meanwhile."""
        self._tell(f"+{request_id}")
        try:
            yield
        finally:
            self._tell(f"-{request_id}")

    def _tell(self, text: str) -> None:
        if self._control is None:
            return
        try:
            self._control.send(text.encode())
        except OSError as error:
            log.warning(
                "the process that ends runs when Sayso is killed does not listen (%s), and only the next "
                "start would end them; restart Sayso",
                error.strerror or error,
            )
            self._give_up()

    def _give_up(self) -> None:
        """Kill it before it can take the end of its socket for the end of the daemon: the runs go on."""
        if self._process is not None:
            self._process.kill()
        self._hang_up()

    def _hang_up(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None


def main() -> None:
    """Listen on the socket that is standard input until the daemon is gone, then end what it left."""
    # As the daemon is: another process of its user could write code into it otherwise.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    runs: set[str] = set()
    with socket.socket(fileno=sys.stdin.fileno()) as control, contextlib.suppress(ConnectionError):
        control.send(_READY)
        while said := control.recv(_LONGEST).decode():
            (runs.add if said[0] == "+" else runs.discard)(said[1:])
    _sweep(runs)


def _sweep(runs: set[str]) -> None:
    until = time.monotonic() + _SWEEPING_S
    while runs and time.monotonic() < until:
        for request_id in runs:
            kill_leftovers(request_id)
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main()
