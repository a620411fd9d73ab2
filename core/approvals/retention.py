"""`approvals.retention`: settled requests leave the store when they are old enough, a few at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from core.errors import StoreError
from core.model.request import AuditEvent
from core.ports import AuditStore, Clock
from core.store_ports import HistoryStore

BATCH = 50  # some milliseconds of the writer's time
BREATH_S = 0.05
ROUND_S = 600.0

log = logging.getLogger(__name__)


class _Kept(HistoryStore, AuditStore, Protocol):
    """The parts of the store that this is about."""


class Retention:
    """Shortens the history; `gone` is told the ids of what left, for what lies elsewhere under them."""

    def __init__(
        self,
        store: _Kept,
        clock: Clock,
        retention_ms: Callable[[], int],
        gone: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._retention_ms = retention_ms
        self._gone = gone

    async def run(self) -> None:
        """Do a round now and then."""
        while True:
            try:
                await self.round()
            except StoreError as error:
                log.warning("old requests cannot leave now: %s", error)
            await asyncio.sleep(ROUND_S)

    async def round(self) -> int:
        """Let everything go that is old enough; returns how much that was, and records it."""
        before = self._clock.now() - self._retention_ms()
        left = 0
        while ids := await self._store.forget(before, BATCH):
            left += len(ids)
            await asyncio.to_thread(self._gone, ids)
            await asyncio.sleep(BREATH_S)  # others write in between
        if left:
            data = {"requests": left, "endedBefore": before}
            await self._store.append(
                AuditEvent(self._clock.now(), "requests.forgotten", "daemon", None, data)
            )
        return left
