"""Parses command lines: plain ones at once, others in processes that are killed where they do not answer."""

from __future__ import annotations

import logging
import os
import queue
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Final, Self

from adapters.parsers.wire import decode_answer, encode_line
from adapters.parsers.worker import READY
from core.shell.assemble import SimpleCommand
from core.shell.parse import parse_plain
from core.shell.scan import Refused

log = logging.getLogger(__name__)

WORKERS: Final = 2
DEADLINE_S: Final = 0.25
STARTING_S: Final = 20.0
WAITING_S: Final = 5.0
_CHUNK: Final = 256 * 1024
_CLOSED: Final = "the daemon is stopping"


class ParserPool:
    """A few worker processes that parse for any number of threads; `parse` is a Parse.

    A worker that dies or takes longer than `deadline_s` over a line is replaced, and the line is refused.
    Workers start with `start`, or with the first line that needs one.
    """

    def __init__(
        self, workers: int = WORKERS, deadline_s: float = DEADLINE_S, waiting_s: float = WAITING_S
    ) -> None:
        self._workers = tuple(_Worker(deadline_s) for _ in range(workers))
        self._waiting_s = waiting_s
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start every worker, without waiting for any."""
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """End every worker; lines that are being parsed are refused."""
        for worker in self._workers:
            worker.close()

    def parse(self, text: str) -> tuple[SimpleCommand, ...]:
        """Split a line into simple commands; raises Refused, and nothing else."""
        plain = parse_plain(text)
        if plain is not None:
            return plain
        try:
            worker = self._idle.get(timeout=self._waiting_s)
        except queue.Empty:
            why = "too many lines wait to be parsed; ask again later"
            raise Refused("parser-busy", 0, why) from None
        try:
            return worker.parse(text)
        finally:
            self._idle.put(worker)

    def pids(self) -> list[int]:
        """Tell which processes there are."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]


class _Worker:
    """One process and the socket to it. Only `close` may be called while another thread parses."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._closed = False
        self._ready = False
        self._socket: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it says when it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "adapters.parsers.worker"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        self._socket, self._ready = ours, False
        if self._closed:  # meanwhile, by another thread
            self._end()

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self._end()

    def parse(self, text: str) -> tuple[SimpleCommand, ...]:
        """Have a line parsed; raises Refused where the process does not answer."""
        try:
            return decode_answer(self._ask(encode_line(text)))
        except TimeoutError:
            self._replace("it took too long")
            why = f"it could not be parsed within {self._deadline_s * 1000:.0f} ms"
            raise Refused("too-slow", 0, why) from None
        except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
            self._replace(str(error) or type(error).__name__)
            why = _CLOSED if self._closed else "the process that parses it ended; ask again"
            raise Refused("parser-failed", 0, why) from error

    def _ask(self, line: bytes) -> bytes:
        connection = self._connected()
        until = time.monotonic() + self._deadline_s
        connection.settimeout(self._deadline_s)
        connection.sendall(line)
        return _read_line(connection, until)

    def _connected(self) -> socket.socket:
        """Give the socket to a process that is there and ready."""
        if self._closed:
            raise EOFError(_CLOSED)
        if self.process is None or self.process.poll() is not None:
            self._end()
            self.start()
        connection = self._socket
        if connection is None:
            raise EOFError(_CLOSED)
        if not self._ready:
            if _read_line(connection, time.monotonic() + STARTING_S) != READY:
                raise EOFError("it did not start")
            self._ready = True
        return connection

    def _replace(self, why: str) -> None:
        """Kill the process, and start the next one already."""
        if not self._closed:
            log.warning("a parser of command lines was replaced: %s", why)
            self._end()
            self.start()

    def _end(self) -> None:
        process, connection = self.process, self._socket
        self.process = self._socket = None
        if process is not None:
            process.kill()
            process.wait()
        if connection is not None:
            connection.close()


def _read_line(connection: socket.socket, until: float) -> bytes:
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        connection.settimeout(max(until - time.monotonic(), 0.001))
        pieces.append(connection.recv(_CHUNK))
        if not pieces[-1]:
            raise EOFError("it ended")
    return b"".join(pieces)
