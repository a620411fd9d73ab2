"""`/elevated` and `/sayso bind` in chats: who may, which session is meant, and what becomes of refusals."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.approvals import commands
from core.approvals.elevation import ELEVATION_REFUSED
from core.approvals.tries import Tries
from core.elevator import Elevator, Wish
from core.errors import RequestError
from core.model.chat import Choice, Press, Reply, Typed
from core.model.elevation import ChatBinding, Level
from core.model.principal import Sender
from core.model.request import AuditEvent
from core.model.session import SessionKey
from core.ports import Clock, Store
from core.session_console import bind_chat

WINDOW_S = 10 * 60.0
MOST_ANSWERED = 10
REPORTED_AT = 5
MOST_CHOICES, MOST_PENDING = 8, 1_000
CHOICE_S = 5 * 60.0
EVERYBODY = Sender("any", "any")

NOT_YOURS = Reply("You are not among the people who may elevate here, so nothing was changed.")
TOO_LATE = Reply("This choice is no longer open; type the command once more.")
NOT_YOUR_CHOICE = Reply("This choice is for the one who typed the command.", still_open=True)
NO_SESSION = (
    "No session belongs to this chat. Name one, as in /elevated on agent:main:main, or bind one to this "
    "chat: /sayso bind agent:main:main. On the machine, sayso sessions lists them."
)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A command that waits for its sender to say which session is meant; `group` is of all its buttons."""

    typed: Typed
    command: commands.Elevated
    session: SessionKey
    group: str
    until: float


