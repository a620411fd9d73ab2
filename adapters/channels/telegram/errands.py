"""Work that nobody waits for, each in a task that is owned here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

log = logging.getLogger("sayso.telegram")

_FINISH_S = 3.0


class Errands:
    """Runs what it is given in the background; what goes wrong there is logged, and ends nothing else."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, errand: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Begin an errand."""
        task = asyncio.create_task(_logged(name, errand), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self) -> None:
        """Let what was begun finish for a moment, then end it."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=_FINISH_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)


async def _logged(name: str, errand: Coroutine[None, None, None]) -> None:
    try:
        await errand
    except Exception:  # one errand must not end the channel
        log.exception("%s could not be handled", name)
