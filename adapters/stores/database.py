"""Two connections to one database file; what waits to be written is committed and synced together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import aiosqlite

from adapters.stores.units import Unit, commit_together, roll_back
from core.errors import StoreError

T = TypeVar("T")

_MOST_TOGETHER = 128  # bounds how long the first of them waits for the last

_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full; make room there and ask again",
    sqlite3.SQLITE_READONLY: "it cannot be written; check its permissions and how its disk is mounted",
    sqlite3.SQLITE_IOERR: "the disk reported an error; check the disk, then restart Sayso",
    sqlite3.SQLITE_BUSY: "another program holds it locked; close that program and ask again",
    sqlite3.SQLITE_LOCKED: "another program holds it locked; close that program and ask again",
    sqlite3.SQLITE_CORRUPT: "it is damaged; stop Sayso and restore a copy of the file",
    sqlite3.SQLITE_NOTADB: "it is damaged; stop Sayso and restore a copy of the file",
    sqlite3.SQLITE_CONSTRAINT: "what was to be kept contradicts what is there",
}


def advice(error: sqlite3.Error) -> str:
    """Say what is wrong and what to do, with SQLite's own words at the end."""
    known = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    return f"{known} ({error})" if known else str(error)


class Connection(aiosqlite.Connection):
    """A connection that takes whole units of work, so that one is never left half done."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    @property
    def closed(self) -> bool:
        """Whether no more work is taken."""
        return self._connection is None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work in the connection's thread; a caller that is cancelled does not interrupt it."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # not typed in aiosqlite
        return result

    def turn(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Have the work run in the connection's thread, after what waits there already; tells nobody."""
        self._tx.put_nowait((None, lambda: work(self._conn)))


class Database:
    """One writer, whose thread is the queue of all writing, and one reader that never waits for it."""

    def __init__(self, path: Path, writer: Connection, reader: Connection) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._queue: deque[tuple[Unit[Any], asyncio.Future[None]]] = deque()
        self._revision = 0
        self.epoch = 0

    async def open(self) -> None:
        """Learn what is kept in memory."""
        await self._run(self._writer, self._note_revision)

    @property
    def revision(self) -> int:
        """The number that grows with everything that can forbid, as of the last commit.

        It may be behind for a moment, never ahead: what is decided by an older one is refused. `epoch` is the
        part of it that is not kept: it grows with what only the daemon's memory knows.
        """
        return self._revision + self.epoch

    async def write(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Run the work whole or not at all: not where it raises or returns False.

        Work that waits at the same time shares a transaction and its sync, each part behind a savepoint of
        its own; it may be run again, alone, after a transaction that could not be kept. What is not
        `durable` survives the end of the process, but perhaps not a power cut.
        """
        if self._writer.closed:
            raise self._is_closed()
        loop = asyncio.get_running_loop()
        unit, done = Unit(work, durable), loop.create_future()
        self._queue.append((unit, done))
        # Each of n callers has a turn, and each turn takes the first of the queue at least: with its own
        # turn, at the latest, a unit is done. Nobody waits for turns, so that one call wakes many callers.
        self._writer.turn(partial(self._take_turn, loop))
        await done
        with self._told():
            return unit.result()

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work on what is committed, as of one moment."""
        return await self._run(self._reader, lambda connection: _snapshot(connection, work))

    def _take_turn(self, loop: asyncio.AbstractEventLoop, connection: sqlite3.Connection) -> None:
        waiting = min(len(self._queue), _MOST_TOGETHER)
        if waiting:
            taken = [self._queue.popleft() for _ in range(waiting)]
            commit_together(connection, [unit for unit, _ in taken])
            with suppress(sqlite3.Error):  # the older one is safe
                self._note_revision(connection)
            loop.call_soon_threadsafe(_wake, [done for _, done in taken])

    def _note_revision(self, connection: sqlite3.Connection) -> None:
        found = connection.execute("SELECT revision FROM meta").fetchone()
        self._revision = found[0] if found else self._revision

    async def _run(self, connection: Connection, work: Callable[[sqlite3.Connection], T]) -> T:
        if connection.closed:
            raise self._is_closed()
        with self._told():
            return await connection.run(work)

    def _is_closed(self) -> StoreError:
        return StoreError(f"{self.path}: the database is closed")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what SQLite raises into an error that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: nothing was kept or read: {advice(error)}") from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise StoreError(
                f"{self.path}: nothing was kept or read: a value is out of range: {error}"
            ) from error


def _wake(callers: Iterable[asyncio.Future[None]]) -> None:
    for done in callers:
        if not done.done():
            done.set_result(None)


def _snapshot(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        roll_back(connection)
