"""Background tasks, each with a name, an owner, and an awaited end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

log = logging.getLogger(__name__)


@asynccontextmanager
async def owned(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Own a background task: a fault is logged at once, and its end is awaited."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_report_fault)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _report_fault(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (fault := task.exception()) is not None:
        log.critical("%s ended by a fault: %r", task.get_name(), fault, exc_info=fault)
