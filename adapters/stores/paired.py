"""People who were let in by a one-time code."""

from __future__ import annotations

import sqlite3

from adapters.stores.part import Part
from adapters.stores.record import append_events
from core.model.pairing import PairedPerson
from core.model.request import AuditEvent

_PUT = "INSERT OR REPLACE INTO paired (channel, id, name, route, paired_at) VALUES (?, ?, ?, ?, ?)"
_ALL = "SELECT channel, id, name, route, paired_at FROM paired ORDER BY paired_at, channel, id, route"
_FORGET = "DELETE FROM paired WHERE channel = ? AND id = ? AND route = ?"


class SqlitePaired(Part):
    """PairingStore over SQLite."""

    async def put_paired(self, person: PairedPerson, event: AuditEvent) -> None:
        """Keep a person; one who is kept for the same channel, id and route already is replaced."""
        values = (person.channel, person.id, person.name, person.route, person.paired_at)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_PUT, values)
            append_events(connection, (event,))

        await self._database.write(work)

    async def paired(self) -> tuple[PairedPerson, ...]:
        """Return everybody, oldest first."""
        rows = await self._database.read(lambda connection: connection.execute(_ALL).fetchall())
        return tuple(PairedPerson(*row) for row in rows)

    async def unpair(self, person: PairedPerson, event: AuditEvent) -> bool:
        """Forget a person for their route; False where there is none."""

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(_FORGET, (person.channel, person.id, person.route)).rowcount != 1:
                return False
            append_events(connection, (event,))
            return True

        return await self._database.write(work)
