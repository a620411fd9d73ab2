"""Where changes become facts: committed first, then told to whoever waits for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from core.approvals.cleanup import as_is
from core.errors import UnknownRequest
from core.model.request import Change, Request, State
from core.ports import RequestStore

FEED_LIMIT = 1_000

T = TypeVar("T")


class Ledger:
    """Commits changes and tells waiters, the feed and the couriers, in that order."""

    def __init__(self, store: RequestStore, shape: Callable[[Change], Change] = as_is) -> None:
        self._store = store
        self._shape = shape
        self._waiters: dict[str, set[asyncio.Queue[Request]]] = defaultdict(set)
        self._feeds: set[asyncio.Queue[Change]] = set()
        self._commits: set[asyncio.Task[Any]] = set()
        self.on_commit: list[Callable[[Change], None]] = []

    async def commit(self, change: Change) -> bool:
        """Apply a change; False where the request was not in the expected state any more.

        A caller that is cancelled stops waiting; the change, and telling everyone of it, still happen.
        """
        shaped = self._shape(change)
        return await self._see_through(self._commit(shaped), f"commit-{change.request.short_id}")

    async def commit_all(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """Apply changes together, and only then tell of those that were applied; none where one raises."""
        return await self._see_through(self._commit_all(tuple(map(self._shape, changes))), "commit-many")

    async def _see_through(self, work: Coroutine[Any, Any, T], name: str) -> T:
        task = asyncio.create_task(work, name=name)
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for the commits that are under way."""
        await asyncio.gather(*self._commits, return_exceptions=True)

    async def _commit(self, change: Change) -> bool:
        kept = await self._store.commit(change)
        if kept:
            self._tell(change)
        return kept

    async def _commit_all(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        applied = await self._store.commit_all(changes)
        for change, kept in zip(changes, applied, strict=True):
            if kept:
                self._tell(change)
        return applied

    def _tell(self, change: Change) -> None:
        for waiter in self._waiters.get(change.request.id, ()):
            waiter.put_nowait(change.request)
        for feed in tuple(self._feeds):
            self._offer(feed, change)
        for told in self.on_commit:
            told(change)

    async def until(self, request_id: str, *states: State) -> Request:
        """Wait until a request is in one of these states; UnknownRequest where there is none."""
        with self._waiting(request_id) as updates:
            request = await self._store.request(request_id)
            if request is None:
                raise UnknownRequest(f"no request has the id {request_id}", field="id")
            while request.state not in states:
                request = await updates.get()
            return request

    async def feed(self) -> AsyncGenerator[Change, None]:
        """Yield every change from now on; ends for a reader that falls too far behind."""
        queue: asyncio.Queue[Change] = asyncio.Queue(FEED_LIMIT)
        self._feeds.add(queue)
        try:
            while queue in self._feeds:
                yield await queue.get()
        finally:
            self._feeds.discard(queue)

    def _offer(self, feed: asyncio.Queue[Change], change: Change) -> None:
        if feed.full():
            self._feeds.discard(feed)
        else:
            feed.put_nowait(change)

    @contextmanager
    def _waiting(self, request_id: str) -> Iterator[asyncio.Queue[Request]]:
        queue: asyncio.Queue[Request] = asyncio.Queue()
        self._waiters[request_id].add(queue)
        try:
            yield queue
        finally:
            self._waiters[request_id].discard(queue)
            if not self._waiters[request_id]:
                del self._waiters[request_id]
