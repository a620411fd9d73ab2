"""Letting people in through a chat: a code from the operator, sent by a person, confirmed by the operator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from core.approvals.invitations import Invitation, Invitations, InvitationState
from core.approvals.people import Place
from core.approvals.routes import LOCAL_CHANNELS
from core.approvals.tries import Tries
from core.config import ExecApprovals
from core.display import elide, safe, span
from core.errors import RequestError, StoreError
from core.model.chat import Typed
from core.model.notice import Notice, NoticeKind
from core.model.pairing import PairedPerson
from core.model.principal import Reviewer, Sender
from core.model.request import AuditEvent, MessageKind, OutboxMessage
from core.ports import Clock, Store

MOST_TRIES = 5
TRIES_WINDOW_S = 60 * 60.0

REFUSED = "This is no code that counts now. Ask the operator for a new one."
NOT_IN_PUBLIC = (
    "Others can read this code here, so it no longer counts. Ask for a new one, and send it to me alone."
)
TOO_MANY = f"Too many wrong codes; try again in {span(int(TRIES_WINDOW_S * 1000))}."
CLAIMED = "Taken. The operator is asked now whether it is you."
LOCKED = "Sayso is locked, so nobody is let in now. The code stays good until it expires."
LET_IN = "The operator let you in: you may answer the questions that you are asked here."
LET_IN_ELSEWHERE = (
    "The operator let you in: you may answer the questions that are asked in the chat you share."
)
TURNED_AWAY = "The operator did not let you in. The code no longer counts."
SENT_TWICE = "Somebody else sent the same code, so it no longer counts. Ask the operator for a new one."

_NAME_HEAD, _NAME_TAIL = 60, 20
_ENDINGS = {
    InvitationState.OPEN: "nobody has sent the code yet",
    InvitationState.CONFIRMED: "whoever sent the code was let in already",
    InvitationState.REFUSED: "it was withdrawn",
    InvitationState.EXPIRED: "it has expired; make a new code",
    InvitationState.VOID: "others know the code, so it no longer counts; make a new one",
}

log = logging.getLogger(__name__)


class Pairing:
    """Hands out codes, takes them from chats, and keeps who was confirmed.

    `on_security` is told of what should not have been tried, `on_post` that a message waits in the outbox.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Callable[[], ExecApprovals],
        place: Place,
        opened: Sequence[str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._place = place
        self._opened = opened
        self._invitations = Invitations(clock)
        self._tries = Tries(clock, most=MOST_TRIES, window_s=TRIES_WINDOW_S)
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[dict[str, Any]]] = set()
        self.on_security: list[Callable[[AuditEvent], None]] = []
        self.on_post: list[Callable[[], None]] = []
        self.paired: tuple[PairedPerson, ...] = ()

    async def load(self) -> None:
        """Read who was let in before."""
        self.paired = await self._store.paired()

    async def close(self) -> None:
        """Wait for what is being kept."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def invite(self, channel: str, route: str | None) -> dict[str, Any]:
        """Make a one-time code; raises RequestError where the channel or the route is none."""
        place = self._checked(channel, route)
        await self._require_unlocked()
        made, code = self._invitations.make(channel, place)
        return {"id": made.id, "code": code, "expiresAt": made.expires_at}

    async def invitation(self, invitation_id: str) -> dict[str, Any]:
        """Tell how an invitation stands."""
        found = self._found(invitation_id)
        person = _shown(found.claimed_by) if found.claimed_by else None
        return {"id": found.id, "state": found.state.value, "expiresAt": found.expires_at, "person": person}

    async def claim(self, typed: Typed, code: str) -> str:
        """Take a code that somebody sent, and say what to tell them; one that others know counts no more."""
        locked = await self._store.locked()
        # From here to the verdict nothing is awaited: of many who send at once, one is first.
        found = self._invitations.by_code(code)
        found = found if found and found.waits else None
        if found and not typed.direct:
            return await self._void(found, typed, NOT_IN_PUBLIC)
        if self._tries.exhausted(typed.sender):
            return TOO_MANY
        if found is None or found.channel != typed.sender.channel:
            return await self._wrong(typed)
        if found.claimed_by is not None:
            return CLAIMED if _same(found.claimed_by, typed.sender) else await self._contested(found, typed)
        return LOCKED if locked else self._claimed(found, typed.sender)

    async def confirm(self, invitation_id: str, reviewer: Reviewer, *, accepted: bool) -> dict[str, Any]:
        """Let in the person who sent the code; or turn them away, which also withdraws a code unsent."""
        return await self._to_its_end(self._settled(invitation_id, reviewer, accepted=accepted))

    async def people(self) -> list[dict[str, Any]]:
        """List who was let in."""
        return [
            {
                "channel": one.channel,
                "id": one.id,
                "name": one.name,
                "route": one.route,
                "pairedAt": one.paired_at,
            }
            for one in self.paired
        ]

    async def unpair(self, channel: str, person: str, route: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take a person's right back at once."""
        return await self._to_its_end(
            self._unpaired((channel, person, self._placed(channel, route)), reviewer)
        )

    async def _to_its_end(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Do it all, also where the asker hangs up meanwhile: what is kept and what counts stay the same."""
        task = asyncio.create_task(work, name="pairing")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _settled(self, invitation_id: str, reviewer: Reviewer, *, accepted: bool) -> dict[str, Any]:
        async with self._one_at_a_time:
            found = self._found(invitation_id)
            if not found.waits or (accepted and found.claimed_by is None):
                raise RequestError(f"nobody can be let in by this code: {_ENDINGS[found.state]}", field="id")
            if accepted and found.claimed_by is not None:
                return await self._let_in(found, found.claimed_by, reviewer)
            return await self._turned_away(found, reviewer)

    async def _let_in(self, found: Invitation, who: Sender, reviewer: Reviewer) -> dict[str, Any]:
        await self._require_unlocked()
        person = PairedPerson(who.channel, who.id, _name(who), found.route, self._clock.now())
        # From the operator's yes on, nobody else who sends the code can make it void.
        self._invitations.settle(found, InvitationState.CONFIRMED)
        try:
            await self._store.put_paired(person, self._event("person.paired", reviewer, person))
        except StoreError:
            self._invitations.settle(found, InvitationState.CLAIMED)
            raise
        self.paired = (*self._without(person), person)
        await self._tell(who, LET_IN_ELSEWHERE if found.route else LET_IN)
        return {"accepted": True, "text": f"{person.name} may decide now."}

    async def _turned_away(self, found: Invitation, reviewer: Reviewer) -> dict[str, Any]:
        self._invitations.settle(found, InvitationState.REFUSED)
        who = found.claimed_by
        if who is None:
            return {"accepted": False, "text": "Withdrawn; the code no longer counts."}
        person = PairedPerson(who.channel, who.id, _name(who), found.route, self._clock.now())
        await self._store.append(self._event("person.turned-away", reviewer, person))
        await self._tell(who, TURNED_AWAY)
        return {"accepted": False, "text": "Turned away; the code no longer counts."}

    async def _unpaired(self, key: tuple[str, str, str], reviewer: Reviewer) -> dict[str, Any]:
        async with self._one_at_a_time:
            found = next((one for one in self.paired if _key(one) == key), None)
            if found is None:
                raise RequestError("nobody was let in like this; sayso people list shows who was", field="id")
            await self._store.unpair(found, self._event("person.unpaired", reviewer, found))
            self.paired = self._without(found)
            return {"text": f"{found.name} may not decide there any more."}

    def _without(self, person: PairedPerson) -> tuple[PairedPerson, ...]:
        return tuple(one for one in self.paired if _key(one) != _key(person))

    def _found(self, invitation_id: str) -> Invitation:
        found = self._invitations.get(invitation_id)
        if found is None:
            raise RequestError(
                "there is no such invitation: it was over long ago, or Sayso started again since", field="id"
            )
        return found

    def _checked(self, channel: str, route: str | None) -> str:
        """Return the place of the route, empty where none is given; raises RequestError for what is none."""
        if channel in LOCAL_CHANNELS:
            raise RequestError(f"{channel} needs no pairing: its login is the operator's", field="channel")
        if channel not in self._opened:
            raise RequestError(
                f"the channel {safe(channel)!r} is not open; sayso status tells why", field="channel"
            )
        if not self._settings().enabled:
            raise RequestError("approvals.exec.enabled is false, so no chat is asked; set it to true first")
        return "" if route is None else self._checked_route(channel, route)

    def _checked_route(self, channel: str, route: str) -> str:
        if self._settings().mode == "session":
            raise RequestError(
                "approvals.exec.mode is session, so targets are not asked: set it to targets or both, or "
                "leave the route out to ask this person in direct messages",
                field="route",
            )
        places = {
            self._place(t.channel, t.to): t.to for t in self._settings().targets if t.channel == channel
        }
        try:
            place = self._place(channel, route)
        except ValueError as error:
            raise RequestError(str(error), field="route") from None
        if place not in places:
            known = ", ".join(places.values()) or "none"
            raise RequestError(
                f"{safe(route)!r} is no target of {channel} in approvals.exec.targets (there: {known})",
                field="route",
            )
        return place

    def _placed(self, channel: str, route: str) -> str:
        """Name a route as it was kept; one that the channel does not know any more is named as it is."""
        try:
            return self._place(channel, route) if route else ""
        except ValueError:
            return route

    async def _require_unlocked(self) -> None:
        if await self._store.locked():
            raise RequestError("Sayso is locked, so nobody is let in; sayso unlock ends that")

    def _claimed(self, found: Invitation, who: Sender) -> str:
        self._invitations.claim(found, who)
        return CLAIMED

    async def _wrong(self, typed: Typed) -> str:
        self._tries.count(typed.sender)
        await self._record("security.wrong-code", typed)
        return REFUSED

    async def _contested(self, found: Invitation, typed: Typed) -> str:
        """End a code that two people sent: either may have it from looking over a shoulder."""
        told = await self._void(found, typed, SENT_TWICE)
        if found.claimed_by is not None:
            await self._tell(found.claimed_by, SENT_TWICE)
        return told

    async def _void(self, found: Invitation, typed: Typed, why: str) -> str:
        self._invitations.settle(found, InvitationState.VOID)
        await self._record("security.code-shown", typed)
        return why

    async def _record(self, kind: str, typed: Typed) -> None:
        who = typed.sender
        data = {"name": who.name, "place": typed.place}
        event = AuditEvent(self._clock.now(), kind, f"person:{who.channel}:{who.id}", None, data)
        await self._store.append(event)
        for told in self.on_security:
            told(event)

    def _event(self, kind: str, reviewer: Reviewer, person: PairedPerson) -> AuditEvent:
        data = {"channel": person.channel, "id": person.id, "name": person.name, "route": person.route}
        actor = f"person:{reviewer.channel}:{reviewer.id}"
        return AuditEvent(self._clock.now(), kind, actor, None, data)

    async def _tell(self, who: Sender, words: str) -> None:
        """Tell a person in their direct messages; what was decided stands, whether they learn it or not."""
        try:
            place = self._place(who.channel, f"user:{who.id}")
            notice = Notice(NoticeKind.CHANNEL, words)
            now = self._clock.now()
            await self._store.post(
                OutboxMessage(who.channel, MessageKind.NOTICE, "", now, place, notice),
            )
        except (StoreError, ValueError) as error:
            log.warning("%s:%s is not told about the pairing: %s", who.channel, who.id, error)
            return
        for nudge in self.on_post:
            nudge()


def _key(person: PairedPerson) -> tuple[str, str, str]:
    return person.channel, person.id, person.route


def _same(one: Sender, other: Sender) -> bool:
    return (one.channel, one.id) == (other.channel, other.id)


def _name(who: Sender) -> str:
    return safe(elide(who.name, head=_NAME_HEAD, tail=_NAME_TAIL).text) or who.id


def _shown(who: Sender) -> dict[str, Any]:
    username = safe(who.username) if who.username else None
    return {"channel": who.channel, "id": who.id, "name": _name(who), "username": username}
