"""Units of writing: each applied whole or not at all, many of them behind one sync."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Unit(Generic[T]):
    """Work on the database, and what became of it."""

    def __init__(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> None:  # noqa: FBT001 - only made by Database.write
        self._work = work
        self.durable = durable
        self._done: Callable[[], T] | None = None

    def run(self, connection: sqlite3.Connection) -> bool:
        """Do the work in the transaction that is open; False where nothing of it may be kept."""
        try:
            result = self._work(connection)
        except BaseException as error:  # noqa: BLE001 - raised by `result`, for the one who asked
            self.fail(error)
            return False
        self._done = lambda: result
        return result is not False

    def fail(self, error: BaseException) -> None:
        """Note that nothing of it was kept."""

        def give() -> T:
            raise error

        self._done = give

    def result(self) -> T:
        """Return what the work returned, or raise what it raised."""
        if self._done is None:
            raise RuntimeError("this unit was never run")
        return self._done()


class _Lost(Exception):  # noqa: N818 - what happened to the transaction
    """SQLite ended the transaction by itself, with all that was in it."""


def commit_together(connection: sqlite3.Connection, units: Sequence[Unit[object]]) -> None:
    """Commit units in one transaction; where that cannot be kept, each in one of its own.

    Each unit has its own result afterwards. One that fails takes none of the others along.
    """
    if len(units) > 1:
        try:
            _transaction(connection, units)
        except (sqlite3.Error, _Lost):
            roll_back(connection)
        else:
            return
    for unit in units:
        _commit_alone(connection, unit)


def _transaction(connection: sqlite3.Connection, units: Sequence[Unit[object]]) -> None:
    _begin(connection, durable=any(unit.durable for unit in units))
    for unit in units:
        connection.execute("SAVEPOINT unit")
        kept = unit.run(connection)
        if not connection.in_transaction:
            raise _Lost
        if not kept:
            connection.execute("ROLLBACK TO unit")
        connection.execute("RELEASE unit")
    connection.execute("COMMIT")


def _commit_alone(connection: sqlite3.Connection, unit: Unit[object]) -> None:
    try:
        _begin(connection, durable=unit.durable)
        kept = unit.run(connection)
        if connection.in_transaction:
            connection.execute("COMMIT" if kept else "ROLLBACK")
    except sqlite3.Error as error:
        unit.fail(error)
    finally:
        roll_back(connection)


def _begin(connection: sqlite3.Connection, *, durable: bool) -> None:
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")


def roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction that is open, without a trace."""
    # SQLite rolls back by itself after some errors; one while rolling back leaves nothing committed either.
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
