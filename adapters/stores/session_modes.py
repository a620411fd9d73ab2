"""Modes of `exec` that were set for single sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.request import AuditEvent
from core.model.session_modes import SessionModes
from core.model.tightening import Tightening

_PUT = """
    INSERT INTO session_modes (key, security, ask, set_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET
        security = coalesce(excluded.security, security),
        ask = coalesce(excluded.ask, ask),
        set_at = excluded.set_at
    RETURNING key, security, ask, set_at
"""
_ALL = "SELECT key, security, ask, set_at FROM session_modes"


def modes_for(connection: sqlite3.Connection, sessions: Sequence[str]) -> tuple[Tightening, ...]:
    """Tell what is stated for these sessions, in their order."""
    asked = (connection.execute(f"{_ALL} WHERE key = ?", (key,)).fetchone() for key in sessions)
    return tuple(SessionModes(*row).tightening() for row in asked if row)


class SqliteSessionModes(Part):
    """SessionModesStore over SQLite."""

    async def tighten_session(self, modes: SessionModes, event: AuditEvent) -> SessionModes:
        """Set what is given and keep the rest; returns what holds for the session now."""
        values = (modes.session, modes.security, modes.ask, modes.set_at)

        def work(connection: sqlite3.Connection) -> SessionModes:
            row = connection.execute(_PUT, values).fetchone()
            append_events(connection, (event,))
            return SessionModes(*row)

        return await self._database.write(work)

    async def clear_session(self, session: str, event: AuditEvent) -> bool:
        """Forget what was set for a session; False where nothing was."""

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute("DELETE FROM session_modes WHERE key = ?", (session,)).rowcount != 1:
                return False
            append_events(connection, (event,))
            return True

        return await self._database.write(work)

    async def session_modes(self) -> tuple[SessionModes, ...]:
        """Return all, by session."""
        rows = await self._database.read(
            lambda connection: connection.execute(f"{_ALL} ORDER BY key").fetchall()
        )
        return tuple(SessionModes(*row) for row in rows)
