"""The daemon's hold on the fork server: it starts once, and what ended is never read from disk again."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import threading
from typing import Final

from adapters.own_process import spawn

log = logging.getLogger(__name__)

LOST: Final = (
    "the process that parsers are forked from has ended, and only plain lines are judged; restart Sayso"
)
_ANSWER_S: Final = 5.0
_CLOSING_S: Final = 1.0
_LONGEST: Final = 64


class ForkServerLost(EOFError):  # noqa: N818 - named after what is told to people
    """There is no fork server, and there will be none before the daemon is started again."""


class ForkServer:
    """Has workers forked and ended, for any number of threads; the process starts with the first."""

    def __init__(self) -> None:
        self.lost = False
        self._closed = False
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def pid(self) -> int | None:
        """Tell which process it is."""
        return self._process.pid if self._process is not None else None

    def fork(self, key: int, connection: socket.socket) -> None:
        """Have a worker forked that serves this socket, without waiting for it."""
        with self._lock:
            control = self._control or self._start()
            try:
                socket.send_fds(control, [b"fork %d" % key], [connection.fileno()])
            except OSError as error:
                raise self._lose(str(error)) from error

    def end(self, key: int) -> None:
        """Have a worker killed; afterwards it is gone."""
        with self._lock:
            if self._control is None:
                return
            try:
                self._control.send(b"end %d" % key)
                answer = self._control.recv(_LONGEST)
            except OSError as error:
                raise self._lose(str(error)) from error
            if answer != b"%d" % key:
                raise self._lose("it closed its socket")

    def close(self) -> None:
        """End the process and every worker for good."""
        with self._lock:
            self._closed = True
            self._end()

    def _start(self) -> socket.socket:
        if self._closed or self.lost:
            raise ForkServerLost(LOST)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._process = spawn("adapters.parsers.forkserver", theirs.fileno())
        except OSError:
            ours.close()
            raise
        ours.settimeout(_ANSWER_S)
        self._control = ours
        return ours

    def _lose(self, why: str) -> ForkServerLost:
        self.lost = True
        self._end()
        log.error("%s (%s)", LOST, why)
        return ForkServerLost(LOST)

    def _end(self) -> None:
        """Let it end its workers and itself, and kill it where it does not; they die with it."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSING_S)
            self._process.kill()
            self._process.wait()
            self._process = None
