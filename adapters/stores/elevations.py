"""Elevations of sessions, and the chats that sessions belong to."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from typing import Any

import msgspec

from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.errors import StoreError
from core.model.elevation import ChatBinding, Elevation, Level
from core.model.principal import Sender
from core.model.request import AuditEvent, Request

_COLUMNS = "id, session, level, set_by, set_at, until, reason, once, used_at, break_glass, place"
_STANDING = f"SELECT {_COLUMNS} FROM elevations WHERE ended_at IS NULL ORDER BY set_at, id"  # noqa: S608 - constants
_ELEVATE = f"""
    INSERT INTO elevations ({_COLUMNS})
    VALUES (:id, :session, :level, :set_by, :set_at, :until, :reason, :once, :used_at, :break_glass, :place)
"""  # noqa: S608 - as above
_OF_SESSION = "session = :session OR session LIKE :below ESCAPE '\\'"
_END = "UPDATE elevations SET ended_at = :at WHERE ended_at IS NULL AND session = :session"
_END_PERMISSIONS = f"UPDATE permissions SET ended_at = :at WHERE ended_at IS NULL AND ({_OF_SESSION})"  # noqa: S608 - as above
_HOLDS = """
    SELECT 1 FROM elevations
    WHERE id = ? AND ended_at IS NULL AND (until IS NULL OR used_at IS NOT NULL OR until > ?)
"""
_USE = """
    UPDATE elevations SET used_at = :at
    WHERE id = :id AND once = 1 AND used_at IS NULL AND ended_at IS NULL AND until > :at
"""
_CLOSED = """
    SELECT locked OR EXISTS (
        SELECT 1 FROM agents
        WHERE revoked_at IS NOT NULL AND substr(:session, 1, length(id) + 7) = 'agent:' || id || ':'
    ) FROM meta
"""
_BIND = """
    INSERT INTO chat_bindings (channel, place, agent, session, bound_by, bound_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (channel, place, agent)
    DO UPDATE SET session = excluded.session, bound_by = excluded.bound_by, bound_at = excluded.bound_at
"""


def elevation_holds(connection: sqlite3.Connection, request: Request, now: int) -> bool:
    """Tell whether the elevation on which a run rests has not ended."""
    return connection.execute(_HOLDS, (request.elevation, now)).fetchone() is not None


def _sender(text: str) -> Sender:
    try:
        return msgspec.convert(json.loads(text), Sender)
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(f"a kept sender cannot be read, the database is damaged: {error}") from error


def _elevation(row: tuple[Any, ...]) -> Elevation:
    key, session, level, set_by, set_at, until, reason, once, used_at, break_glass, place = row
    return Elevation(
        key,
        session,
        Level(level),
        _sender(set_by),
        set_at,
        until,
        reason,
        bool(once),
        used_at,
        bool(break_glass),
        place,
    )


def _values(session: str, at: int) -> dict[str, Any]:
    below = session.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + ":subagent:%"
    return {"session": session, "below": below, "at": at}


class SqliteElevations(Part):
    """ElevationStore over SQLite."""

    async def elevations(self) -> tuple[Elevation, ...]:
        """Return everything that was set and not ended, oldest first."""
        rows = await self._database.read(lambda connection: connection.execute(_STANDING).fetchall())
        return tuple(map(_elevation, rows))

    async def elevate(self, elevation: Elevation, event: AuditEvent) -> bool:
        """Keep what a person set, in place of what stood; False while all is locked, or the agent revoked."""
        row = asdict(elevation) | {"set_by": json.dumps(asdict(elevation.set_by))}
        values = _values(elevation.session, elevation.set_at)

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(_CLOSED, values).fetchone()[0]:
                return False
            only = " AND once = 1 AND used_at IS NULL" if elevation.once else ""
            connection.execute(_END + only, values)
            if not elevation.once:
                connection.execute(_END_PERMISSIONS, values)
            connection.execute(_ELEVATE, row)
            append_events(connection, (event,))
            return True

        return await self._database.write(work)

    async def use_directive(self, elevation_id: str, at: int) -> bool:
        """Use a directive up; False where it was used, is over or was taken back."""
        values = {"id": elevation_id, "at": at}
        return await self._database.write(
            lambda connection: connection.execute(_USE, values).rowcount == 1, durable=False
        )

    async def end_session(self, session: str, event: AuditEvent) -> bool:
        """End what was set for a session, its permissions and its chats; False where there was nothing."""
        values = _values(session, event.at)
        unbind = "DELETE FROM chat_bindings WHERE session = :session"

        def work(connection: sqlite3.Connection) -> tuple[int]:
            ended = sum(connection.execute(sql, values).rowcount for sql in (_END, _END_PERMISSIONS, unbind))
            connection.execute("UPDATE meta SET revision = revision + 1")  # also what is being decided ends
            append_events(connection, (event,))
            return (ended,)

        return (await self._database.write(work))[0] > 0

    async def bind_chat(self, binding: ChatBinding, agent: str, event: AuditEvent) -> None:
        """Keep which session of an agent a chat means."""
        who = json.dumps(asdict(binding.bound_by))
        row = (binding.channel, binding.place, agent, binding.session, who, binding.bound_at)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_BIND, row)
            append_events(connection, (event,))

        await self._database.write(work)

    async def chat_bindings(self) -> tuple[ChatBinding, ...]:
        """Return all of them, oldest first."""
        sql = "SELECT channel, place, session, bound_by, bound_at FROM chat_bindings ORDER BY bound_at, agent"
        rows = await self._database.read(lambda connection: connection.execute(sql).fetchall())
        return tuple(
            ChatBinding(channel, place, session, _sender(who), at)
            for channel, place, session, who, at in rows
        )
