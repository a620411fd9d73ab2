"""Messages to channels, kept until they were delivered, in order for each copy; and the copies themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from adapters.stores.codec import shown_text
from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.history import Delivery
from core.model.notice import Notice, NoticeKind
from core.model.request import AuditEvent, Copy, KeptCopy, MessageKind, OutboxMessage, Request

# An update shows what the card says when it is delivered, so a later one makes an earlier one needless.
# So does a removal.
_COALESCE = """
    DELETE FROM outbox WHERE channel = ? AND place = ? AND request_id = ? AND kind = 'update'
"""
_ENQUEUE = """
    INSERT INTO outbox (channel, place, kind, request_id, notice, due_at, attempts)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_HEADS = """
    FROM outbox AS message WHERE channel = :channel AND (kind = 'notice' OR id = (
        SELECT min(id) FROM outbox
        WHERE channel = :channel AND place = message.place AND request_id = message.request_id
              AND kind != 'notice'))
"""
_DUE = f"""
    SELECT channel, place, kind, coalesce(request_id, ''), notice, due_at, attempts, id
    {_HEADS} AND due_at <= :now ORDER BY id LIMIT :limit
"""
_FAILED = "UPDATE outbox SET attempts = attempts + 1, due_at = ?, error = ? WHERE id = ?"
_REMOVE = "DELETE FROM outbox WHERE id = ?"
_PLAN_COPY = "INSERT INTO copies (request_id, channel, place, nonce) VALUES (?, ?, ?, ?)"
_COPIES = "SELECT request_id, channel, place, nonce, ref FROM copies"

_OF_COPY = "WHERE request_id = ? AND channel = ? AND place = ?"
_ARRIVED = f"""
    UPDATE copies SET ref = coalesce(?, ref), shows = ?, tries = tries + ?, error = NULL {_OF_COPY}
"""  # noqa: S608 - its parts are constants
_GIVEN_UP = f"UPDATE copies SET error = ?, tries = tries + ? {_OF_COPY}"  # noqa: S608 - as above
_DELIVERIES = """
    SELECT copy.channel, copy.place, copy.nonce, copy.ref, copy.shows,
           copy.tries + coalesce(message.attempts, 0), message.kind, message.due_at,
           CASE WHEN message.id IS NULL THEN copy.error ELSE message.error END
    FROM copies AS copy LEFT JOIN outbox AS message ON message.id = (
        SELECT min(id) FROM outbox
        WHERE request_id = copy.request_id AND channel = copy.channel AND place = copy.place
              AND kind != 'notice')
    WHERE copy.request_id = ? ORDER BY copy.id
"""


def plan_copies(connection: sqlite3.Connection, request: Request) -> None:
    """Keep, with a new request, where it will be shown and what its buttons will carry."""
    rows = [(request.id, copy.channel, copy.place, copy.nonce) for copy in request.copies]
    connection.executemany(_PLAN_COPY, rows)


def enqueue(connection: sqlite3.Connection, messages: Iterable[OutboxMessage]) -> None:
    """Add messages inside the transaction that is open."""
    for message in messages:
        if message.kind in (MessageKind.UPDATE, MessageKind.REMOVE):
            connection.execute(_COALESCE, (message.channel, message.place, message.request_id))
        connection.execute(
            _ENQUEUE,
            (
                message.channel,
                message.place,
                message.kind,
                message.request_id or None,
                json.dumps(asdict(message.notice)) if message.notice else None,
                message.due_at,
                message.attempts,
            ),
        )


def _message(row: tuple[Any, ...]) -> OutboxMessage:
    channel, place, kind, request_id, notice, due_at, attempts, number = row
    return OutboxMessage(
        channel, MessageKind(kind), request_id, due_at, place, _notice(notice), attempts, number
    )


def _notice(text: str | None) -> Notice | None:
    if text is None:
        return None
    kept = json.loads(text)
    return Notice(NoticeKind(kept["kind"]), kept["text"], kept["request_id"])


def _copy(row: tuple[str, str, str, str, str | None]) -> KeptCopy:
    request_id, channel, place, nonce, ref = row
    return KeptCopy(request_id, Copy(channel, place, nonce), ref)


def _copy_key(message: OutboxMessage) -> tuple[str, str, str]:
    return message.request_id, message.channel, message.place


def _delivery(row: tuple[Any, ...]) -> Delivery:
    channel, place, nonce, ref, shows, tries, pending, due_at, error = row
    return Delivery(Copy(channel, place, nonce), ref, _kind(shows), tries, _kind(pending), due_at, error)


def _kind(text: str | None) -> MessageKind | None:
    return MessageKind(text) if text else None


class SqliteOutbox(Part):
    """OutboxStore over SQLite."""

    async def post(self, *messages: OutboxMessage) -> None:
        """Keep messages that belong to no request's change."""
        await self._database.write(lambda connection: enqueue(connection, messages))

    async def due(self, channel: str, now: int, limit: int) -> tuple[OutboxMessage, ...]:
        """Return what is due for this channel, in order, at most one per copy; notices wait for nothing."""
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
            if connection.execute(_REMOVE, (message.id,)).rowcount == 1:
                new_ref = ref if message.kind is MessageKind.POST else None
                arrived = (new_ref, message.kind, message.attempts + 1, *_copy_key(message))
                connection.execute(_ARRIVED, arrived)

        await self._database.write(work)

    async def failed(self, message: OutboxMessage, due_at: int, error: str) -> None:
        """Keep a message for another try at `due_at`."""
        values = (due_at, shown_text(error), message.id)
        await self._database.write(lambda connection: connection.execute(_FAILED, values), durable=False)

    async def dropped(self, message: OutboxMessage, error: str) -> None:
        """Give a message up for good, and record that, dated when the last try was due."""
        data = {
            "channel": message.channel,
            "place": message.place,
            "message": message.kind.value,
            "attempts": message.attempts,
            "error": error,
        }
        about = message.request_id or None
        event = AuditEvent(message.due_at, "message.dropped", "sayso", about, data)

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_REMOVE, (message.id,)).rowcount == 1:
                connection.execute(_GIVEN_UP, (shown_text(error), message.attempts + 1, *_copy_key(message)))
                append_events(connection, (event,))

        await self._database.write(work)

    async def copies(self, request_id: str) -> tuple[KeptCopy, ...]:
        """Return every copy of a request, posted or not yet."""
        sql = f"{_COPIES} WHERE request_id = ? ORDER BY id"
        rows = await self._database.read(lambda connection: connection.execute(sql, (request_id,)).fetchall())
        return tuple(map(_copy, rows))

    async def deliveries(self, request_id: str) -> tuple[Delivery, ...]:
        """Tell how each copy of a request fares."""
        rows = await self._database.read(lambda c: c.execute(_DELIVERIES, (request_id,)).fetchall())
        return tuple(map(_delivery, rows))

    async def copy_by_nonce(self, nonce: str) -> KeptCopy | None:
        """Return the copy whose buttons carry this nonce."""
        if not nonce or not nonce.isascii():
            return None
        sql = f"{_COPIES} WHERE nonce = ?"
        rows = await self._database.read(lambda connection: connection.execute(sql, (nonce,)).fetchall())
        return next(map(_copy, rows), None)

    async def note_ref(self, copy: Copy, ref: str) -> None:
        """Keep the ref of a copy whose delivery had remained unclear, once the platform has told it."""
        sql = "UPDATE copies SET ref = ? WHERE nonce = ? AND ref IS NULL"
        await self._database.write(lambda connection: connection.execute(sql, (ref, copy.nonce)))
