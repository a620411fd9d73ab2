"""The operator's desk for sessions: which there are, what holds for them, and break-glass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.approvals.elevation import as_sender
from core.approvals.routes import LOCAL_CHANNELS
from core.elevations import Elevations
from core.elevator import Elevator, Wish
from core.errors import RequestError
from core.model.call import EXEC, ToolCall
from core.model.elevation import ChatBinding, Level
from core.model.principal import Claims, Reviewer, Sender
from core.model.request import AuditEvent
from core.model.session import KnownSession, SessionKey
from core.ports import Clock, Store

MOST_SESSIONS = 1_000
COMMAND_LINE = "cli"


class SessionConsole:
    """Lists sessions and changes what holds for them; results are plain JSON values."""

    def __init__(
        self,
        elevator: Elevator,
        elevations: Elevations,
        store: Store,
        clock: Clock,
        place: Callable[[str, str], str],
    ) -> None:
        self._elevator = elevator
        self._elevations = elevations
        self._store = store
        self._clock = clock
        self._place = place

    async def sessions(self) -> list[dict[str, Any]]:
        """List the sessions that were seen or that something is set for, those that asked last first."""
        known = list(await self._store.sessions(MOST_SESSIONS))
        seen = {session.key for session in known}
        bindings = await self._store.chat_bindings()
        others = dict.fromkeys(
            [*(kept.session for kept in self._elevations.all()), *(one.session for one in bindings)]
        )
        known += [KnownSession(key, 0, 0) for key in others if key not in seen]
        return [self._row(session, bindings) for session in known]

    def elevated(self) -> list[dict[str, Any]]:
        """List the sessions for which somebody has set more than off, oldest first; from memory alone."""
        rows = [self._row(KnownSession(kept.session, 0, 0), ()) for kept in self._elevations.all()]
        return [row for row in rows if row["elevated"] != Level.OFF]

    async def elevate(
        self, session: str, level: str, for_ms: int | None, reason: str | None, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Set a session's level, as the operator on the machine or on the page.

        On the command line `allowFrom` is not asked: what it does not name is break-glass, which demands a
        reason and is announced everywhere. Full demands a reason and a time from everybody.
        """
        wish = Wish(_key(session), Level(level), for_ms, reason)
        by = as_sender(reviewer)
        who = self._elevator.authority(wish.session)
        if wish.level is Level.OFF:
            return await self._set(wish, by, break_glass=False)
        if not who.enabled:
            raise RequestError(
                f"elevated mode is off: {who.source} is false; set it to true and run sayso reload",
                field="session",
            )
        break_glass = not who.admits(by)
        if break_glass and by.channel != COMMAND_LINE:
            raise RequestError(
                f"{by.channel}:{by.id} is not in {who.source}; add it there and run sayso reload, "
                "or use sayso elevated on the machine",
                field="session",
            )
        if wish.level is Level.FULL and (not reason or for_ms is None):
            raise RequestError(
                "full skips everybody's answer: give a time and a reason (--for 15m --reason TEXT)",
                field="reason" if not reason else "forMs",
            )
        if break_glass and not reason:
            raise RequestError(
                f"cli:{by.id} is not in {who.source}, so this is break-glass: give a reason (--reason TEXT); "
                "it is announced in all channels",
                field="reason",
            )
        return await self._set(wish, by, break_glass=break_glass)

    async def bind(self, session: str, channel: str, to: str, reviewer: Reviewer) -> dict[str, Any]:
        """Tell which session a chat means where it names none."""
        key = _key(session)
        if channel in LOCAL_CHANNELS:
            raise RequestError(f"{channel} is no chat; name telegram, discord or slack", field="channel")
        try:
            place = self._place(channel, to)
        except ValueError as error:
            raise RequestError(str(error), field="to") from None
        binding = ChatBinding(channel, place, str(key), as_sender(reviewer), self._clock.now())
        await bind_chat(self._store, self._clock, binding)
        text = f"{channel} {to} means {key} from now on, where no other session is named."
        return {"session": str(key), "channel": channel, "place": place, "text": text}

    async def end(self, session: str, reviewer: Reviewer) -> dict[str, Any]:
        """End a session: its level, permissions, chats and open questions."""
        key = _key(session)
        return {"session": str(key), "text": await self._elevator.end(key, as_sender(reviewer))}

    async def _set(self, wish: Wish, by: Sender, *, break_glass: bool) -> dict[str, Any]:
        elevation, words = await self._elevator.set(wish, by, break_glass=break_glass)
        return {
            "session": elevation.session,
            "level": elevation.level.value,
            "until": elevation.until,
            "breakGlass": break_glass,
            "text": words,
        }

    def _row(self, known: KnownSession, bindings: tuple[ChatBinding, ...]) -> dict[str, Any]:
        key = SessionKey.parse(known.key)
        standing = self._elevations.standing(ToolCall(EXEC, key, Claims(depth=known.depth)))
        elevation = standing.elevation
        return {
            "session": known.key,
            "agent": key.agent,
            "depth": max(known.depth, key.depth),
            "elevated": standing.level.value,
            "source": standing.source,
            "setBy": elevation.by if elevation else None,
            "setAt": elevation.set_at if elevation else None,
            "until": elevation.until if elevation else None,
            "reason": elevation.reason if elevation else None,
            "breakGlass": bool(elevation and elevation.break_glass),
            "chats": [[one.channel, one.place] for one in bindings if one.session == known.key],
            "firstSeen": known.first_seen or None,
            "lastRequest": known.last_request,
        }


async def bind_chat(store: Store, clock: Clock, binding: ChatBinding) -> None:
    """Keep which session of its agent a chat means, and record who said so."""
    by = binding.bound_by
    facts = {"session": binding.session, "channel": binding.channel, "place": binding.place, "name": by.name}
    event = AuditEvent(clock.now(), "session.bound", f"person:{by.channel}:{by.id}", None, facts)
    await store.bind_chat(binding, SessionKey.parse(binding.session).agent, event)


def _key(text: str) -> SessionKey:
    try:
        return SessionKey.parse(text)
    except ValueError as error:
        raise RequestError(str(error), field="session") from None
