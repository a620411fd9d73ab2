"""Lets the keeper of deadlines look, for tests whose clock stands still meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def _no(_request):
    return False


async def deadlines_pass(approvals, fallback=_no):
    """Let the keeper of deadlines look at all there are, once."""
    task = asyncio.create_task(approvals.keep_deadlines(fallback))
    async with asyncio.timeout(30):
        # It waits for news once it has ended all that is over.
        while not approvals._earlier._waiters:  # noqa: ASYNC110 - nothing tells of that
            await asyncio.sleep(0.005)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
