"""Requests and their grants: every change is one transaction, applied whole or refused."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from adapters.stores.codec import load_request, request_row, shown_text
from adapters.stores.elevations import elevation_holds
from adapters.stores.learned import keep_learned
from adapters.stores.outbox import enqueue, plan_copies
from adapters.stores.part import Part
from adapters.stores.record import append_events
from adapters.stores.standing import (
    forbid,
    gave_permission,
    permission_counts,
    permission_ended,
    permit,
    use_permission,
)
from core.errors import StoreError
from core.model.request import Change, Request, State

_ROWS = "SELECT body, stdin FROM requests"
_IN_STATES = f"{_ROWS} WHERE state IN (SELECT value FROM json_each(?)) ORDER BY created_at, seq"  # noqa: S608 - made of constants
_AFTER_ANY_ID = "\x7f"
_MOST = 10_000
_FINAL = json.dumps([state for state in State if state.final])
_INSERT = """
    INSERT INTO requests (id, kind, state, agent, session, binding, created_at, deadline, ended_at,
                          person_allowed, moment, command, body, stdin)
    VALUES (:id, :kind, :state, :agent, :session, :binding, :created_at, :deadline, :ended_at,
            :person_allowed, :moment, :command, :body, :stdin)
    ON CONFLICT (id) DO NOTHING
"""
_REPLACE = """
    UPDATE requests SET kind = :kind, state = :state, agent = :agent, session = :session,
        binding = :binding, created_at = :created_at, deadline = :deadline, ended_at = :ended_at,
        person_allowed = :person_allowed, moment = :moment, command = :command, body = :body, stdin = :stdin
    WHERE id = :id AND state IN (SELECT value FROM json_each(:expect))
        AND (SELECT count(*) FROM reviews WHERE request_id = :id) = :reviews
