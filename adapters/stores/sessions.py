"""What is remembered of sessions."""

from __future__ import annotations

from adapters.stores.part import Part
from core.model.session import KnownSession

_NOTE = """
    INSERT INTO sessions (key, depth, first_seen) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET depth = max(depth, excluded.depth)
    RETURNING depth
"""

_KNOWN = """
    SELECT key, depth, first_seen, latest.moment
    FROM sessions LEFT JOIN (SELECT session, max(moment) AS moment FROM requests GROUP BY session) AS latest
    ON latest.session = key
    ORDER BY coalesce(latest.moment, first_seen) DESC, key LIMIT ?
"""
_ON_CHANNEL = "SELECT key FROM sessions WHERE key LIKE ? ESCAPE '^' AND key NOT LIKE '%:subagent:%'"


class SqliteSessions(Part):
    """SessionStore over SQLite."""

    async def deepest(self, session: str, depth: int, at: int) -> int:
        """Note a spawn depth that a session claims; returns the deepest that it ever claimed."""
        row = await self._database.write(
            lambda connection: connection.execute(_NOTE, (session, depth, at)).fetchone(), durable=False
        )
        return int(row[0])

    async def sessions(self, limit: int) -> tuple[KnownSession, ...]:
        """Return the sessions that were seen, those that asked last first."""
        rows = await self._database.read(lambda connection: connection.execute(_KNOWN, (limit,)).fetchall())
        return tuple(KnownSession(*row) for row in rows)

    async def sessions_on(self, channel: str) -> tuple[str, ...]:
        """Return the keys of the sessions that name this channel, and are no subagent's."""
        like = f"agent:%:{channel.replace('_', '^_')}:%"
        rows = await self._database.read(
            lambda connection: connection.execute(_ON_CHANNEL, (like,)).fetchall()
        )
        return tuple(key for (key,) in rows)
