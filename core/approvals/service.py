"""Asking people: one question, many places, the first valid answer wins (text 002 §9)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from core.approvals import lifecycle
from core.approvals.card import card_of, settled_line
from core.approvals.deadlines import Deadlines
from core.approvals.flood import FloodControl
from core.approvals.ledger import Ledger
from core.approvals.rehearsal import is_rehearsal
from core.approvals.routes import Route
from core.approvals.twins import Twins
from core.display import span
from core.errors import StoreError
from core.model.card import Card
from core.model.decision import Decision, Effect, Layer
from core.model.request import Answer, Change, Copy, Request, Review, State
from core.model.standing import LONGEST_MS, MOST_USES, SHORTEST_MS
from core.ports import Clock, RequestStore

# Wall clocks jump (suspend, time servers); looking again this often keeps deadlines true to them.
LONGEST_SLEEP_S = 15.0
RETRY_S = 1.0
AT_ONCE = 100  # commits that share a sync
NONCE_BYTES = 16
OPEN = (State.WAITING, State.APPROVED)
NO_ROUTE = Decision(
    Layer.APPROVALS,
    Effect.DENY,
    "nobody can be asked: no channel is open; enable one under channels, or allow the command by rule",
    "no-approval-route",
    "channels",
)

log = logging.getLogger(__name__)

Routes = Callable[[Request], Sequence[Route]]
Fallback = Callable[[Request], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What became of an answer; `text` is for the person who gave it."""

    accepted: bool
    text: str
    card: Card | None = None


