"""Speaks with people in chats: who may decide is checked here, on every press and every command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from core.approvals import commands
from core.approvals.elevation import alarm_about
from core.approvals.routes import LOCAL_CHANNELS
from core.approvals.service import Approvals
from core.approvals.tries import Tries
from core.display import time_left
from core.elevated.senders import authorised
from core.model.card import Card
from core.model.chat import Press, Reply, Typed, Verb
from core.model.principal import Reviewer, Sender
from core.model.request import MIN_PREFIX, Answer, AuditEvent, KeptCopy, Request, Review, State
from core.ports import Clock, ReviewAnswer, Store

MOST_RECORDED = 10
RECORDED_WINDOW_S = 10 * 60.0

UNKNOWN = Reply("This request is not kept here any more, so nothing was decided.")
OUTSIDER = Reply("You are not among the people who may decide here.")
NOT_THIS_MESSAGE = Reply("This button does not belong to this message, so nothing was decided.")

_ANSWERS = {
    Verb.ALLOW_ONCE.value: Answer.ALLOW_ONCE,
    Verb.ALLOW_FOR.value: Answer.ALLOW_FOR,
    Verb.ALLOW_ALWAYS.value: Answer.ALLOW_ALWAYS,
    Verb.ALLOW_ALWAYS_ANY.value: Answer.ALLOW_ALWAYS_ANY,
    Verb.DENY.value: Answer.DENY,
    Verb.DENY_ALWAYS.value: Answer.DENY_ALWAYS,
}


_HOW = {
    commands.How.ONCE: Answer.ALLOW_ONCE,
    commands.How.ALWAYS: Answer.ALLOW_ALWAYS,
    commands.How.ALWAYS_ANY: Answer.ALLOW_ALWAYS_ANY,
    commands.How.FOR: Answer.ALLOW_FOR,
}


class ElevationDesk(Protocol):
    """What chats say about levels of sessions; `core.directives` answers."""

    async def typed(self, typed: Typed, command: commands.Elevated | commands.SaysoBind) -> Reply | None:
        """Take a command; None where its sender is to hear nothing."""
        ...

    async def chosen(self, press: Press) -> Reply:
        """Take a button that says which session was meant."""
        ...


@dataclass(frozen=True, slots=True)
class Switches:
    """What a chat may throw besides answers.

    A code by anybody, `lock` and `status` by those in `allow_from`; `elevation` looks itself at who may.
    """

    lock: Callable[[Reviewer], Awaitable[str]]
    status: Callable[[], Awaitable[str]]
    claim: Callable[[Typed, str], Awaitable[str]]
    elevation: ElevationDesk
    allow_from: Callable[[], tuple[str, ...]] = tuple


def _nobody_is_told(_event: AuditEvent) -> None:
    """Stand for a listener where there is none."""


class Conversation:
    """The desk at which chats hand in what people press and type."""

    def __init__(
        self,
        approvals: Approvals,
        store: Store,
        clock: Clock,
        switches: Switches,
        told: Callable[[AuditEvent], None] = _nobody_is_told,
    ) -> None:
        self._approvals = approvals
        self._store = store
        self._clock = clock
        self._switches = switches
        self._told = told
        self._refused = Tries(clock, most=MOST_RECORDED, window_s=RECORDED_WINDOW_S)

    async def review(self, review: Review) -> ReviewAnswer:
        """Take an answer of somebody whom a login has proven to be the operator."""
        reviewed = await self._approvals.review(review)
        request = await self._store.request(review.request_id) if reviewed.alarm else None
        if reviewed.alarm is not None and request is not None:
            await self._store.append(alarm_about(request, review, reviewed.alarm, self._clock.now()))
        return reviewed

    async def card(self, request_id: str, at: tuple[str, str] | None = None) -> Card | None:
        """Return the card of a kept request, as it is shown at this (channel, place)."""
        return await self._approvals.card(request_id, at)

    async def waiting(self) -> tuple[Card, ...]:
        """Return all cards that wait, oldest first."""
        return await self._approvals.waiting()

    async def decided(self, limit: int) -> tuple[Card, ...]:
        """Return the newest cards that no longer wait, newest first."""
        return await self._approvals.decided(limit)

    async def press(self, press: Press) -> Reply:
        """Take a pressed button. What it carried is attacker-chosen: only a kept nonce means anything."""
        if press.verb == Verb.CHOOSE:
            return await self._switches.elevation.chosen(press)
        kept = await self._store.copy_by_nonce(press.nonce)
        request = await self._store.request(kept.request_id) if kept else None
        if kept is None or request is None:
            return UNKNOWN
        if not _is_of(press, kept):
            await self._record("security.foreign-button", press.sender, press.place, request)
            return NOT_THIS_MESSAGE
        if not self._may_decide(press.sender, request, press.place):
            await self._record("security.outsider", press.sender, press.place, request)
            return OUTSIDER
        await self._store.note_ref(kept.copy, press.ref)
        if press.verb in _ANSWERS:
            return await self._answered(press, request)
        card = await self._approvals.card(request.id, (press.sender.channel, press.place))
        return _shown(card, press.verb) if card else UNKNOWN

    async def _answered(self, press: Press, request: Request) -> Reply:
        reason = commands.reason(press.reason or "")
        review = Review(
            request.id,
            _ANSWERS[press.verb],
            _reviewer(press.sender),
            reason,
            for_ms=press.for_ms,
            places=(press.place,),
            sender=press.sender,
        )
        return await self._reviewed(review, request, press.place)

    async def _reviewed(self, review: Review, request: Request, place: str) -> Reply:
        reviewed = await self._approvals.review(review)
        if review.sender is not None and reviewed.alarm is not None:
            await self._record(reviewed.alarm, review.sender, place, request)
        return Reply(reviewed.text)

    async def typed(self, typed: Typed) -> Reply | None:
        """Take a typed message; None where it is none of our commands."""
        command = commands.parse(typed.text, bot=typed.bot)
        match command:
            case commands.Approve() | commands.Deny():
                return await self._decide(typed, command)
            case commands.Pending():
                return await self._pending(typed)
            case commands.Elevated() | commands.SaysoBind():
                return await self._switches.elevation.typed(typed, command)
            case commands.SaysoLock() | commands.SaysoStatus():
                return await self._for_the_trusted(typed, command)
            case commands.Pair(code):
                return Reply(await self._switches.claim(typed, code))
            case _:
                return _read_out(command)

    async def _decide(self, typed: Typed, command: commands.Approve | commands.Deny) -> Reply:
        found = await self._store.by_prefix(command.id) if len(command.id) >= MIN_PREFIX else ()
        theirs = [request for request in found if self._may_decide(typed.sender, request, _place(typed))]
        if not theirs:
            await self._record("security.outsider", typed.sender, typed.place, None)
            return Reply("There is no request with this id that you may decide here.")
        if len(theirs) > 1:
            several = ", ".join(request.id for request in theirs)
            return Reply(f"Several requests begin with {command.id}: {several}")
        review = _review(theirs[0].id, command, _reviewer(typed.sender))
        places = self._places(typed, theirs[0])
        review = replace(review, places=places, sender=typed.sender)
        return await self._reviewed(review, theirs[0], typed.place)

    def _places(self, typed: Typed, request: Request) -> tuple[str, ...]:
        """Name the places whose terms hold for a command: where it was typed, or else all of its sender's."""
        places = self._deciding(typed.sender, request, _place(typed))
        return (typed.place,) if typed.place in places else places

    async def _pending(self, typed: Typed) -> Reply:
        waiting = await self._store.in_states(State.WAITING)
        theirs = [request for request in waiting if self._may_decide(typed.sender, request, _place(typed))]
        if not theirs:
            return Reply("Nothing waits for you here.")
        now = self._clock.now()
        lines = []
        for request in theirs:
            card = await self._approvals.card(request.id)
            if card is not None:
                lines.append(f"{card.short_id}  {card.command}  ({time_left(card.deadline - now)})")
        return Reply("\n".join(lines))

    async def _for_the_trusted(
        self, typed: Typed, command: commands.SaysoLock | commands.SaysoStatus
    ) -> Reply:
        if not authorised(self._switches.allow_from(), typed.sender):
            await self._record("security.outsider", typed.sender, typed.place, None)
            return OUTSIDER
        match command:
            case commands.SaysoLock():
                return Reply(await self._switches.lock(_reviewer(typed.sender)), private=False)
            case commands.SaysoStatus():
                return Reply(await self._switches.status())

    def _may_decide(self, sender: Sender, request: Request, place: str | None) -> bool:
        """Tell whether a route of the request leads to this sender in this place (None: the two alone)."""
        return bool(self._deciding(sender, request, place))

    def _deciding(self, sender: Sender, request: Request, place: str | None) -> tuple[str, ...]:
        asked = {(copy.channel, copy.place) for copy in request.copies}
        return tuple(
            route.place
            for route in self._approvals.routes(request)
            if route.channel == sender.channel
            and (route.channel, route.place) in asked
            and place in (None, route.place)
            and (route.channel in LOCAL_CHANNELS or authorised(route.approvers, sender))
        )

    async def _record(self, kind: str, sender: Sender, place: str, request: Request | None) -> None:
        if self._refused.exhausted(sender):
            return  # the record tells of a flood by its beginning
        self._refused.count(sender)
        actor = f"person:{sender.channel}:{sender.id}"
        data = {"name": sender.name, "place": place}
        about = request.id if request else None
        event = AuditEvent(self._clock.now(), kind, actor, about, data)
        await self._store.append(event)
        self._told(event)


