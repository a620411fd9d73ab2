"""The durable store: SQLite in one file, each promise committed and synced before it is given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.stores.credentials import SqliteCredentials
from adapters.stores.elevations import SqliteElevations
from adapters.stores.history import SqliteHistory
from adapters.stores.learned import SqliteAllowlist
from adapters.stores.opening import open_database
from adapters.stores.outbox import SqliteOutbox
from adapters.stores.paired import SqlitePaired
from adapters.stores.record import SqliteLock, SqliteRecord
from adapters.stores.requests import SqliteRequests
from adapters.stores.session_modes import SqliteSessionModes
from adapters.stores.sessions import SqliteSessions
from adapters.stores.standing import SqliteStanding


class SqliteStore(
    SqliteRequests,
    SqliteHistory,
    SqliteStanding,
    SqliteSessions,
    SqliteElevations,
    SqliteSessionModes,
    SqliteAllowlist,
    SqliteCredentials,
    SqlitePaired,
    SqliteOutbox,
    SqliteRecord,
    SqliteLock,
):
    """core.ports.Store over one database file.

    Every method that writes is one transaction. A caller that is cancelled leaves none open: what it asked
    for is then applied whole or not at all.
    """


@asynccontextmanager
async def open_store(path: Path) -> AsyncIterator[SqliteStore]:
    """Open or create the store at `path`, close it at the end; raises StartError where it cannot be used."""
    async with open_database(path) as database:
        yield SqliteStore(database)
