"""Acts that must not be left half-done: begun once, they come to their end, whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Acts:
    """Owns the acts of one part of the daemon that are under way; `name` is what they are about."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._under_way: set[asyncio.Task[Any]] = set()

    async def whole(self, act: Coroutine[Any, Any, T]) -> T:
        """Do it all; a caller that is cancelled (who hung up) stops waiting, and the act goes on."""
        task = asyncio.create_task(act, name=self._name)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
