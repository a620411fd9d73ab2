"""Sets the levels of sessions, for people in chats and for the operator (text 002 §14)."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from core.acts import Acts
from core.config import Config
from core.display import moment
from core.elevated.authority import Authority, authority
from core.elevated.placement import place
from core.elevations import Elevations
from core.errors import RequestError
from core.model.call import EXEC, ToolCall
from core.model.command import Placement
from core.model.elevation import DIRECTIVE_MS, Elevation, Level
from core.model.principal import Claims, Sender
from core.model.request import AuditEvent
from core.model.session import SessionKey
from core.ports import Clock, Store

LOCKED = "Sayso is locked, so nothing can be elevated; the operator unlocks it on the machine itself"
_MEANING = {
    Level.OFF: "its commands run where the configuration says",
    Level.ASK: "its commands run on the host, and every one is asked about",
    Level.ON: "its commands run on the host, and are asked about as the policy says",
    Level.FULL: (
        "its commands run on the host and nobody is asked; tool policy, deny rules and security: deny "
        "still hold, and each run is recorded and told to people"
    ),
}
_ON_THE_HOST = {
    Level.OFF: "its commands run on the host, as the configuration says",
    Level.ASK: "it runs on the host anyway; every command is asked about",
    Level.ON: "it runs on the host anyway, so this is not needed and changes nothing",
    Level.FULL: (
        "it runs on the host anyway; from now on nobody is asked, but tool policy, deny rules and "
        "security: deny still hold, and each run is recorded and told to people"
    ),
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants a session's level to be; `once` is for its next command alone."""

    session: SessionKey
    level: Level
    for_ms: int | None = None
    reason: str | None = None
    once: bool = False


class Elevator:
    """Changes what stands for sessions; who may is for the desks to find out, each in its way."""

    def __init__(
        self,
        elevations: Elevations,
        store: Store,
        clock: Clock,
        config: Callable[[], Config],
        told: Callable[[AuditEvent], None],
    ) -> None:
        self._elevations = elevations
        self._store = store
        self._clock = clock
        self._config = config
        self._told = told
        self._acts = Acts("level of a session")
        self.on_end: list[Callable[[str, str], Awaitable[int]]] = []

    def authority(self, session: SessionKey) -> Authority:
        """Tell who may elevate a session."""
        return authority(self._config(), session.agent)

    async def set(
        self, wish: Wish, by: Sender, *, break_glass: bool = False, place: str | None = None
    ) -> tuple[Elevation, str]:
        """Set a level; returns what stands now, and that in words. RequestError where it cannot be.

        Once begun it comes to its end, and people are told of it, whoever waits for the answer. `place` is
        the chat in which it was set.
        """
        await self._check_agent(wish.session)
        return await self._acts.whole(self._set(wish, by, break_glass=break_glass, place=place))

    def announce(self) -> None:
        """Tell once more, at the start of a daemon, of break-glass that stands: the last may not have."""
        for elevation in self._elevations.all():
            if elevation.break_glass and elevation.level is not Level.OFF:
                self._told(_event(elevation))

    async def _set(
        self, wish: Wish, by: Sender, *, break_glass: bool, place: str | None
    ) -> tuple[Elevation, str]:
        now = self._clock.now()
        for_ms = DIRECTIVE_MS if wish.once else wish.for_ms
        elevation = Elevation(
            id=str(uuid.uuid4()),
            session=str(wish.session),
            level=wish.level,
            set_by=by,
            set_at=now,
            until=None if for_ms is None else now + for_ms,
            reason=wish.reason,
            once=wish.once,
            break_glass=break_glass,
            place=place,
        )
        event = _event(elevation)
        if not await self._elevations.put(elevation, event):
            await self._check_agent(wish.session)
            raise RequestError(LOCKED)
        self._told(event)
        return elevation, self._words(wish, elevation)

    async def end(self, session: SessionKey, by: Sender) -> str:
        """End a session with its level, permissions, chats and open questions; returns that in words."""
        known = [record.id for record in await self._store.agents()]
        if session.agent not in known:
            raise _no_agent(session, known)
        return await self._acts.whole(self._end(session, by))

    async def close(self) -> None:
        """Wait for what is under way."""
        await self._acts.close()

    async def _end(self, session: SessionKey, by: Sender) -> str:
        actor = f"person:{by.channel}:{by.id}"
        event = AuditEvent(self._clock.now(), "session.ended", actor, None, {"session": str(session)})
        had = await self._elevations.end(str(session), event)
        why = f"the session was ended by {by.name}"
        called_off = sum([await end(str(session), why) for end in self.on_end])
        left = "its level, permissions and chats ended" if had else "nothing was set for it"
        return f"{session}: {left}; {called_off} open questions were withdrawn."

    async def state(self, session: SessionKey) -> str:
        """Tell in a line how a session stands."""
        depth = await self._store.deepest(str(session), session.depth, self._clock.now())
        call = ToolCall(EXEC, session, Claims(depth=depth))
        standing = self._elevations.standing(call)
        elevation = standing.elevation
        if elevation is None:
            return f"{session}: elevated {standing.level} ({standing.source})"
        until = f" until {moment(elevation.until)}" if elevation.until is not None else ""
        why = f": {elevation.reason}" if elevation.reason else ""
        set_by = f"set by {elevation.by} at {moment(elevation.set_at)}"
        return f"{session}: elevated {standing.level}, {set_by}{until}{why}"

    def _words(self, wish: Wish, elevation: Elevation) -> str:
        configured = place(self._config(), ToolCall(EXEC, wish.session)).placement
        meaning = (_ON_THE_HOST if configured is Placement.HOST else _MEANING)[wish.level]
        until = f" until {moment(elevation.until)}" if elevation.until is not None else ""
        if wish.once:
            once = f"for its next command alone, if that comes by {moment(elevation.until or 0)}"
            return f"{wish.session}: elevated {wish.level} {once}: {meaning}."
        return f"{wish.session}: elevated {wish.level}{until}: {meaning}."

    async def _check_agent(self, session: SessionKey) -> None:
        alive = [record.id for record in await self._store.agents() if record.revoked_at is None]
        if session.agent not in alive:
            raise _no_agent(session, alive)


def _no_agent(session: SessionKey, known: Sequence[str]) -> RequestError:
    named = ", ".join(sorted(known)[:10]) or "none"
    return RequestError(f"there is no agent {session.agent!r}; there are: {named}", field="session")


def _event(elevation: Elevation) -> AuditEvent:
    by = elevation.set_by
    facts = {
        "session": elevation.session,
        "level": elevation.level.value,
        "until": elevation.until,
        "reason": elevation.reason,
        "once": elevation.once,
        "breakGlass": elevation.break_glass,
        "name": by.name,
        "channel": by.channel,
        "place": elevation.place,
    }
    return AuditEvent(elevation.set_at, "elevated.set", f"person:{by.channel}:{by.id}", None, facts)
