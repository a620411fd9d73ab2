"""The elevations that stand: kept by the store, looked up here for every call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from core.acts import Acts
from core.config import Config
from core.elevated.authority import authority
from core.elevated.levels import standing_for
from core.errors import StoreError
from core.lasting import Lasting
from core.model.call import EXEC, ToolCall
from core.model.decision import Decision, Effect, Layer
from core.model.elevation import Elevation, Standing
from core.model.request import AuditEvent
from core.model.session import SessionKey
from core.policy.names import normalise
from core.ports import Clock
from core.store_ports import ElevationStore, RevisionStore

ELEVATION_ENDED = Decision(
    Layer.ELEVATED,
    Effect.DENY,
    "the elevation under which this would run has just ended; asked again, it is decided without it",
    "elevated.ended",
    "sayso sessions",
)
NOT_KEPT = "nothing is elevated there for now, but what stood before is back after a restart: set it again"
LONGEST_QUESTION_MS = 8 * 86_400_000  # how long a used directive may still be looked up


class _Store(ElevationStore, RevisionStore, Protocol):
    """The parts of the store that this is about."""


class Elevations:
    """Tells which level holds for a call, and changes what stands.

    The store has the last word: a start that rests on an elevation is refused where that has ended.
    """

    def __init__(self, store: _Store, clock: Clock, config: Callable[[], Config]) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._by_session: dict[str, Elevation] = {}
        self._directives: dict[str, Elevation] = {}  # by session, not used yet
        self._used: dict[str, Elevation] = {}  # by id
        self._one_at_a_time = asyncio.Lock()
        self._lasting = Lasting(clock)
        self._acts = Acts("elevation")

    async def close(self) -> None:
        """Wait for what is being kept."""
        await self._acts.close()

    async def load(self) -> None:
        """Take up what was kept."""
        for elevation in await self._store.elevations():
            self._note(elevation)

    def standing(self, call: ToolCall) -> Standing:
        """Return the level that holds for a call, before it says anything itself."""
        lasting = {key: one for key, one in self._by_session.items() if not self._lasting.over(one.id)}
        return standing_for(self._config(), call, lasting, self._used, self._clock.now())

    def standing_of(self, session: str) -> Elevation | None:
        """Return what was set for a session, where its time is not over."""
        kept = self._by_session.get(session)
        return kept if kept is not None and self._lasts(kept) else None

    def all(self) -> tuple[Elevation, ...]:
        """List what is set for sessions, oldest first."""
        standing = filter(self._lasts, self._by_session.values())
        return tuple(sorted(standing, key=lambda one: one.set_at))

    async def directed(self, call: ToolCall) -> ToolCall:
        """Use up the directive that waits for the next command of this session, and note it in the call."""
        session = str(call.session)
        waiting = self._directives.get(session)
        if waiting is None or call.by_client or normalise(call.tool) != EXEC:
            return call
        if call.depth != call.session.depth:
            return call  # a directive is never inherited
        async with self._one_at_a_time:
            if self._directives.pop(session, None) is not waiting:
                return call
            now = self._clock.now()
            admitted = authority(self._config(), call.agent).admits(waiting.set_by)
            if not self._lasts(waiting) or not admitted:
                return call
            if not await self._store.use_directive(waiting.id, now):
                return call
            self._note(replace(waiting, used_at=now))
        return replace(call, directive=waiting.id)

    async def put(self, elevation: Elevation, event: AuditEvent) -> bool:
        """Set a session's level, in place of what stood; False where everything is locked.

        What stood ends first: where the new level cannot be kept, none holds.
        """
        return await self._acts.whole(self._put(elevation, event))

    async def _put(self, elevation: Elevation, event: AuditEvent) -> bool:
        async with self._one_at_a_time:
            self._forget(elevation.session, directive_alone=elevation.once)
            try:
                kept = await self._store.elevate(elevation, event)
            except StoreError as error:
                raise StoreError(f"{error}; {NOT_KEPT}") from error
            if kept:
                self._note(elevation)
                await self._store.revise()  # what was decided before this was looked up here is void
            return kept

    async def end(self, session: str, event: AuditEvent) -> bool:
        """End a session: its level, its permissions, its chats; False where nothing of it was kept."""
        return await self._acts.whole(self._end(session, event))

    async def _end(self, session: str, event: AuditEvent) -> bool:
        async with self._one_at_a_time:
            self._forget(session)
            return await self._store.end_session(session, event)

    def forget_agent(self, agent: str) -> None:
        """Drop what was set for an agent's sessions, because the store did so when its token ended."""
        for kept in (self._by_session, self._directives, self._used):
            for key in [key for key, one in kept.items() if SessionKey.parse(one.session).agent == agent]:
                del kept[key]

    def forget_all(self) -> None:
        """Drop everything, because the store did so with a lock."""
        self._by_session.clear()
        self._directives.clear()
        self._used.clear()

    def _forget(self, session: str, *, directive_alone: bool = False) -> None:
        ended = [self._directives.pop(session, None)]
        if not directive_alone:
            ended.append(self._by_session.pop(session, None))
        for one in filter(None, ended):
            self._lasting.forget(one.id)
        if directive_alone:
            return
        self._used = {key: one for key, one in self._used.items() if one.session != session}

    def _lasts(self, elevation: Elevation) -> bool:
        return elevation.lasts(self._clock.now()) and not self._lasting.over(elevation.id)

    def _note(self, elevation: Elevation) -> None:
        if elevation.until is not None and elevation.used_at is None:
            self._lasting.begin(elevation.id, elevation.until, elevation.until - elevation.set_at)
        if not elevation.once:
            self._by_session[elevation.session] = elevation
        elif elevation.used_at is None:
            self._directives[elevation.session] = elevation
        else:
            oldest = self._clock.now() - LONGEST_QUESTION_MS
            self._used = {key: one for key, one in self._used.items() if (one.used_at or 0) > oldest}
            self._used[elevation.id] = elevation
