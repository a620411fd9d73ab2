"""The elevations that stand: kept by the store, looked up here for every call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from core.config import Config
from core.elevated.authority import authority
from core.elevated.levels import standing_for
from core.model.call import EXEC, ToolCall
from core.model.decision import Decision, Effect, Layer
from core.model.elevation import Elevation, Standing
from core.model.request import AuditEvent
from core.policy.names import normalise
from core.ports import Clock
from core.store_ports import ElevationStore

ELEVATION_ENDED = Decision(
    Layer.ELEVATED,
    Effect.DENY,
    "the elevation under which this would run has just ended; asked again, it is decided without it",
    "elevated.ended",
    "sayso sessions",
)
LONGEST_QUESTION_MS = 8 * 86_400_000  # how long a used directive may still be looked up


class Elevations:
    """Tells which level holds for a call, and changes what stands.

    The store has the last word: a start that rests on an elevation is refused where that has ended.
    """

    def __init__(self, store: ElevationStore, clock: Clock, config: Callable[[], Config]) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._by_session: dict[str, Elevation] = {}
        self._directives: dict[str, Elevation] = {}  # by session, not used yet
        self._used: dict[str, Elevation] = {}  # by id
        self._one_at_a_time = asyncio.Lock()

    async def load(self) -> None:
        """Take up what was kept."""
        for elevation in await self._store.elevations():
            self._note(elevation)

    def standing(self, call: ToolCall) -> Standing:
        """Return the level that holds for a call, before it says anything itself."""
        return standing_for(self._config(), call, self._by_session, self._used, self._clock.now())

    def standing_of(self, session: str) -> Elevation | None:
        """Return what was set for a session, where its time is not over."""
        kept = self._by_session.get(session)
        return kept if kept is not None and kept.lasts(self._clock.now()) else None

    def all(self) -> tuple[Elevation, ...]:
        """List what is set for sessions, oldest first."""
        now = self._clock.now()
        return tuple(
            sorted(
                (kept for kept in self._by_session.values() if kept.lasts(now)), key=lambda one: one.set_at
            )
        )

    async def directed(self, call: ToolCall) -> ToolCall:
        """Use up the directive that waits for the next command of this session, and note it in the call."""
        session = str(call.session)
        waiting = self._directives.get(session)
        if waiting is None or normalise(call.tool) != EXEC or call.depth != call.session.depth:
            return call
        async with self._one_at_a_time:
            if self._directives.pop(session, None) is not waiting:
                return call
            now = self._clock.now()
            admitted = authority(self._config(), call.agent).admits(waiting.set_by)
            if not waiting.lasts(now) or not admitted or not await self._store.use_directive(waiting.id, now):
                return call
            self._note(replace(waiting, used_at=now))
        return replace(call, directive=waiting.id)

    async def put(self, elevation: Elevation, event: AuditEvent) -> bool:
        """Set a session's level, in place of what stood; False where everything is locked.

        What stood ends first: where the new level cannot be kept, none holds.
        """
        async with self._one_at_a_time:
            self._forget(elevation.session, directive_alone=elevation.once)
            kept = await self._store.elevate(elevation, event)
            if kept:
                self._note(elevation)
            return kept

    async def end(self, session: str, event: AuditEvent) -> bool:
        """End a session: its level, its permissions, its chats; False where nothing of it was kept."""
        async with self._one_at_a_time:
            self._forget(session)
            return await self._store.end_session(session, event)

    def forget_all(self) -> None:
        """Drop everything, because the store did so with a lock."""
        self._by_session.clear()
        self._directives.clear()
        self._used.clear()

    def _forget(self, session: str, *, directive_alone: bool = False) -> None:
        self._directives.pop(session, None)
        if directive_alone:
            return
        self._by_session.pop(session, None)
        self._used = {key: one for key, one in self._used.items() if one.session != session}

    def _note(self, elevation: Elevation) -> None:
        if not elevation.once:
            self._by_session[elevation.session] = elevation
        elif elevation.used_at is None:
            self._directives[elevation.session] = elevation
        else:
            oldest = self._clock.now() - LONGEST_QUESTION_MS
            self._used = {key: one for key, one in self._used.items() if (one.used_at or 0) > oldest}
            self._used[elevation.id] = elevation
