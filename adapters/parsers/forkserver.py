"""A process that has loaded all that parsing needs, and does nothing but fork workers and end them.

It starts before anything untrusted arrives. Whatever becomes of the program's files afterwards, a worker runs
the code that was loaded then. It reads nothing of what agents send: only its control socket, to the daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final

from adapters.parsers import worker

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_LONGEST: Final = 64
_libc: Final = ctypes.CDLL(None, use_errno=True)


class ForkServer:
    """Forks a worker for each `fork KEY`, which brings a socket; ends it for `end KEY`, and says so."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pid = os.getpid()
        self._workers: dict[bytes, int] = {}

    def serve(self) -> None:
        """Do what is asked until the daemon is gone, and leave no worker behind."""
        verbs: dict[bytes, Callable[[bytes, list[int]], None]] = {b"fork": self._fork, b"end": self._end}
        try:
            while request := self._next():
                (verb, key), descriptors = request
                verbs[verb](key, descriptors)
        finally:
            for key in list(self._workers):
                self._kill(key)

    def _next(self) -> tuple[list[bytes], list[int]] | None:
        text, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST, 1)
        return (text.split(), descriptors) if text else None

    def _fork(self, key: bytes, descriptors: list[int]) -> None:
        (descriptor,) = descriptors
        # Where there can be no more processes, the daemon sees the socket's end.
        with socket.socket(fileno=descriptor) as connection, contextlib.suppress(OSError):
            pid = os.fork()
            if pid == 0:
                self._become_worker(connection)
            self._workers[key] = pid

    def _become_worker(self, connection: socket.socket) -> None:
        try:
            _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == self._pid:  # otherwise it died before the kernel was told
                self._control.close()
                worker.serve(connection)
        finally:
            os._exit(0)

    def _end(self, key: bytes, _descriptors: list[int]) -> None:
        self._kill(key)
        self._control.send(key)

    def _kill(self, key: bytes) -> None:
        """Kill a worker and wait for its end; its pid is nobody else's before that."""
        pid = self._workers.pop(key, None)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main() -> None:
    """Load everything, then serve on the socket that is standard input."""
    # As the daemon is: otherwise another process of its user could write code into what parses.
    _control_process(_PR_SET_DUMPABLE, 0)
    worker.warm_up()
    gc.freeze()
    with socket.socket(fileno=sys.stdin.fileno()) as control, contextlib.suppress(ConnectionError):
        ForkServer(control).serve()


def _control_process(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


if __name__ == "__main__":
    main()
