"""What "always" left, what the operator added, and the settings of exec-approvals.json."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from adapters.stores.codec import (
    entry_text,
    load_entry,
    load_reviewers,
    load_settings,
    path_bytes,
    reviewers_text,
    settings_text,
    shown_text,
)
from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.allowlist import AllowlistEdit, AllowlistEntry, EntryUse, ExecApprovals, KeptEntry
from core.model.request import AuditEvent, Request
from core.model.tightening import DocumentSettings

_KEEP = """
    INSERT INTO allowlist
        (id, entry, agent, given_by, given_at, request_id, last_used_at, last_command, last_path)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""
_ALL = """
    SELECT id, entry, given_by, given_at, request_id, last_used_at, last_command, last_path
    FROM allowlist ORDER BY seq
"""
_USED = "UPDATE allowlist SET last_used_at = ?, last_command = ?, last_path = ? WHERE id = ?"


def keep_learned(connection: sqlite3.Connection, request: Request, entries: Iterable[AllowlistEntry]) -> None:
    """Keep what "always" leaves, each entry once, inside the transaction that is open."""
    resolution = request.resolution
    by, at = (resolution.people, resolution.at) if resolution else ((), request.created_at)
    kept = (KeptEntry(str(uuid.uuid4()), entry, by, at, request.id) for entry in entries)
    connection.executemany(_KEEP, map(_row, kept))


def learned_by(connection: sqlite3.Connection, agent: str) -> tuple[AllowlistEntry, ...]:
    """Return the kept entries that count for an agent, oldest first."""
    sql = "SELECT id, entry FROM allowlist WHERE agent IS NULL OR agent = ? ORDER BY seq"
    rows = connection.execute(sql, (agent,))
    return tuple(replace(load_entry(text), id=entry_id) for entry_id, text in rows)


def kept_settings(connection: sqlite3.Connection) -> DocumentSettings:
    """Return the settings of exec-approvals.json."""
    return load_settings(connection.execute("SELECT settings FROM exec_approvals").fetchone()[0])


class SqliteAllowlist(Part):
    """AllowlistStore over SQLite."""

    async def learned(self, agent: str) -> tuple[AllowlistEntry, ...]:
        """Return the kept entries that count for this agent, oldest first."""
        return await self._database.read(lambda connection: learned_by(connection, agent))

    async def exec_approvals(self) -> ExecApprovals:
        """Return all entries, oldest first, and the settings, as of one moment."""

        def work(connection: sqlite3.Connection) -> ExecApprovals:
            entries = tuple(map(_kept, connection.execute(_ALL)))
            return ExecApprovals(_revision(connection), kept_settings(connection), entries)

        return await self._database.read(work)

    async def edit_allowlist(self, revision: int, edit: AllowlistEdit, event: AuditEvent) -> bool:
        """Apply an edit in one durable transaction, or return False where the revision is another by now."""

        def work(connection: sqlite3.Connection) -> bool:
            if _revision(connection) != revision:
                return False
            removed = [(entry_id,) for entry_id in edit.remove]
            connection.executemany("DELETE FROM allowlist WHERE id = ?", removed)
            if any(connection.execute(_KEEP, _row(kept)).rowcount != 1 for kept in edit.put):
                return False
            if edit.settings is not None:
                connection.execute("UPDATE exec_approvals SET settings = ?", (settings_text(edit.settings),))
            append_events(connection, (event,))
            return True

        return await self._database.write(work)

    async def record_uses(self, uses: Sequence[EntryUse], at: int) -> None:
        """Note when, and for which commands, entries last admitted something."""
        rows = [(at, shown_text(use.command), path_bytes(use.path), use.id) for use in uses]
        await self._database.write(lambda connection: connection.executemany(_USED, rows), durable=False)


def _revision(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT revision FROM exec_approvals").fetchone()[0])


def _row(kept: KeptEntry) -> tuple[Any, ...]:
    return (
        kept.id,
        entry_text(kept.entry),
        kept.entry.agent,
        reviewers_text(kept.given_by) if kept.given_by else None,
        kept.given_at,
        kept.request_id,
        kept.last_used_at,
        None if kept.last_command is None else shown_text(kept.last_command),
        None if kept.last_path is None else path_bytes(kept.last_path),
    )


def _kept(row: tuple[Any, ...]) -> KeptEntry:
    entry_id, text, given_by, given_at, request_id, used_at, command, path = row
    return KeptEntry(
        entry_id,
        replace(load_entry(text), id=entry_id),
        load_reviewers(given_by) if given_by else (),
        given_at,
        request_id,
        used_at,
        command,
        None if path is None else path.decode("utf-8", "surrogatepass"),
    )
