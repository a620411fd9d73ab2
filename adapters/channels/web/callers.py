"""Refuses the page to processes that Sayso holds, whatever login they show."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakKeyDictionary

from aiohttp import web

from adapters.neighbours import Neighbours
from core.ports import Clock

logger = logging.getLogger("sayso.web")

_QUIET_S = 60.0
_GONE = "The connection has ended."
_READING = ("GET", "HEAD")


class Callers:
    """Knows of each connection whether its other end may show a login."""

    def __init__(self, neighbours: Neighbours, clock: Clock) -> None:
        self._neighbours = neighbours
        self._clock = clock
        self._warned_at: float | None = None
        self._known: WeakKeyDictionary[asyncio.BaseTransport, str | None] = WeakKeyDictionary()
        # One look at a time, so that many connections take no more than one of the process' threads.
        self._looking = asyncio.Lock()

    async def admit(self, request: web.Request) -> None:
        """Raise HTTPForbidden for who cannot be the operator.

        A connection can be handed on, so for all but reading it is looked at anew.
        """
        connection = request.transport
        if connection is None:
            raise web.HTTPForbidden(text=_GONE)
        if request.method not in _READING or connection not in self._known:
            self._known[connection] = await self._refusal(connection)
        if why := self._known[connection]:
            self._warn(why)
            raise web.HTTPForbidden(text=why)

    def _warn(self, why: str) -> None:
        now = self._clock.monotonic()
        if self._warned_at is None or now - self._warned_at >= _QUIET_S:
            self._warned_at = now
            logger.warning("who showed a login or a login link to the page was refused: %s", why)

    async def _refusal(self, connection: asyncio.BaseTransport) -> str | None:
        theirs, ours = (connection.get_extra_info(name) for name in ("peername", "sockname"))
        if theirs is None or ours is None:
            return _GONE
        async with self._looking:
            return await asyncio.to_thread(self._neighbours.refusal_of, theirs[:2], ours[:2])