class Directives:
    """The desk at which chats change levels."""

    def __init__(
        self,
        elevator: Elevator,
        store: Store,
        clock: Clock,
        place: Callable[[str, str], str],
        told: Callable[[AuditEvent], None],
    ) -> None:
        self._elevator = elevator
        self._store = store
        self._clock = clock
        self._place = place
        self._told = told
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._answered = Tries(clock, most=MOST_ANSWERED, window_s=WINDOW_S)
        self._all = Tries(clock, most=REPORTED_AT, window_s=WINDOW_S)

    async def typed(self, typed: Typed, command: commands.Elevated | commands.SaysoBind) -> Reply | None:
        """Take a command; None where somebody was refused too often to be answered again."""
        if isinstance(command, commands.SaysoBind):
            return await self._bind(typed, command.session)
        return await self._elevated(typed, command)

    async def _elevated(self, typed: Typed, command: commands.Elevated) -> Reply | None:
        bound = await self._bound_to(typed)
        sessions = [command.session] if command.session else bound or await self._naming(typed)
        theirs = [session for session in sessions if self._may(typed.sender, session)]
        if not theirs:
            return await self._none_of_theirs(typed, sessions, command.level)
        if command.level is None:
            return Reply("\n".join([await self._elevator.state(session) for session in theirs]))
        # A session names its chat by itself: before nobody is asked any more, somebody confirms which it is.
        doubtful = command.level is Level.FULL and not command.session and not bound
        if len(theirs) > 1 or doubtful:
            return self._which(typed, command, theirs)
        return await self._set(typed, command, theirs[0])

    async def chosen(self, press: Press) -> Reply:
        """Take the button that says which session was meant; it counts once, and for who typed alone."""
        pending = self._pending.get(press.nonce)
        if pending is None or pending.until < self._clock.monotonic():
            return TOO_LATE
        typist = pending.typed.sender
        if (press.sender.channel, press.sender.id) != (typist.channel, typist.id):
            return NOT_YOUR_CHOICE
        self._pending = OrderedDict(
            (token, other) for token, other in self._pending.items() if other.group != pending.group
        )
        if not self._may(press.sender, pending.session):
            return await self._refuse(pending.typed, pending.session, str(pending.command.level)) or NOT_YOURS
        return await self._set(pending.typed, pending.command, pending.session)

    async def _bind(self, typed: Typed, session: SessionKey) -> Reply | None:
        if not self._may(typed.sender, session):
            return await self._refuse(typed, session, "bind")
        binding = ChatBinding(
            typed.sender.channel, typed.place, str(session), typed.sender, self._clock.now()
        )
        await bind_chat(self._store, self._clock, binding)
        return Reply(f"This chat means {session} from now on, where no other is named.", private=False)

    def _may(self, sender: Sender, session: SessionKey) -> bool:
        return self._elevator.authority(session).admits(sender)

    async def _set(self, typed: Typed, command: commands.Elevated, session: SessionKey) -> Reply:
        if command.level is None:
            return Reply(await self._elevator.state(session))
        wish = Wish(session, command.level, command.for_ms, None, once=command.once)
        try:
            _, words = await self._elevator.set(wish, typed.sender, place=typed.place)
        except RequestError as error:
            return Reply(f"Nothing was changed: {error}.")
        return Reply(words, private=False)

    async def _bound_to(self, typed: Typed) -> list[SessionKey]:
        """List the sessions that somebody bound to a chat."""
        here = (typed.sender.channel, typed.place)
        bindings = await self._store.chat_bindings()
        return [SessionKey.parse(one.session) for one in bindings if (one.channel, one.place) == here]

    async def _naming(self, typed: Typed) -> list[SessionKey]:
        """List the sessions whose key names a chat."""
        keys = map(SessionKey.parse, await self._store.sessions_on(typed.sender.channel))
        return [key for key in keys if key.peer and self._is_here(key.peer, typed)][:MOST_CHOICES]

    def _is_here(self, peer: str, typed: Typed) -> bool:
        try:
            return self._place(typed.sender.channel, peer) == typed.place
        except ValueError:
            return False

    def _which(self, typed: Typed, command: commands.Elevated, sessions: Sequence[SessionKey]) -> Reply:
        """Ask which of several sessions is meant."""
        group, until = secrets.token_urlsafe(16), self._clock.monotonic() + CHOICE_S
        choices = []
        for session in sessions[:MOST_CHOICES]:
            token = secrets.token_urlsafe(16)
            self._pending[token] = _Pending(typed, command, session, group, until)
            choices.append(Choice(f"{session.agent}: {session}", token))
        while len(self._pending) > MOST_PENDING:
            self._pending.popitem(last=False)
        text = f"Several sessions belong to this chat. Elevated {command.level} for which one?"
        if len(sessions) == 1:
            text = f"This session names this chat as its own. Elevated {command.level} for it?"
        return Reply(text, choices=tuple(choices))

    async def _none_of_theirs(
        self, typed: Typed, sessions: Sequence[SessionKey], level: object
    ) -> Reply | None:
        if sessions:
            return await self._refuse(typed, sessions[0], str(level))
        agents = [record.id for record in await self._store.agents() if record.revoked_at is None]
        if any(self._may(typed.sender, SessionKey.main(agent)) for agent in agents):
            return Reply(NO_SESSION)
        return await self._refuse(typed, None, str(level))

    async def _refuse(self, typed: Typed, session: SessionKey | None, wanted: str) -> Reply | None:
        """Say no to one person alone, record it, and after some in a while report it to the owner."""
        sender = typed.sender
        if self._answered.exhausted(sender):
            return None
        self._answered.count(sender)
        facts = {
            "name": sender.name,
            "place": typed.place,
            "session": str(session) if session else None,
            "wanted": wanted,
        }
        await self._record(ELEVATION_REFUSED, sender, facts)
        self._all.count(EVERYBODY)
        if self._all.exhausted(EVERYBODY):
            self._all.forget(EVERYBODY)
            await self._record("security.elevation-attempts", sender, {**facts, "count": REPORTED_AT})
        return NOT_YOURS

    async def _record(self, kind: str, sender: Sender, facts: Mapping[str, object]) -> None:
        event = AuditEvent(self._clock.now(), kind, f"person:{sender.channel}:{sender.id}", None, dict(facts))
        await self._store.append(event)
        self._told(event)
