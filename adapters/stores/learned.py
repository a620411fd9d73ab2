"""What "always" left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from adapters.stores.codec import entry_text, load_entry, path_bytes, shown_text
from adapters.stores.part import Part
from core.model.allowlist import AllowlistEntry

_KEEP = """
    INSERT INTO allowlist (entry, pattern, agent, request_id) VALUES (?, ?, ?, ?)
    ON CONFLICT (entry) DO NOTHING
"""
_USED = """
    UPDATE allowlist SET last_used_at = ?, last_command = ? WHERE pattern = ? AND (agent IS NULL OR agent = ?)
"""


def keep_entries(connection: sqlite3.Connection, request_id: str, entries: Iterable[AllowlistEntry]) -> None:
    """Keep learned entries, each once, inside the transaction that is open."""
    rows = [(entry_text(entry), path_bytes(entry.pattern), entry.agent, request_id) for entry in entries]
    connection.executemany(_KEEP, rows)


def learned_by(connection: sqlite3.Connection, agent: str) -> tuple[AllowlistEntry, ...]:
    """Return the learned entries that count for an agent, oldest first."""
    sql = "SELECT entry FROM allowlist WHERE agent IS NULL OR agent = ? ORDER BY id"
    return tuple(load_entry(text) for (text,) in connection.execute(sql, (agent,)))


class SqliteAllowlist(Part):
    """AllowlistStore over SQLite."""

    async def learned(self, agent: str) -> tuple[AllowlistEntry, ...]:
        """Return the learned entries that count for this agent, oldest first."""
        return await self._database.read(lambda connection: learned_by(connection, agent))

    async def record_use(self, pattern: str, agent: str, command: str, at: int) -> None:
        """Note when, and for which command, a learned entry last admitted something."""
        values = (at, shown_text(command), path_bytes(pattern), agent)
        await self._database.write(lambda connection: connection.execute(_USED, values), durable=False)
