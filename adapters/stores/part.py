"""What every part of the store stands on."""

from __future__ import annotations

from adapters.stores.database import Database


class Part:
    """A part of the store: one Protocol, over the database that all parts share."""

    def __init__(self, database: Database) -> None:
        self._database = database
