"""The history: searched by indexed columns, and shortened in small steps."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from adapters.stores.codec import load_request, shown_text
from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.history import HistoryQuery
from core.model.request import AuditEvent, Request, State

_MOST = 10_000
_FIND = "SELECT seq FROM requests INDEXED BY requests_by_moment"
_FINAL = json.dumps([state for state in State if state.final])
_SETTLED = json.dumps([state for state in State if state is not State.WAITING])
_WHERE = {
    "agent": "agent = :agent",
    "session": "session LIKE :session ESCAPE '!'",
    "text": "command LIKE :text ESCAPE '!'",
    "since": "moment >= :since",
    "until": "moment < :until",
    "person": (
        "id IN (SELECT request_id FROM answerers WHERE person = :person UNION SELECT request_id FROM "
        "answerers WHERE substr(person, instr(person, ':') + 1) = :person OR name = :person COLLATE NOCASE "
        "UNION SELECT request_id FROM reviews WHERE :person IN (person, id, channel || ':' || id))"
    ),
}
_ABOUT = ("answerers", "reviews", "grants", "outbox", "copies")


def _part_of(text: str) -> str:
    """Give the LIKE pattern for a part of a text."""
    plain = shown_text(text)
    for special in "!%_":
        plain = plain.replace(special, f"!{special}")
    return f"%{plain}%"


def _values(query: HistoryQuery) -> dict[str, str | int]:
    asked = {name: getattr(query, name) for name in _WHERE}
    values = {name: value for name, value in asked.items() if value is not None}
    return {name: _part_of(value) if name in ("session", "text") else value for name, value in values.items()}


def find(query: HistoryQuery) -> tuple[str, dict[str, str | int]]:
    """Give the statement that finds the rows, from the one index that holds all that is looked at."""
    values = _values(query)
    conditions = ["state IN (SELECT value FROM json_each(:states))", *(_WHERE[name] for name in values)]
    values["states"] = json.dumps(query.states) if query.states else _SETTLED
    values["limit"] = max(0, min(query.limit, _MOST))
    where = " AND ".join(conditions)
    return f"{_FIND} WHERE {where} ORDER BY moment DESC, seq DESC LIMIT :limit", values


class SqliteHistory(Part):
    """HistoryStore over SQLite."""

    async def search(self, query: HistoryQuery) -> tuple[Request, ...]:
        """Return the requests that fit, newest first; what waits only where `states` names it."""
        found, values = find(query)
        sql = f"SELECT body, stdin FROM requests WHERE seq IN ({found}) ORDER BY moment DESC, seq DESC"  # noqa: S608 - made of constants

        def work(connection: sqlite3.Connection) -> tuple[Request, ...]:
            return tuple(load_request(body, stdin) for body, stdin in connection.execute(sql, values))

        return await self._database.read(work)

    async def count(self, *states: State) -> int:
        """Tell how many requests are in these states."""
        sql = "SELECT count(*) FROM requests WHERE state IN (SELECT value FROM json_each(?))"
        return int(await self._database.read(lambda c: c.execute(sql, (json.dumps(states),)).fetchone()[0]))

    async def forget(self, before: int, limit: int, told: Callable[[int], AuditEvent]) -> tuple[str, ...]:
        """Let requests go that ended before this time, at most so many; returns their ids."""
        old = (
            "SELECT id FROM requests WHERE moment < ? AND state IN (SELECT value FROM json_each(?)) "
            "ORDER BY moment LIMIT ?"
        )

        def work(connection: sqlite3.Connection) -> tuple[str, ...]:
            ids = tuple(row[0] for row in connection.execute(old, (before, _FINAL, max(0, limit))))
            for table in _ABOUT:
                connection.executemany(f"DELETE FROM {table} WHERE request_id = ?", [(i,) for i in ids])  # noqa: S608 - constants
            connection.executemany("DELETE FROM requests WHERE id = ?", [(i,) for i in ids])
            if ids:
                append_events(connection, (told(len(ids)),))
            return ids

        return await self._database.write(work, durable=False)

    async def missing(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of these ids under which no request is kept."""
        sql = "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT id FROM requests)"
        rows = await self._database.read(lambda c: c.execute(sql, (json.dumps(ids),)).fetchall())
        return tuple(row[0] for row in rows)
