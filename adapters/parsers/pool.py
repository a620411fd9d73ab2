"""Parses command lines: plain ones at once, others in processes that are killed where they do not answer."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
import time
from types import TracebackType
from typing import Final, Self

from adapters.parsers.forking import LOST, ForkServer
from adapters.parsers.wire import decode_answer, decode_ready, encode_line
from core.errors import StartError
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
_FAULTS: Final = (OSError, EOFError, ValueError, LookupError, TypeError)


class ParserPool:
    """A few worker processes that parse for any number of threads; `parse` is a Parse.

    A worker that dies or takes longer than `deadline_s` over a line is replaced, and the line is refused.
    Workers start with `start`, or with the first line that needs one. All are forked from one process, so
    that none is read from disk later; where that process ends, every line that needs a worker is refused.
    """

    def __init__(
        self, workers: int = WORKERS, deadline_s: float = DEADLINE_S, waiting_s: float = WAITING_S
    ) -> None:
        self.fork_server = ForkServer()
        self._workers = tuple(_Worker(key, self.fork_server, deadline_s) for key in range(workers))
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

    def wait(self) -> None:
        """Wait until every worker is there; raises StartError where one does not come."""
        for worker in self._workers:
            worker.wait()

    def close(self) -> None:
        """End every worker; lines that are being parsed are refused."""
        for worker in self._workers:
            worker.hang_up()
        self.fork_server.close()
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
        """Tell which processes there are, once they are ready."""
        return [pid for worker in self._workers if (pid := worker.pid()) is not None]


class _Worker:
    """One process and the socket to it; `key` is its name at the fork server."""

    def __init__(self, key: int, fork_server: ForkServer, deadline_s: float) -> None:
        self._key = key
        self._fork_server = fork_server
        self._deadline_s = deadline_s
        self._closed = False
        self._lock = threading.RLock()  # held by whoever speaks with the process
        self._socket: socket.socket | None = None
        self._pid: int | None = None

    def start(self) -> socket.socket:
        """Have the process forked; it says when it is ready."""
        with self._lock:
            if self._closed:
                raise EOFError(_CLOSED)
            ours, theirs = socket.socketpair()
            self._socket, self._pid = ours, None
            with theirs:
                self._fork_server.fork(self._key, theirs)
            return ours

    def wait(self) -> None:
        """Wait until the process is ready; raises StartError where it does not become so."""
        try:
            with self._lock:
                self._connected()
        except _FAULTS as error:
            raise StartError(
                f"the parser of command lines did not start ({error}); start Sayso again"
            ) from error

    def hang_up(self) -> None:
        """Have whoever waits for an answer of the process hear at once that there will be none."""
        self._closed = True
        connection = self._socket
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the process for good."""
        self.hang_up()
        with self._lock, contextlib.suppress(*_FAULTS):
            self._end()

    def pid(self) -> int | None:
        """Tell which process it is, once it is ready."""
        with self._lock, contextlib.suppress(*_FAULTS):
            if self._socket is not None:
                self._become_ready(self._socket)
        return self._pid

    def parse(self, text: str) -> tuple[SimpleCommand, ...]:
        """Have a line parsed; raises Refused where the process does not answer."""
        with self._lock:
            try:
                return decode_answer(self._ask(encode_line(text)))
            except TimeoutError:
                self._replace("it took too long")
                why = f"it could not be parsed within {self._deadline_s * 1000:.0f} ms"
                raise Refused("too-slow", 0, why) from None
            except _FAULTS as error:
                self._replace(str(error) or type(error).__name__)
                raise Refused("parser-failed", 0, self._trouble()) from error

    def _trouble(self) -> str:
        if self._closed:
            return _CLOSED
        return LOST if self._fork_server.lost else "the process that parses it ended; ask again"

    def _ask(self, line: bytes) -> bytes:
        connection = self._connected()
        until = time.monotonic() + self._deadline_s
        connection.settimeout(self._deadline_s)
        connection.sendall(line)
        return _read_line(connection, until)

    def _connected(self) -> socket.socket:
        """Give the socket to a process that is there and ready."""
        if self._socket is None or not self._alive(self._socket):
            self._end()
            connection = self.start()
            self._become_ready(connection)
            return connection
        return self._socket

    def _alive(self, connection: socket.socket) -> bool:
        try:
            self._become_ready(connection)
            return _silent(connection)
        except _FAULTS:
            return False

    def _become_ready(self, connection: socket.socket) -> None:
        if self._closed:
            raise EOFError(_CLOSED)
        if self._pid is None:
            try:
                self._pid = decode_ready(_read_line(connection, time.monotonic() + STARTING_S))
            except TimeoutError:
                raise EOFError("it did not start") from None

    def _replace(self, why: str) -> None:
        """Kill the process, and have the next one forked already."""
        if self._closed or self._fork_server.lost:
            return
        try:
            self._end()
            self.start()
        except _FAULTS as error:
            log.warning("a parser of command lines ended (%s) and is not replaced: %s", why, error)
        else:
            log.warning("a parser of command lines was replaced: %s", why)

    def _end(self) -> None:
        connection, self._socket, self._pid = self._socket, None, None
        if connection is not None:
            with connection:
                self._fork_server.end(self._key)


def _silent(connection: socket.socket) -> bool:
    """Tell whether the other end is there and has said nothing unasked, which would pass for an answer."""
    connection.settimeout(0)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


def _read_line(connection: socket.socket, until: float) -> bytes:
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        connection.settimeout(max(until - time.monotonic(), 0.001))
        pieces.append(connection.recv(_CHUNK))
        if not pieces[-1]:
            raise EOFError("it ended")
    return b"".join(pieces)
