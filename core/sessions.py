"""What a session once was it stays: a subagent cannot become the agent that spawned it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from core.model.principal import Claims
from core.model.session import SessionKey
from core.ports import Clock, SessionStore

MOST_REMEMBERED = 10_000


class Sessions:
    """Keeps the deepest spawn depth of each session; the store remembers it over restarts."""

    def __init__(self, store: SessionStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._depths: OrderedDict[SessionKey, int] = OrderedDict()

    async def settled(self, session: SessionKey, claims: Claims) -> Claims:
        """Return the claims, with the deepest depth that was ever claimed for this session."""
        claimed = max(session.depth, claims.depth)
        known = self._depths.get(session, -1)
        if claimed > known:
            known = await self._store.deepest(str(session), claimed, self._clock.now())
            self._depths[session] = known
        self._depths.move_to_end(session)
        if len(self._depths) > MOST_REMEMBERED:
            self._depths.popitem(last=False)
        return claims if known == claims.depth else replace(claims, depth=known)
