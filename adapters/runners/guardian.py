"""A process that outlives a daemon that is killed, and at once ends what its runs left.

A run dies with the daemon by itself once its sandbox stands. In the milliseconds before, bwrap alone dies,
and its child goes on. This is the process as the daemon holds it; where it ends, it is started again.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from adapters.own_process import Program
from adapters.runners import leftovers, sweeper
from core.errors import StartError

log = logging.getLogger(__name__)

_STARTING_S: Final = 20.0
_NOT_STARTED: Final = "the process that ends runs when Sayso is killed did not start; start Sayso again"
_TELLING_S: Final = 0.05
_CLOSING_S: Final = 1.0
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0  # who lived so long is started again at once


class Guardian:
    """Is told which runs there are; where it has ended, the next start of the daemon ends what was left."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None
        self._runs: set[str] = set()
        self._lock = threading.Lock()  # of the control and the runs
        self._needed = threading.Event()  # a run has begun since it was last started
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        self._program = Program.of(leftovers, sweeper)
        self._control, self._process = _begun(self._program)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closing.set()
            self._hang_up()
        self._needed.set()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSING_S)
            self._process.kill()
            self._process.wait()
        if self._keeper is not None:
            self._keeper.join(_CLOSING_S)

    def wait(self) -> None:
        """Wait until it has loaded all that it needs; raises StartError where it does not.

        From then on it is started again where it ends.
        """
        if self._control is None or self._process is None or self._program is None:
            return
        _hear_ready(self._control)
        kept = (self._program, self._process)
        self._keeper = threading.Thread(target=self._keep, args=kept, name="guardian", daemon=True)
        self._keeper.start()

    def pid(self) -> int | None:
        """Tell which process it is."""
        return self._process.pid if self._process is not None else None

    @contextlib.contextmanager
    def over(self, request_id: str) -> Iterator[None]:
        """Have it end what is left of this run where the daemon is killed meanwhile."""
        with self._lock:
            self._runs.add(request_id)
            self._tell(f"+{request_id}")
        self._needed.set()
        try:
            yield
        finally:
            with self._lock:
                self._runs.discard(request_id)
                self._tell(f"-{request_id}")

    def _tell(self, text: str) -> None:
        if self._control is None:
            return
        try:
            self._control.send(text.encode())
        except OSError:
            # Killed before it can take the end of its socket for the end of the daemon: the runs go on.
            if self._process is not None:
                self._process.kill()
            self._hang_up()

    def _hang_up(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def _keep(self, program: Program, process: subprocess.Popen[bytes]) -> None:
        """Start it again where it ends: once at most for each run that begins, and ever more seldom."""
        pause = 0.0
        while True:
            began = time.monotonic()
            status = process.wait()
            with self._lock:
                self._hang_up()
            if time.monotonic() - began >= _LONGEST_PAUSE_S:
                pause = 0.0
            if self._closing.is_set():
                return
            log.warning(
                "the process that ends runs when Sayso is killed has ended (status %d); it is started again "
                "for the next run, or those under way, %s",
                status,
                f"after {pause:.0f} s" if pause else "at once",
            )
            self._closing.wait(pause)
            self._needed.wait()
            if self._closing.is_set():
                return
            self._needed.clear()
            pause = min(max(_FIRST_PAUSE_S, 2 * pause), _LONGEST_PAUSE_S)
            process = self._start_again(program) or process

    def _start_again(self, program: Program) -> subprocess.Popen[bytes] | None:
        try:
            control, process = _begun(program)
        except OSError as error:
            log.warning(
                "the process that ends runs when Sayso is killed cannot be started (%s): the next start of "
                "Sayso ends what they leave",
                error.strerror or error,
            )
            return None
        self._process = process
        try:
            _hear_ready(control)
        except StartError:
            control.close()
            process.kill()
            return process
        with self._lock:
            self._control = control
            for request_id in self._runs:
                self._tell(f"+{request_id}")
            if self._closing.is_set():
                self._hang_up()
        log.info("the process that ends runs when Sayso is killed is there again (%d)", process.pid)
        return process


UNGUARDED: Final = Guardian()  # for what no daemon runs


def _begun(program: Program) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            return ours, program.spawn(theirs.fileno())
        except OSError:
            ours.close()
            raise


def _hear_ready(control: socket.socket) -> None:
    try:
        control.settimeout(_STARTING_S)
        said = control.recv(sweeper.LONGEST)
        control.settimeout(_TELLING_S)
    except OSError as error:
        raise StartError(_NOT_STARTED) from error
    if said != sweeper.READY:
        raise StartError(_NOT_STARTED)
