"""What answers left standing: permissions for a time, and deny rules."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from adapters.stores.codec import load_reviewers, path_bytes, reviewers_text
from adapters.stores.learned import kept_settings, learned_by
from adapters.stores.part import Part
from adapters.stores.record import append_events
from adapters.stores.session_modes import modes_for
from core.model.request import AuditEvent, Request
from core.model.standing import DenyRule, Remembered, StandingPermission

_PERMIT = """
    INSERT INTO permissions
        (request_id, agent, session, binding, command, given_by, given_at, expires_at, max_uses)
    VALUES (:id, :agent, :session, :binding, :command, :given_by, :given_at, :expires_at, :max_uses)
"""
_FORBID = """
    INSERT INTO deny_rules (request_id, agent, command, given_by, given_at, reason)
    VALUES (:id, :agent, :command, :given_by, :given_at, :reason)
"""
_COUNTS = "ended_at IS NULL AND expires_at > :now AND (max_uses IS NULL OR uses < max_uses)"
_USE = f"""
    UPDATE permissions SET uses = uses + 1
    WHERE request_id = :id AND agent = :agent AND binding = :binding AND {_COUNTS}
"""  # noqa: S608 - its parts are constants
_PERMISSIONS = """
    SELECT request_id, agent, session, binding, command, given_by, given_at, expires_at, max_uses, uses
    FROM permissions
"""
_DENY_RULES = """
    SELECT request_id, agent, command, given_by, given_at, reason FROM deny_rules WHERE ended_at IS NULL
"""
_SEEN = "SELECT 1 FROM requests WHERE person_allowed = 1 AND agent = ? AND binding = ? LIMIT 1"


def permit(connection: sqlite3.Connection, permission: StandingPermission) -> None:
    """Keep a permission inside the transaction that is open."""
    given_by, command = reviewers_text(permission.given_by), path_bytes(permission.command)
    row = asdict(permission) | {"given_by": given_by, "command": command}
    connection.execute(_PERMIT, row)


def forbid(connection: sqlite3.Connection, rule: DenyRule) -> None:
    """Keep a deny rule inside the transaction that is open."""
    given_by, command = reviewers_text((rule.given_by,)), path_bytes(rule.command)
    row = asdict(rule) | {"given_by": given_by, "command": command}
    connection.execute(_FORBID, row)


def use_permission(connection: sqlite3.Connection, request: Request) -> bool:
    """Use the request's permission once; False where it no longer counts at the time of the request."""
    values = {
        "id": request.permission,
        "agent": request.call.agent,
        "binding": request.binding.digest,
        "now": request.created_at,
    }
    return connection.execute(_USE, values).rowcount == 1


def permission_counts(connection: sqlite3.Connection, request: Request, now: int) -> bool:
    """Tell whether the permission of a request has not ended since; this use is counted already."""
    sql = "SELECT 1 FROM permissions WHERE request_id = ? AND ended_at IS NULL AND expires_at > ?"
    return connection.execute(sql, (request.permission, now)).fetchone() is not None


def _permission(row: tuple[Any, ...]) -> StandingPermission:
    request_id, agent, session, binding, command, given_by, *times = row
    who = load_reviewers(given_by)
    return StandingPermission(request_id, agent, session, binding, _text(command), who, *times)


def _deny_rule(row: tuple[Any, ...]) -> DenyRule:
    request_id, agent, command, given_by, given_at, reason = row
    (who,) = load_reviewers(given_by)
    return DenyRule(request_id, agent, _text(command), who, given_at, reason)


def _text(command: bytes) -> str:
    return command.decode("utf-8", "surrogatepass")


class SqliteStanding(Part):
    """StandingStore over SQLite."""

    async def remembered(
        self, agent: str, binding: str, now: int, sessions: Sequence[str] = ()
    ) -> Remembered:
        """Return, as of one moment, all that earlier answers mean for a call with this binding."""
        values = {"agent": agent, "binding": binding, "now": now}
        of_binding = (
            f"{_PERMISSIONS} WHERE agent = :agent AND binding = :binding AND {_COUNTS} "
            "ORDER BY expires_at DESC LIMIT 1"
        )
        rules_of_agent = f"{_DENY_RULES} AND agent = ? ORDER BY given_at"

        def work(connection: sqlite3.Connection) -> Remembered:
            permission = connection.execute(of_binding, values).fetchone()
            rules = connection.execute(rules_of_agent, (agent,)).fetchall()
            return Remembered(
                learned_by(connection, agent),
                tuple(map(_deny_rule, rules)),
                _permission(permission) if permission else None,
                connection.execute(_SEEN, (agent, binding)).fetchone() is not None,
                bool(connection.execute("SELECT locked FROM meta").fetchone()[0]),
                (kept_settings(connection).for_agent(agent), *modes_for(connection, sessions)),
            )

        return await self._database.read(work)

    async def permissions(self, now: int) -> tuple[StandingPermission, ...]:
        """Return the permissions that still count, oldest first."""
        sql = f"{_PERMISSIONS} WHERE {_COUNTS} ORDER BY given_at, request_id"
        rows = await self._database.read(lambda connection: connection.execute(sql, {"now": now}).fetchall())
        return tuple(map(_permission, rows))

    async def end_permission(self, permission_id: str, event: AuditEvent) -> bool:
        """End a permission; False where none with this full id counts."""
        sql = f"UPDATE permissions SET ended_at = :now WHERE request_id = :id AND {_COUNTS}"  # noqa: S608 - constants
        return await self._end(sql, permission_id, event)

    async def deny_rules(self) -> tuple[DenyRule, ...]:
        """Return the deny rules that count, oldest first."""
        sql = f"{_DENY_RULES} ORDER BY given_at, request_id"
        rows = await self._database.read(lambda connection: connection.execute(sql).fetchall())
        return tuple(map(_deny_rule, rows))

    async def revoke_deny_rule(self, rule_id: str, event: AuditEvent) -> bool:
        """Revoke a deny rule; False where none with this full id counts."""
        sql = "UPDATE deny_rules SET ended_at = :now WHERE request_id = :id AND ended_at IS NULL"
        return await self._end(sql, rule_id, event)

    async def _end(self, sql: str, answer_id: str, event: AuditEvent) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(sql, {"id": answer_id, "now": event.at}).rowcount != 1:
                return False
            append_events(connection, (event,))
            return True

        return await self._database.write(work)