def in_full(card: Card) -> str:
    """Write out everything that a card says, for those who must see all of it before they allow it."""
    env = "\n".join(f"  {name}={value}" for name, value in card.env) or "  nothing"
    always = ", ".join(card.always) or f"not offered: {card.always_why}"
    any_arguments = f"Or, any:    {', '.join(card.always_any)}\n" if card.always_any else ""
    answers = f"Answers:    {card.progress}\n" if card.progress else ""
    marks = "".join(f"{mark.word}: {mark.text}\n" for mark in card.marks)
    return (
        f"{marks}{card.command}\n\n"
        f"Runs in:    {card.cwd}, {card.place}\n"
        f"For:        {card.agent}, session {card.session}\n"
        f"Asks for:   {card.reason}\n"
        f"Rule:       {card.rule}, written in {card.written}\n"
        f"Always:     {always}\n{any_arguments}{answers}"
        f"Adds to the environment:\n{env}\n"
        f"Id:         {card.request_id}\n"
    )


def _is_of(press: Press, kept: KeptCopy) -> bool:
    where = (kept.copy.channel, kept.copy.place)
    return where == (press.sender.channel, press.place) and kept.ref in (None, press.ref)


def _place(typed: Typed) -> str | None:
    return None if typed.direct else typed.place


def _reviewer(sender: Sender) -> Reviewer:
    return Reviewer(sender.channel, sender.id, sender.name or sender.id)


def _read_out(command: commands.Command | None) -> Reply | None:
    match command:
        case commands.Malformed(text):
            return Reply(text)
        case commands.SaysoHelp():
            return Reply(commands.HELP)
        case commands.SaysoUnlock():
            return Reply("Only the operator unlocks, on the machine itself: sayso unlock.")
        case _:
            return None


def _shown(card: Card, verb: str) -> Reply:
    if verb == Verb.VIEW_ALL.value:
        return Reply("Here is all of it.", document=in_full(card), card=card if card.waits else None)
    if verb not in [navigating.value for navigating in Verb if navigating.navigates]:
        return NOT_THIS_MESSAGE
    if not card.waits:
        return Reply(f"Too late: {card.decided}.")
    return Reply("", card=card)


def _review(request_id: str, command: commands.Approve | commands.Deny, reviewer: Reviewer) -> Review:
    if isinstance(command, commands.Deny):
        answer = Answer.DENY_ALWAYS if command.always else Answer.DENY
        return Review(request_id, answer, reviewer, command.reason)
    return Review(request_id, _HOW[command.how], reviewer, for_ms=command.for_ms)