"""
_ISSUE = """
    INSERT INTO grants (request_id, binding, issued_at, expires_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (request_id) DO NOTHING
"""
_CONSUME = """
    UPDATE grants SET consumed_at = :at
    WHERE request_id = :id AND binding = :binding AND consumed_at IS NULL AND expires_at >= :at
"""
_REVIEW = """
    INSERT INTO reviews (request_id, number, person, channel, id, answer, at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (request_id, number) DO NOTHING
"""
_CLOSED = """
    SELECT locked OR EXISTS (SELECT 1 FROM agents WHERE id = ? AND revoked_at IS NOT NULL) FROM meta
"""
_STANDS = """
    SELECT revision = :revision AND (:credential IS NULL OR EXISTS (
        SELECT 1 FROM agents WHERE id = :agent AND token_sha256 = :credential AND revoked_at IS NULL
    )) FROM meta
"""


_ANSWERED = "INSERT OR IGNORE INTO answerers (person, request_id, name) VALUES (?, ?, ?)"


def _apply(connection: sqlite3.Connection, change: Change) -> bool:
    if _opens(change.request) and _closed(connection, change.request.call.agent):
        return False
    steps = (_stands, _put, _review, _use_permission, _issue, _consume)
    if not all(step(connection, change) for step in steps):
        return False
    if change.learn:
        keep_learned(connection, change.request, change.learn.entries)
    if change.permit:
        permit(connection, change.permit)
    if change.forbid:
        forbid(connection, change.forbid)
    _note_answerers(connection, change.request)
    enqueue(connection, change.messages)
    append_events(connection, change.events)
    return True


def _apply_or_skip(connection: sqlite3.Connection, change: Change) -> bool:
    """Apply one of several changes; where it is refused, nothing of it is left and the others stand."""
    connection.execute("SAVEPOINT change")
    applied = _apply(connection, change)
    if not applied:
        connection.execute("ROLLBACK TO change")
    connection.execute("RELEASE change")
    return applied


def _note_answerers(connection: sqlite3.Connection, request: Request) -> None:
    who = request.resolution.by if request.resolution else None
    if who is not None:
        values = (shown_text(f"{who.channel}:{who.id}"), request.id, shown_text(who.name))
        connection.execute(_ANSWERED, values)


def _opens(request: Request) -> bool:
    """Tell whether this leaves something open, or hands a yes to its asker."""
    return not request.state.final or request.state is State.USED


def _closed(connection: sqlite3.Connection, agent: str) -> bool:
    (closed,) = connection.execute(_CLOSED, (agent,)).fetchone()
    return bool(closed)


def _stands(connection: sqlite3.Connection, change: Change) -> bool:
    """Tell whether what this was decided by still holds."""
    basis = change.basis
    if basis is None:
        return True
    values = {**asdict(basis), "agent": change.request.call.agent}
    (stands,) = connection.execute(_STANDS, values).fetchone()
    return bool(stands)


def _put(connection: sqlite3.Connection, change: Change) -> bool:
    row = request_row(change.request)
    if change.insert:
        if connection.execute(_INSERT, row).rowcount != 1:
            return False
        plan_copies(connection, change.request)
        return True
    row["expect"] = json.dumps(sorted(change.expect))
    row["reviews"] = len(change.request.reviews) - (change.review is not None)
    return connection.execute(_REPLACE, row).rowcount == 1


def _review(connection: sqlite3.Connection, change: Change) -> bool:
    given, reviews = change.review, change.request.reviews
    if given is None:
        return True
    if not reviews or reviews[-1] != given:
        raise StoreError(f"an answer to request {change.request.id} is not the last of its answers")
    who = given.reviewer
    person = shown_text(who.person) if who.person else None
    answer = (
        change.request.id,
        len(reviews) - 1,
        person,
        who.channel,
        shown_text(who.id),
        given.answer,
        given.at,
    )
    return connection.execute(_REVIEW, answer).rowcount == 1


def _use_permission(connection: sqlite3.Connection, change: Change) -> bool:
    needed = change.insert and change.request.permission is not None and _opens(change.request)
    return not needed or use_permission(connection, change.request)


def _issue(connection: sqlite3.Connection, change: Change) -> bool:
    grant = change.issue_grant
    if grant is None:
        return True
    if (grant.request_id, grant.binding) != (change.request.id, change.request.binding.digest):
        raise StoreError(f"a grant for request {grant.request_id} does not fit request {change.request.id}")
    values = (grant.request_id, grant.binding, grant.issued_at, grant.expires_at)
    return connection.execute(_ISSUE, values).rowcount == 1


def _consume(connection: sqlite3.Connection, change: Change) -> bool:
    if change.consume_grant_at is None:
        return True
    request = change.request
    at = change.consume_grant_at
    if request.permission and not change.insert and not permission_counts(connection, request, at):
        return False
    if gave_permission(request) and permission_ended(connection, request.id):
        return False
    if request.elevation and not elevation_holds(connection, request, at):
        return False
    values = {"id": request.id, "binding": request.binding.digest, "at": at}
    return connection.execute(_CONSUME, values).rowcount == 1


class SqliteRequests(Part):
    """RequestStore over SQLite."""

    async def commit(self, change: Change) -> bool:
        """Apply the change in one durable transaction, or return False where its state was not met."""
        return await self._database.write(lambda connection: _apply(connection, self._kept_part(change)))

    async def commit_all(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """Apply many changes in one durable transaction; one whose state was not met is left out."""
        return await self._database.write(
            lambda connection: tuple(_apply_or_skip(connection, self._kept_part(each)) for each in changes)
        )

    def _kept_part(self, change: Change) -> Change:
        """Leave of a basis what the database keeps; looked at when the change's turn comes, not before."""
        if change.basis is None:
            return change
        kept = change.basis.revision - self._database.epoch
        return replace(change, basis=replace(change.basis, revision=kept))

    async def request(self, request_id: str) -> Request | None:
        """Return the request with this full id."""
        if not request_id.isascii():
            return None
        return next(iter(await self._select("WHERE id = ?", request_id)), None)

    async def by_prefix(self, prefix: str, limit: int = 10) -> tuple[Request, ...]:
        """Return requests whose id begins so."""
        if not prefix.isascii():
            return ()
        where = "WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        return await self._select(where, prefix, prefix + _AFTER_ANY_ID, _bounded(limit))

    async def in_states(self, *states: State) -> tuple[Request, ...]:
        """Return all requests in these states, oldest first."""
        rows = await self._database.read(lambda c: c.execute(_IN_STATES, (json.dumps(states),)).fetchall())
        return await asyncio.to_thread(_loaded, rows)  # they may be many, and others want to read meanwhile

    async def recent(self, limit: int) -> tuple[Request, ...]:
        """Return the newest requests in final states, newest first."""
        where = """
            WHERE state IN (SELECT value FROM json_each(?))
            ORDER BY moment DESC, seq DESC LIMIT ?
        """
        return await self._select(where, _FINAL, _bounded(limit))

    async def _select(self, where: str, *values: Any) -> tuple[Request, ...]:  # noqa: ANN401 - what SQL takes
        def work(connection: sqlite3.Connection) -> tuple[Request, ...]:
            return _loaded(connection.execute(f"{_ROWS} {where}", values).fetchall())

        return await self._database.read(work)


def _loaded(rows: Sequence[tuple[str, bytes | None]]) -> tuple[Request, ...]:
    return tuple(load_request(body, stdin) for body, stdin in rows)


def _bounded(limit: int) -> int:
    return max(0, min(limit, _MOST))
