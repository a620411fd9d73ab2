"""Two connections to one database file: work runs whole in the thread of the connection it was given to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

import aiosqlite

from core.errors import StoreError

T = TypeVar("T")

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


class Database:
    """One writer, whose thread is the queue of all writing, and one reader that never waits for it."""

    def __init__(self, path: Path, writer: Connection, reader: Connection) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader

    async def write(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Run the work as one transaction; rolled back where it raises or returns False.

        What is not `durable` survives the end of the process, but perhaps not a power cut.
        """
        return await self._run(self._writer, lambda connection: _transaction(connection, work, durable))

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work on what is committed, as of one moment."""
        return await self._run(self._reader, lambda connection: _snapshot(connection, work))

    async def _run(self, connection: Connection, work: Callable[[sqlite3.Connection], T]) -> T:
        if connection.closed:
            raise StoreError(f"{self.path}: the database is closed")
        try:
            return await connection.run(work)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: nothing was kept or read: {advice(error)}") from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise StoreError(
                f"{self.path}: nothing was kept or read: a value is out of range: {error}"
            ) from error


def _transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], durable: bool) -> T:  # noqa: FBT001 - only called above
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("ROLLBACK" if result is False else "COMMIT")
    except BaseException:
        _roll_back(connection)
        raise
    return result


def _snapshot(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    # SQLite rolls back by itself after some errors; one while rolling back leaves nothing committed either.
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