class Approvals:
    """Keeps the open questions; also the desk at which channels hand in answers."""

    def __init__(
        self,
        ledger: Ledger,
        store: RequestStore,
        clock: Clock,
        routes: Routes,
        masked: tuple[str, ...] = (),
        flood: FloodControl | None = None,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self.routes = routes
        self._masked = masked
        self.flood = flood or FloodControl(clock)
        self._twins = Twins(clock)
        self._deadlines = Deadlines(clock)
        self._earlier = asyncio.Event()
        ledger.on_commit.append(self._note)

    async def recover(self) -> None:
        """Take up again the questions that were open when the daemon ended."""
        for request in await self._store.in_states(*OPEN):
            self._note(Change(request))

    async def ask(self, request: Request) -> Request | Decision | None:
        """Commit a question, or join an identical one, which costs its agent nothing.

        Returns the decision against it where its agent asks too much, None where nothing may be asked now.
        """
        async with self._twins.admission(request):
            twin = self._twins.find(request)
            kept = await self._store.request(twin) if twin else None
            if kept is not None and self._twins.joins(kept):
                return kept
            return self.flood.admit(request) or await self._put(request)

    async def _put(self, request: Request) -> Request | None:
        copies = tuple(_copy(route) for route in self.routes(request))
        asked = replace(request, copies=copies)
        change = lifecycle.asked(asked, self._clock.now())
        try:
            if await self._ledger.commit(change):
                return asked
        except StoreError:
            self.flood.drop(request)
            raise
        self.flood.drop(request)
        return None

    async def review(self, review: Review) -> Reviewed:
        """Take a person's answer; late, repeated and unoffered ones are told what stands."""
        request = await self._store.request(review.request_id)
        if request is None:
            return Reviewed(accepted=False, text="No request with this id is kept here.")
        if request.state is not State.WAITING:
            return self._stands(request)
        unoffered = _not_offered(request, review)
        if unoffered:
            return Reviewed(accepted=False, text=unoffered, card=self._card(request))
        if self._deadlines.passed(request):
            await self._expire(request)
        elif await self._ledger.commit(lifecycle.reviewed(request, review, self._clock.now())):
            return await self._accepted(request.id)
        settled = await self._store.request(request.id)
        return self._stands(settled or request)

    async def card(self, request_id: str) -> Card | None:
        """Return the card of a kept request."""
        request = await self._store.request(request_id)
        return self._card(request) if request else None

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
        return await self._ledger.commit(lifecycle.withdrawn(request, self._clock.now()))

    async def call_off(self, why: str, agent: str | None = None) -> int:
        """Take back, for the operator, every open question (of one agent); returns how many waited."""
        found = await self._store.in_states(*OPEN)
        theirs = [request for request in found if agent in (None, request.call.agent)]
        now = self._clock.now()
        for first in range(0, len(theirs), AT_ONCE):
            some = theirs[first : first + AT_ONCE]
            changes = (lifecycle.called_off(request, why, now) for request in some)
            await asyncio.gather(*(self._ledger.commit(change) for change in changes))
        return sum(request.state is State.WAITING for request in theirs)

    async def keep_deadlines(self, fallback: Fallback) -> None:
        """End, at its deadline, every question nobody answered and every yes nobody came for."""
        while True:
            self._earlier.clear()
            for request_id in self._deadlines.due():
                await self._time_is_up(request_id, fallback)
            # Not wait_for: in Python 3.11 it can swallow a cancellation that comes together with the news.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.next_in_s(LONGEST_SLEEP_S)):
                    await self._earlier.wait()

    async def _time_is_up(self, request_id: str, fallback: Fallback) -> None:
        try:
            await self._end_in_time(request_id, fallback)
        except StoreError as error:
            log.warning("request %s cannot be ended at its deadline yet: %s", request_id[:8], error)
            self._deadlines.again(request_id, RETRY_S)

    async def _end_in_time(self, request_id: str, fallback: Fallback) -> None:
        request = await self._store.request(request_id)
        if request is None or request.state not in OPEN or not self._deadlines.passed(request):
            return
        if request.state is State.WAITING and await _falls_back(request, fallback):
            change = lifecycle.fell_back(request, self._clock.now())
            await self._ledger.commit(change)
        else:
            await self._expire(request)

    async def _expire(self, request: Request) -> None:
        await self._ledger.commit(lifecycle.expired(request, self._clock.now()))

    async def _accepted(self, request_id: str) -> Reviewed:
        request = await self._store.request(request_id)
        if request is None:
            return Reviewed(accepted=True, text="Taken.")
        return Reviewed(accepted=True, text=settled_line(request), card=self._card(request))

    def _stands(self, request: Request) -> Reviewed:
        if request.state is State.WAITING:
            text = "Nothing can be allowed now: Sayso is locked, or this agent's token was revoked."
            return Reviewed(accepted=False, text=text, card=self._card(request))
        text = f"Too late: {settled_line(request)}."
        return Reviewed(accepted=False, text=text, card=self._card(request))

    def _card(self, request: Request) -> Card:
        return card_of(request, self._masked)

    def _note(self, change: Change) -> None:
        """Follow what was committed: which questions wait, whose, and when the next deadline is."""
        request = change.request
        self._twins.note(request)
        self.flood.note(request)
        self._deadlines.note(request)
        if request.state in OPEN:
            self._earlier.set()


def _not_offered(request: Request, review: Review) -> str | None:
    """Say why this answer cannot be given to this question, or None where it can."""
    if review.answer is Answer.ALLOW_ALWAYS and not request.always.entries:
        return f"Always is not offered here: {request.always.why or 'nothing could be remembered'}."
    if review.answer is Answer.ALLOW_FOR:
        return _no_permission(request, review)
    if review.answer is Answer.DENY_ALWAYS and is_rehearsal(request):
        return "A test question leaves nothing behind; deny it once."
    return None


def _no_permission(request: Request, review: Review) -> str | None:
    if request.counts_once:
        return f"A time is not offered here, because a yes counts once: {_why_once(request)}."
    if review.for_ms is None or not SHORTEST_MS <= review.for_ms <= LONGEST_MS:
        return f"A time is from {span(SHORTEST_MS)} to {span(LONGEST_MS)}."
    if review.max_uses is not None and not 1 <= review.max_uses <= MOST_USES:
        return f"The most uses are from 1 to {MOST_USES:,}."
    return None


def _why_once(request: Request) -> str:
    return request.always.why or str(request.verdict.get("reason", "the rule asks every time"))


def _copy(route: Route) -> Copy:
    return Copy(route.channel, route.place, secrets.token_urlsafe(NONCE_BYTES))


async def _falls_back(request: Request, fallback: Fallback) -> bool:
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
