"""Asking people: one question, many places, the first valid answer wins (text 002 §9)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from core.acts import Acts
from core.approvals import lifecycle
from core.approvals.agreement import NO_ROUTE, nobody_is_another, not_any_more, repeats, step, too_few
from core.approvals.card import card_of, progress_line, settled_line
from core.approvals.deadlines import Deadlines
from core.approvals.elevation import (
    ELEVATION_REFUSED,
    may_not_elevate,
    nobody_may_elevate,
)
from core.approvals.flood import FloodControl
from core.approvals.ledger import Ledger
from core.approvals.offers import not_offered
from core.approvals.quorum import reachable
from core.approvals.rehearsal import is_rehearsal
from core.approvals.routes import Route
from core.approvals.rules import PLAIN, Rules
from core.approvals.terms import Terms, narrowest
from core.approvals.twins import Twins
from core.errors import StoreError
from core.lasting import Lasting
from core.model.card import Card
from core.model.decision import Decision
from core.model.request import Basis, Change, Copy, Request, Review, State
from core.model.standing import StandingPermission
from core.ports import Clock, RequestStore, StandingStore
from core.store_ports import RevisionStore

# Wall clocks jump (suspend, time servers); looking again this often keeps deadlines true to them.
LONGEST_SLEEP_S = 15.0
RETRY_MS = 1_000
AT_ONCE = 500  # called off in one transaction; what is asked meanwhile waits for one of these at most
NONCE_BYTES = 16
MOST_REVIEWS = 100
OPEN = (State.WAITING, State.APPROVED)

log = logging.getLogger(__name__)

OWN_CHAT = (
    "This is asked from your own chat, so your yes does not count (approvals.exec.separationOfDuties). "
    "You may deny it."
)
PERHAPS_OWN_CHAT = (
    "Whether this is asked from your own chat cannot be told, so your yes does not count "
    "(approvals.exec.separationOfDuties): write this account, and whoever's chat it is, under people in the "
    "configuration. You may deny it."
)
NOBODY_KNOWN = (
    "Several people must say yes, and this account is not under people in the configuration, so your yes "
    "does not count. You may deny it."
)
TOO_OFTEN = "There were too many answers to this question already. It can still be denied."

Routes = Callable[[Request], Sequence[Route]]
Place = tuple[str, str]


def _plain() -> Rules:
    """Stand for the rules where nothing is configured."""
    return PLAIN


Fallback = Callable[[Request], Awaitable[bool]]


class _Store(RequestStore, StandingStore, RevisionStore, Protocol):
    """The parts of the store that this is about."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What became of an answer; `text` is for the person who gave it.

    `alarm` is the kind of security event that a refused answer is.
    """

    accepted: bool
    text: str
    card: Card | None = None
    alarm: str | None = None


class Approvals:
    """Keeps the open questions; also the desk at which channels hand in answers."""

    def __init__(
        self,
        ledger: Ledger,
        store: _Store,
        clock: Clock,
        routes: Routes,
        masked: tuple[str, ...] = (),
        rules: Callable[[], Rules] = _plain,
        flood: FloodControl | None = None,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self.routes = routes
        self._masked = masked
        self._rules = rules
        self.flood = flood or FloodControl(clock)
        self._twins = Twins(clock)
        self._deadlines = Deadlines(clock)
        self._earlier = asyncio.Event()
        self.lasting = Lasting(clock)
        self._acts = Acts("questions")
        ledger.on_commit.append(self._note)

    async def recover(self) -> None:
        """Take up again the questions that were open when the daemon ended."""
        for request in await self._store.in_states(*OPEN):
            self._note(Change(request))
        for permission in await self._store.permissions(self._clock.now()):
            self._lasts(permission)

    async def close(self) -> None:
        """Wait for the questions that are being put."""
        await self._acts.close()

    def window_ms(self, request: Request) -> int:
        """Tell how long a question waits: as long as the most patient of the places it is put to."""
        return max((route.timeout_ms for route in self.routes(request)), default=0)

    def unanswerable(self, request: Request) -> Decision | None:
        """Deny what nobody could allow: no place to ask in, or too few people who can be asked."""
        routes = self.routes(request)
        if not routes:
            return NO_ROUTE
        nobody = nobody_may_elevate(request, routes, self._rules().authority(request.call.agent))
        if nobody is not None:
            return nobody
        rules, session = self._rules(), request.call.session
        unknown = nobody_is_another(session, rules.people) if rules.separate else None
        if unknown is not None:
            return unknown
        required = self._required(request, routes)
        if required == 1:
            return None
        people = reachable(rules.people, routes, session, separate=rules.separate)
        return too_few(required, people) if len(people) < required else None

    async def ask(self, request: Request, basis: Basis | None = None) -> Request | Decision | None:
        """Commit a question, or join an identical one, which costs its agent nothing.

        Returns the decision against it where its agent asks too much, None where nothing may be asked now, or
        `basis` holds no more. An asker that hangs up meanwhile leaves it whole: put, known and counted.
        """
        return await self._acts.whole(self._asked(request, basis))

    async def _asked(self, request: Request, basis: Basis | None) -> Request | Decision | None:
        async with self._twins.admission(request):
            twin = self._twins.find(request)
            kept = await self._store.request(twin) if twin else None
            if kept is not None and self._twins.joins(kept):
                return kept
            return self.flood.admit(request) or await self._put(request, basis)

    async def _put(self, request: Request, basis: Basis | None) -> Request | None:
        routes = self.routes(request)
        copies = tuple(_copy(route) for route in routes)
        asked = replace(request, copies=copies, required=self._required(request, routes))
        remind_at = self._rules().remind_at(asked.created_at, asked.deadline)
        change = replace(lifecycle.asked(asked, self._clock.now(), remind_at), basis=basis)
        kept = False
        try:
            kept = await self._ledger.commit(change)
        finally:
            if not kept:
                self.flood.drop(request)
        return asked if kept else None

    async def review(self, review: Review) -> Reviewed:
        """Take a person's answer; late, repeated and unoffered ones are told what stands."""
        while True:
            basis = Basis(await self._store.revision())
            request = await self._store.request(review.request_id)
            if request is None:
                return Reviewed(accepted=False, text="No request with this id is kept here.")
            if request.state is not State.WAITING:
                return self._stands(request)
            reviewed = await self._taken(request, review, basis)
            if reviewed is not None:
                return reviewed
            settled = await self._store.request(request.id)
            outdated = basis.revision != await self._store.revision()
            if settled is None or (settled.reviews == request.reviews and not outdated):
                return self._stands(settled or request)
            # Another answer came in between, or who may decide was changed: this one is judged again.

    async def _taken(self, request: Request, review: Review, basis: Basis) -> Reviewed | None:
        """Take an answer to a question as it stands; None where it stands no longer so."""
        rules = self._rules()
        review = replace(review, reviewer=rules.people.attributed(review.reviewer))
        refusal = not_any_more(review, self.routes(request)) or self._refusal(request, review, rules)
        if refusal is not None:
            card = self._card(request, self._terms(request, review))
            unauthorised = may_not_elevate(request, review, rules.authority(request.call.agent))
            return Reviewed(
                accepted=False, text=refusal, card=card, alarm=ELEVATION_REFUSED if unauthorised else None
            )
        now = self._clock.now()
        if self.over(request):
            await self._expire(request)
            return None
        routes = self.routes(request)
        if repeats(request, review, rules, routes):
            return await self._accepted(request.id)
        change = replace(step(request, review, rules, routes, now), basis=basis)
        committed = await self._ledger.commit(change)
        return await self._accepted(request.id) if committed else None

    def over(self, request: Request) -> bool:
        """Tell whether an open request's time is up, by either clock."""
        return self._deadlines.over(request.id, request.deadline)

    def _refusal(self, request: Request, review: Review, rules: Rules) -> str | None:
        """Say why a person may not answer so, or None where they may; a no is everybody's who may decide."""
        if not review.answer.allows:
            return not_offered(request, review, rules.terms)
        unauthorised = may_not_elevate(request, review, rules.authority(request.call.agent))
        if unauthorised is not None:
            return unauthorised
        session = request.call.session
        if rules.separate and rules.people.may_own(review.reviewer, session):
            return OWN_CHAT if rules.people.surely_owns(review.reviewer, session) else PERHAPS_OWN_CHAT
        if request.required > 1 and review.reviewer.person is None:
            return NOBODY_KNOWN
        if len(request.reviews) >= MOST_REVIEWS:
            return TOO_OFTEN
        return not_offered(request, review, self._terms(request, review))

    def _terms(self, request: Request, review: Review) -> Terms:
        places = tuple((review.reviewer.channel, place) for place in review.places)
        return self._terms_at(request, places)

    def _terms_at(self, request: Request, places: Sequence[Place]) -> Terms:
        """Give the terms of these places; where there are none, those of the page and the command line."""
        if not places:
            return self._rules().terms
        found = [route.terms for route in self.routes(request) if (route.channel, route.place) in places]
        return narrowest(found or [self._rules().terms])

    def _required(self, request: Request, routes: Sequence[Route]) -> int:
        """Tell how many people must say yes: as many as the strictest place wants."""
        if is_rehearsal(request):
            return 1
        return max(self._rules().required, *(route.required for route in routes), 1)

    async def card(self, request_id: str, at: Place | None = None) -> Card | None:
        """Return the card of a kept request, as it is shown at this (channel, place)."""
        request = await self._store.request(request_id)
        return self._card(request, self._terms_at(request, [at] if at else [])) if request else None

    async def waiting(self) -> tuple[Card, ...]:
        """Return all cards that wait, oldest first."""
        return tuple(self._card(request) for request in await self._store.in_states(State.WAITING))

    async def decided(self, limit: int) -> tuple[Card, ...]:
        """Return the newest cards that no longer wait, newest first."""
        running = await self._store.in_states(State.APPROVED, State.RUNNING)
        ended = await self._store.recent(limit)
        return tuple(self._card(request) for request in (*reversed(running), *ended))[:limit]

    async def withdraw(self, request: Request) -> bool:
        """Take a question back; False where it is no longer open."""
        return await self._end_open(request, lifecycle.withdrawn)

    async def _end_open(self, request: Request, step: Callable[[Request, int], Change]) -> bool:
        """End what is open, with every answer that was taken by then; False where it is open no more."""
        while not await self._ledger.commit(step(request, self._clock.now())):
            kept = await self._store.request(request.id)
            if kept is None or kept.state not in OPEN or kept.reviews == request.reviews:
                return False
            request = kept
        return True

    async def call_off(self, why: str, agent: str | None = None, session: str | None = None) -> int:
        """Take back, for the operator, every open question (of an agent, a session); how many waited."""
        found = await self._store.in_states(*OPEN)
        theirs = [
            request
            for request in found
            if agent in (None, request.call.agent) and session in (None, str(request.call.session))
        ]
        now = self._clock.now()
        for first in range(0, len(theirs), AT_ONCE):
            some = theirs[first : first + AT_ONCE]
            changes = [lifecycle.called_off(request, why, now) for request in some]
            ended = await self._ledger.commit_all(changes)
            answered = [request for request, done in zip(some, ended, strict=True) if not done]
            for request in answered:
                await self._end_open(request, partial(_called_off, why))
        return sum(request.state is State.WAITING for request in theirs)

    async def end_session(self, session: str, why: str) -> int:
        """Take back the open questions of a session; returns how many waited."""
        return await self.call_off(why, session=session)

    async def keep_deadlines(self, fallback: Fallback) -> None:
        """End, at its deadline, every question nobody answered and every yes nobody came for."""
        while True:
            self._earlier.clear()
            while (request_id := self._deadlines.take()) is not None:
                await self._time_is_up(request_id, fallback)
            delay = self._deadlines.left_s(LONGEST_SLEEP_S)
            # Not wait_for: in Python 3.11 it can swallow a cancellation that comes together with the news.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(delay, 0.001)):
                    await self._earlier.wait()

    async def _time_is_up(self, request_id: str, fallback: Fallback) -> None:
        try:
            await self._end_in_time(request_id, fallback)
        except StoreError as error:
            log.warning("request %s cannot be ended at its deadline yet: %s", request_id[:8], error)
            self._deadlines.again(request_id, RETRY_MS)

    async def _end_in_time(self, request_id: str, fallback: Fallback) -> None:
        request = await self._store.request(request_id)
        if request is None or request.state not in OPEN:
            self._deadlines.forget(request_id)
            return
        if not self._deadlines.over(request.id, request.deadline):
            return
        if request.state is State.WAITING and await _falls_back(request, fallback):
            change = lifecycle.fell_back(request, self._clock.now())
            await self._ledger.commit(change)
        else:
            await self._expire(request)

    async def _expire(self, request: Request) -> None:
        await self._end_open(request, lifecycle.expired)

    async def _accepted(self, request_id: str) -> Reviewed:
        request = await self._store.request(request_id)
        if request is None:
            return Reviewed(accepted=True, text="Taken.")
        text = settled_line(request)
        if request.state is State.WAITING:
            text = f"Taken. {progress_line(request)}; it waits for others."
        return Reviewed(accepted=True, text=text, card=self._card(request))

    def _stands(self, request: Request) -> Reviewed:
        if request.state is State.WAITING:
            text = "Nothing can be allowed now: Sayso is locked, or this agent's token was revoked."
            return Reviewed(accepted=False, text=text, card=self._card(request))
        text = f"Too late: {settled_line(request)}."
        return Reviewed(accepted=False, text=text, card=self._card(request))

    def _card(self, request: Request, terms: Terms | None = None) -> Card:
        return card_of(request, self._masked, terms or self._rules().terms)

    def _note(self, change: Change) -> None:
        """Follow what was committed: which questions wait, whose, and when the next deadline is."""
        request = change.request
        if change.permit is not None:
            self._lasts(change.permit)
        self._twins.note(request)
        self.flood.note(request)
        if request.state in OPEN:
            self._deadlines.put(request.id, request.deadline, request.deadline - request.created_at)
            self._earlier.set()
        else:
            self._deadlines.forget(request.id)

    def _lasts(self, permission: StandingPermission) -> None:
        self.lasting.begin(permission.id, permission.expires_at, permission.expires_at - permission.given_at)


def _called_off(why: str, request: Request, now: int) -> Change:
    return lifecycle.called_off(request, why, now)


def _copy(route: Route) -> Copy:
    return Copy(route.channel, route.place, secrets.token_urlsafe(NONCE_BYTES))


async def _falls_back(request: Request, fallback: Fallback) -> bool:
    if request.required > 1:
        return False  # no rule stands for the people who must agree
    try:
        return await fallback(request)
    except Exception:  # whatever kept it from an answer, the answer is no, and others wait
        log.warning("the fallback of request %s failed", request.short_id, exc_info=True)
        return False


def overruled(request: Request, decision: Decision, where: str | None) -> Request:
    """Turn what was decided into a denial, because of what came after the decision."""
    row = decision.to_json()
    trace = [*request.verdict.get("trace", []), row]
    return replace(request, verdict={**request.verdict, **row, "trace": trace, "where": where})
