"""What is remembered of sessions."""

from __future__ import annotations

from adapters.stores.part import Part

_NOTE = """
    INSERT INTO sessions (key, depth, first_seen) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET depth = max(depth, excluded.depth)
    RETURNING depth
"""


class SqliteSessions(Part):
    """SessionStore over SQLite."""

    async def deepest(self, session: str, depth: int, at: int) -> int:
        """Note a spawn depth that a session claims; returns the deepest that it ever claimed."""
        row = await self._database.write(
            lambda connection: connection.execute(_NOTE, (session, depth, at)).fetchone(), durable=False
        )
        return int(row[0])
