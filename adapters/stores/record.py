"""The record: audit events chained in the transaction of the fact they tell, and the kill switch."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from adapters.stores.part import Part
from core.audit import restore, sealed
from core.model.request import AuditEvent, ChainedEvent

_PAGE = 500
_COLUMNS = "SELECT seq, request_id, body, previous, hash FROM audit"


def append_events(connection: sqlite3.Connection, events: Iterable[AuditEvent]) -> None:
    """Chain events to the record inside the transaction that is open."""
    seq, previous = _head(connection)
    rows = []
    for event in events:
        seq += 1
        content, seal = sealed(seq, previous, event)
        rows.append((seq, _bytes(event.request_id), content, previous.encode(), seal.encode()))
        previous = seal
    connection.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute("UPDATE meta SET audit_seq = ?, audit_hash = ?", (seq, previous))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _head(connection: sqlite3.Connection) -> tuple[int, str]:
    seq, seal = connection.execute("SELECT audit_seq, CAST(audit_hash AS BLOB) FROM meta").fetchone()
    return seq, seal.decode("ascii", "backslashreplace")


def _link(row: tuple[int, bytes | None, bytes, bytes, bytes]) -> ChainedEvent:
    seq, request_id, content, previous, seal = row
    link = restore(seq, content, _ascii(previous), _ascii(seal))
    if _bytes(link.event.request_id) != request_id:
        return restore(seq, b"request_id column: " + (request_id or b"null"), link.previous, link.hash)
    return link


def _ascii(stored: bytes) -> str:
    return stored.decode("ascii", "backslashreplace")


class SqliteRecord(Part):
    """AuditStore over SQLite."""

    async def append(self, *events: AuditEvent) -> None:
        """Add events that belong to no request's change."""
        await self._database.write(lambda connection: append_events(connection, events))

    async def events(self, after: int = 0) -> AsyncGenerator[ChainedEvent, None]:
        """Yield the chain in order."""
        page = await self._page("WHERE seq > ? ORDER BY seq LIMIT ?", (after, _PAGE))
        while page:
            for link in page:
                yield link
            page = await self._page("WHERE seq > ? ORDER BY seq LIMIT ?", (page[-1].seq, _PAGE))

    async def events_about(self, request_id: str) -> tuple[ChainedEvent, ...]:
        """Return the events of one request, oldest first."""
        return await self._page("WHERE request_id = ? ORDER BY seq", (_bytes(request_id),))

    async def _page(self, where: str, values: tuple[Any, ...]) -> tuple[ChainedEvent, ...]:
        return await self._database.read(
            lambda connection: tuple(map(_link, connection.execute(f"{_COLUMNS} {where}", values).fetchall()))
        )

    async def head(self) -> tuple[int, str]:
        """Return (seq, hash) of the last event, as noted beside the chain."""
        return await self._database.read(_head)


class SqliteRevision(Part):
    """RevisionStore over SQLite; triggers of the schema see what is kept here."""

    async def revision(self) -> int:
        """Return the number that grows with everything that can forbid what was allowed before."""
        return self._database.revision

    async def revise(self, *events: AuditEvent) -> None:
        """Let it grow, because of something that the store does not see."""
        if events:
            await self._database.write(lambda connection: append_events(connection, events))
        self._database.epoch += 1  # what was decided does not outlive the process, so this need not either


class SqliteLock(Part):
    """LockStore over SQLite."""

    async def locked(self) -> bool:
        """Tell whether everything is stopped."""
        (locked,) = await self._database.read(
            lambda connection: connection.execute("SELECT locked FROM meta").fetchone()
        )
        return bool(locked)

    async def set_locked(self, *, locked: bool, event: AuditEvent) -> None:
        """Stop everything, or resume."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE meta SET locked = ?", (locked,))
            if locked:
                connection.execute("UPDATE permissions SET ended_at = ? WHERE ended_at IS NULL", (event.at,))
                connection.execute("UPDATE elevations SET ended_at = ? WHERE ended_at IS NULL", (event.at,))
            append_events(connection, (event,))

        await self._database.write(work)
