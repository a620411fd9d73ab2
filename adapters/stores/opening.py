"""Opening a database file: first looked at, then touched and brought to this version's schema."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from adapters.stores.database import Connection, Database, advice
from core.errors import StartError

APPLICATION_ID = 1398897011
MAGIC = b"SQLite format 3\0"
_BUSY_TIMEOUT_S = 5.0
_FETCH = 64
_NOT_THE_CONTENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


def migrations() -> tuple[str, ...]:
    """Return the numbered scripts in order; the first brings an empty file to version 1."""
    scripts = [entry for entry in files("adapters.stores").joinpath("schema").iterdir() if entry.is_file()]
    return tuple(entry.read_text("utf-8") for entry in sorted(scripts, key=lambda entry: entry.name))


@asynccontextmanager
async def open_database(path: Path) -> AsyncIterator[Database]:
    """Open or create the file; StartError says why it cannot be used, and then nothing was changed."""
    scripts = migrations()
    await asyncio.to_thread(_prepare, path, len(scripts))
    set_up_writer = partial(_set_up_writer, path=path, scripts=scripts)
    async with (
        Connection(partial(_connect, path, set_up_writer), _FETCH) as writer,
        Connection(partial(_connect, path, _set_up_reader), _FETCH) as reader,
    ):
        database = Database(path, writer, reader)
        await database.open()
        yield database


def _connect(path: Path, set_up: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)
        with _closed_on_failure(connection):
            set_up(connection)
    except sqlite3.Error as error:
        raise _cannot_open(path, advice(error)) from error
    return connection


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _set_up_reader(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = ON")


def _set_up_writer(connection: sqlite3.Connection, path: Path, scripts: tuple[str, ...]) -> None:
    for pragma in ("foreign_keys = ON", "trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise _cannot_open(path, "its file system keeps no write-ahead log; put it on a local disk")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(scripts[version:], start=version + 1):
        _migrate(connection, number, script)


def _migrate(connection: sqlite3.Connection, number: int, script: str) -> None:
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _prepare(path: Path, known_version: int) -> None:
    """See to it that there is a file of ours that can be opened, readable by nobody else."""
    try:
        if _holds_something(path):
            _inspect(path, known_version)
        _keep_private(path)
    except OSError as error:
        hint = "check who owns it and its folder, and that they can be read and written"
        raise _cannot_open(path, f"{error.strerror or error}; {hint}") from error


def _holds_something(path: Path) -> bool:
    kept = path.stat() if path.exists() else None
    if kept and not stat.S_ISREG(kept.st_mode):
        what = "a directory" if path.is_dir() else "not a regular file"
        raise _cannot_open(path, f"it is {what}; name a file in the configuration, or move this away")
    if kept and kept.st_size:
        return True
    if _size(_beside(path, "-wal")):
        journal = _beside(path, "-wal")
        raise StartError(
            f"{path}: the database is missing or empty, but its journal {journal} is there."
            f" Nothing was changed. Put the database back beside it, or move the journal away to start empty."
        )
    return False


def _keep_private(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _inspect(path: Path, known_version: int) -> None:
    """Read the whole file through a connection that cannot write."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise _damaged(path, "it is not an SQLite database")
    index = _beside(path, "-shm")
    index_was_there = index.exists()
    try:
        with closing(sqlite3.connect(_read_only_uri(path), uri=True, isolation_level=None)) as connection:
            _check_version(connection, path, known_version)
            _check_pages(connection, path)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_THE_CONTENT:
            raise _cannot_open(path, advice(error)) from error
        raise _damaged(path, str(error)) from error
    finally:
        if not index_was_there:
            index.unlink(missing_ok=True)


def _read_only_uri(path: Path) -> str:
    # Without a journal the file is all there is, and `immutable` leaves no files beside it.
    mode = "mode=ro" if _size(_beside(path, "-wal")) else "mode=ro&immutable=1"
    return f"file:{quote(str(path.absolute()))}?{mode}"


def _check_version(connection: sqlite3.Connection, path: Path, known_version: int) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or version):
        raise StartError(
            f"{path}: this is an SQLite database, but not one of Sayso's. Nothing was changed."
            f" Name another file, or move this one away."
        )
    if version > known_version:
        raise StartError(
            f"{path}: the database was written by a newer Sayso (schema {version}; this one knows"
            f" {known_version}). Nothing was changed. Install that version again, or restore a copy from"
            f" before the upgrade."
        )


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise _damaged(path, "; ".join(found))


def _damaged(path: Path, finding: str) -> StartError:
    return StartError(
        f"{path}: the database is damaged: {finding}. Nothing was changed. Restore a copy of it; or move"
        f" {path.name}, {path.name}-wal and {path.name}-shm away to start empty: then waiting"
        f" requests, agents' tokens, the learned allowlist and the record are lost."
    )


def _cannot_open(path: Path, why: str) -> StartError:
    return StartError(f"{path}: the database cannot be opened: {why}")
