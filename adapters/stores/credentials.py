"""Tokens of agents and logins of the web page, as digests."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.request import AgentRecord, AuditEvent

_ROWS = "SELECT id, token_sha256, created_at, revoked_at FROM agents"
_PUT = """
    INSERT INTO agents (id, token_sha256, created_at) VALUES (:id, :token, :at)
    ON CONFLICT (id) DO UPDATE SET token_sha256 = :token, created_at = :at, revoked_at = NULL
    WHERE revoked_at IS NOT NULL
"""
_REVOKE = "UPDATE agents SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL"
# A new token starts without them, a revoked one takes them along.
_END_PERMISSIONS = "UPDATE permissions SET ended_at = :at WHERE agent = :id AND ended_at IS NULL"
_END_ELEVATIONS = """
    UPDATE elevations SET ended_at = :at
    WHERE ended_at IS NULL AND substr(session, 1, length(:id) + 7) = 'agent:' || :id || ':'
"""
_LOGIN = """
    INSERT INTO logins (token_sha256, expires_at) VALUES (?, ?)
    ON CONFLICT (token_sha256) DO UPDATE SET expires_at = excluded.expires_at
"""


class SqliteCredentials(Part):
    """CredentialStore over SQLite."""

    async def put_agent(self, record: AgentRecord, event: AuditEvent) -> bool:
        """Keep a new or renewed agent; False where a live one has that id."""
        values = {"id": record.id, "token": record.token_sha256, "at": record.created_at}
        return await self._change_agent(_PUT, values, event)

    async def revoke_agent(self, agent: str, event: AuditEvent) -> bool:
        """End an agent's token; False where there is none alive."""
        return await self._change_agent(_REVOKE, {"id": agent, "at": event.at}, event)

    async def _change_agent(self, sql: str, values: Mapping[str, object], event: AuditEvent) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(sql, values).rowcount != 1:
                return False
            for end in (_END_PERMISSIONS, _END_ELEVATIONS):
                connection.execute(end, {"id": values["id"], "at": event.at})
            append_events(connection, (event,))
            return True

        return await self._database.write(work)

    async def agents(self) -> tuple[AgentRecord, ...]:
        """Return all agents, revoked ones too."""
        rows = await self._database.read(
            lambda connection: connection.execute(f"{_ROWS} ORDER BY id").fetchall()
        )
        return tuple(AgentRecord(*row) for row in rows)

    async def agent_by_token(self, token_sha256: str) -> AgentRecord | None:
        """Return the agent whose live token has this digest."""
        sql = f"{_ROWS} WHERE token_sha256 = ? AND revoked_at IS NULL"
        row = await self._database.read(
            lambda connection: connection.execute(sql, (token_sha256,)).fetchone()
        )
        return AgentRecord(*row) if row else None

    async def put_login(self, token_sha256: str, expires_at: int) -> None:
        """Keep a login of the page."""
        await self._database.write(lambda connection: connection.execute(_LOGIN, (token_sha256, expires_at)))

    async def login_valid(self, token_sha256: str, now: int) -> bool:
        """Tell whether this login is alive."""
        sql = "SELECT 1 FROM logins WHERE token_sha256 = ? AND expires_at > ?"
        row = await self._database.read(
            lambda connection: connection.execute(sql, (token_sha256, now)).fetchone()
        )
        return row is not None

    async def end_login(self, token_sha256: str) -> None:
        """End a login."""
        sql = "DELETE FROM logins WHERE token_sha256 = ?"
        await self._database.write(lambda connection: connection.execute(sql, (token_sha256,)))
