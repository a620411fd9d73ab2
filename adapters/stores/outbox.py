"""Messages to channels, kept until they were delivered, in order for each request."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from adapters.stores.codec import shown_text
from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.request import AuditEvent, MessageKind, OutboxMessage

# An update shows what the card says when it is delivered, so a later one makes an earlier one needless.
_COALESCE = "DELETE FROM outbox WHERE channel = ? AND request_id = ? AND kind = 'update'"
_ENQUEUE = "INSERT INTO outbox (channel, kind, request_id, due_at, attempts) VALUES (?, ?, ?, ?, ?)"
_HEADS = """
    FROM outbox AS message WHERE channel = :channel AND id = (
        SELECT min(id) FROM outbox WHERE channel = :channel AND request_id = message.request_id)
"""
_DUE = f"""
    SELECT channel, kind, request_id, due_at, attempts, id {_HEADS} AND due_at <= :now
    ORDER BY id LIMIT :limit
"""
_FAILED = "UPDATE outbox SET attempts = attempts + 1, due_at = ?, error = ? WHERE id = ?"
_REMOVE = "DELETE FROM outbox WHERE id = ?"
_COPY = """
    INSERT INTO copies (request_id, channel, ref) VALUES (?, ?, ?)
    ON CONFLICT (request_id, channel, ref) DO NOTHING
"""
_COPIES = "SELECT channel, ref FROM copies WHERE request_id = ? ORDER BY id"


def enqueue(connection: sqlite3.Connection, messages: Iterable[OutboxMessage]) -> None:
    """Add messages inside the transaction that is open."""
    for message in messages:
        if message.kind is MessageKind.UPDATE:
            connection.execute(_COALESCE, (message.channel, message.request_id))
        values = (message.channel, message.kind, message.request_id, message.due_at, message.attempts)
        connection.execute(_ENQUEUE, values)


def _message(row: tuple[str, str, str, int, int, int]) -> OutboxMessage:
    channel, kind, request_id, due_at, attempts, number = row
    return OutboxMessage(channel, MessageKind(kind), request_id, due_at, attempts, number)


class SqliteOutbox(Part):
    """OutboxStore over SQLite."""

    async def due(self, channel: str, now: int, limit: int) -> tuple[OutboxMessage, ...]:
        """Return what is due for this channel, in order, at most one per request."""
        values = {"channel": channel, "now": now, "limit": max(0, limit)}
        rows = await self._database.read(lambda connection: connection.execute(_DUE, values).fetchall())
        return tuple(map(_message, rows))

    async def next_due(self, channel: str) -> int | None:
        """Return when the next message of this channel is due."""
        sql = f"SELECT min(due_at) {_HEADS}"
        due: tuple[int | None] = await self._database.read(
            lambda connection: connection.execute(sql, {"channel": channel}).fetchone()
        )
        return due[0]

    async def delivered(self, message: OutboxMessage, ref: str | None) -> None:
        """Forget a message that arrived; keep `ref`, by which its copy can be updated."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_REMOVE, (message.id,))
            if ref is not None and message.kind is MessageKind.POST:
                connection.execute(_COPY, (message.request_id, message.channel, ref))

        await self._database.write(work)

    async def failed(self, message: OutboxMessage, due_at: int, error: str) -> None:
        """Keep a message for another try at `due_at`."""
        values = (due_at, shown_text(error), message.id)
        await self._database.write(lambda connection: connection.execute(_FAILED, values), durable=False)

    async def dropped(self, message: OutboxMessage, error: str) -> None:
        """Give a message up for good, and record that, dated when the last try was due."""
        data = {
            "channel": message.channel,
            "message": message.kind.value,
            "attempts": message.attempts,
            "error": error,
        }
        event = AuditEvent(message.due_at, "message.dropped", "sayso", message.request_id, data)

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_REMOVE, (message.id,)).rowcount == 1:
                append_events(connection, (event,))

        await self._database.write(work)

    async def copies(self, request_id: str) -> tuple[tuple[str, str], ...]:
        """Return (channel, ref) of every copy of a request that was posted."""
        rows = await self._database.read(
            lambda connection: connection.execute(_COPIES, (request_id,)).fetchall()
        )
        return tuple((channel, ref) for channel, ref in rows)
