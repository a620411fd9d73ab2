"""`approvals.retention`: settled requests leave the store when they are old enough, a few at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from core.errors import StoreError
from core.model.request import AuditEvent
from core.ports import Clock
from core.store_ports import HistoryStore

BATCH = 50  # some milliseconds of the writer's time
LOOKED_UP = 1_000
BREATH_S = 0.05
ROUND_S = 600.0

log = logging.getLogger(__name__)


def _nothing() -> Sequence[str]:
    return ()


class Retention:
    """Shortens the history; `gone` is told the ids of what left, for what lies elsewhere under them.

    `lying` lists the ids under which something lies there: what an earlier round, cut off, left behind, goes
    with the first round of this one, or of the next daemon.
    """

    def __init__(
        self,
        store: HistoryStore,
        clock: Clock,
        retention_ms: Callable[[], int],
        gone: Callable[[tuple[str, ...]], None],
        lying: Callable[[], Sequence[str]] = _nothing,
    ) -> None:
        self._store = store
        self._clock = clock
        self._retention_ms = retention_ms
        self._gone = gone
        self._lying = lying
        self._swept = False

    async def run(self) -> None:
        """Do a round now and then."""
        while True:
            try:
                await self.round()
            except StoreError as error:
                log.warning("old requests cannot leave now: %s", error)
            await asyncio.sleep(ROUND_S)

    async def round(self) -> int:
        """Let everything go that is old enough; returns how much. Each batch is recorded with its leaving."""
        before = self._clock.now() - self._retention_ms()

        def told(requests: int) -> AuditEvent:
            data = {"requests": requests, "endedBefore": before}
            return AuditEvent(self._clock.now(), "requests.forgotten", "daemon", None, data)

        left = 0
        while ids := await self._store.forget(before, BATCH, told):
            left += len(ids)
            await self._remove(ids)
            await asyncio.sleep(BREATH_S)  # others write in between
        await self._sweep()
        return left

    async def _sweep(self) -> None:
        """Remove what lies about requests that are not kept any more, once, and again after a failure."""
        if self._swept:
            return
        self._swept = True
        found = await asyncio.to_thread(self._lying)
        for first in range(0, len(found), LOOKED_UP):
            if orphans := await self._store.missing(found[first : first + LOOKED_UP]):
                await self._remove(orphans)

    async def _remove(self, ids: tuple[str, ...]) -> None:
        try:
            await asyncio.to_thread(self._gone, ids)
        except OSError as error:
            log.warning("what lies about old requests cannot be removed now: %s", error)
            self._swept = False
