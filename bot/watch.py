"""Watches how the channels are, and brings what lasts to the record and to the other channels."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from bot.outages import Outage, Row, observe
from core.errors import StoreError
from core.model.request import AuditEvent
from core.ports import AuditStore, Clock

log = logging.getLogger(__name__)

LOOK_S = 1.0


class Watch:
    """Looks at every channel each second; what it tells is recorded first."""

    def __init__(
        self,
        rows: Callable[[], Iterable[Row]],
        record: AuditStore,
        hear: Callable[[AuditEvent], None],
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._record = record
        self._hear = hear
        self._clock = clock
        self._outages: dict[str, Outage] = {}
        self._untold: list[AuditEvent] = []

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once; what the record does not take now is told with a later look."""
        now, steady = self._clock.now(), self._clock.monotonic()
        self._outages, events = observe(self._outages, self._rows(), now, steady)
        self._untold += events
        try:
            while self._untold:
                await self._record.append(self._untold[0])
                self._hear(self._untold.pop(0))
        except StoreError as error:
            log.warning("that a channel changed cannot be recorded now: %s", error)
