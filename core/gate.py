"""The path of every request, top to bottom.

1 tool policy, 2 exec security and 3 placement are decided together by `core.judge` from facts gathered
first; 4 approval asks people; 5 the grant is issued and used up in the transaction that records the start;
6 the run checks the binding a last time; 7 the outcome goes to the agent, the chats and the record.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.approvals import lifecycle
from core.approvals.card import card_of, outcome_of
from core.approvals.elevation import unasked
from core.approvals.ledger import Ledger
from core.approvals.service import Approvals, overruled
from core.approvals.standing import ENDED
from core.elevated.levels import Asking
from core.elevations import ELEVATION_ENDED, Elevations
from core.errors import BindingMismatch, RequestError, StoreError, UnknownRequest
from core.judge import LOCKED, REVOKED, Case, Judge
from core.model.call import EXEC, ToolCall
from core.model.command import Placement
from core.model.decision import Decision, Effect
from core.model.outcome import Outcome, Status
from core.model.plan import RunOrder
from core.model.principal import Claims, PeerCredentials
from core.model.request import MIN_PREFIX, Change, Request, RequestKind, State
from core.model.session import SessionKey
from core.model.standing import Remembered
from core.model.verdict import Verdict
from core.policy.warnings import ToldWarnings
from core.ports import Clock, Runner, RunObserver, Store
from core.runs import Runs
from core.sessions import Sessions
from core.shell.render import run_argv

log = logging.getLogger(__name__)

LOOKED_AT_ONCE = 2
LARGE = 2048  # characters of a command; deciding about more would hold up everybody else
MANY = 1000  # entries of allowlists that are compared, all commands of a line together

Locate = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Objection:
    """Why what was allowed is not done after all, and the rule that says so."""

    reason: str
    rule: str | None = None


class Gate:
    """The policy enforcement point: nothing runs but through here.

    `judge` gives the judge of the configuration in force; one decision is made by one judge.
    """

    looking_deadline_s = 10.0  # for a file system that does not answer

    def __init__(
        self,
        judge: Callable[[], Judge],
        approvals: Approvals,
        ledger: Ledger,
        store: Store,
        runs: Runs,
        runners: Mapping[Placement, Runner],
        clock: Clock,
        locate: Locate,
        *,
        elevations: Elevations,
    ) -> None:
        self._judge = judge
        self._told = ToldWarnings()
        self._sessions = Sessions(store, clock)
        self._approvals = approvals
        self._ledger = ledger
        self._store = store
        self._runs = runs
        self._runners = runners
        self._clock = clock
        self._locate = locate
        self._elevations = elevations
        # What one agent asks about takes long in places; it must not take every thread that looks.
        self._turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(LOOKED_AT_ONCE))

    async def run(self, call: ToolCall, peer: PeerCredentials | None, observer: RunObserver) -> Outcome:
        """Decide, ask people where policy says so, run, and return the outcome."""
        case, verdict = await self.consider(await self._elevations.directed(call))
        request = self._request(case, verdict, RequestKind.RUN, peer)
        if verdict.effect is Effect.DENY:
            return await self._refuse(request)
        if verdict.effect is Effect.ASK:
            return await self._ask_and_follow(request, observer)
        return await self._run(lifecycle.allowed(request, self._clock.now()), case, verdict, observer)

    async def ask(self, call: ToolCall, peer: PeerCredentials | None) -> Outcome:
        """Decide without running: allowed, denied, or pending with the id to wait for."""
        case, verdict = await self.consider(await self._elevations.directed(call))
        request = self._request(case, verdict, RequestKind.ASK, peer)
        if verdict.effect is Effect.DENY:
            return await self._refuse(request)
        if verdict.effect is Effect.ASK:
            return await self._put_to_people(request)
        change = lifecycle.allowed(request, self._clock.now())
        if not await self._ledger.commit(change):
            return await self._barred(request)
        await self._note_uses(verdict)
        return outcome_of(change.request)

    async def wait(self, agent: str, request_id: str, observer: RunObserver) -> Outcome:
        """Wait for the decision on the agent's own request; where it is one to run, run it too."""
        request = await self._own(agent, request_id)
        if request.state is State.WAITING:
            observer.requested(card_of(request))
        return await self._follow(request.id, observer)

    async def run_approved(self, call: ToolCall, request_id: str, observer: RunObserver) -> Outcome:
        """Run a call under the approval that `ask` got for it; it counts once, and the binding must match."""
        request = await self._own(call.agent, request_id)
        if request.state is not State.APPROVED:
            return outcome_of(request)
        case, verdict = await self.consider(replace(call, directive=request.call.directive))
        return await self._start(request, case, verdict, observer)

    async def withdraw(self, agent: str, request_id: str) -> Outcome:
        """Take back the agent's own waiting request."""
        request = await self._own(agent, request_id)
        await self._approvals.withdraw(request)
        return outcome_of(await self._store.request(request.id) or request)

    async def describe(self, session: SessionKey, claims: Claims) -> Mapping[str, Any]:
        """Tell an agent what holds for its session."""
        claims = await self._sessions.settled(session, claims)
        tools = self._judge().toolset(session, claims)
        level = self._elevations.standing(ToolCall(EXEC, session, claims)).level
        return {
            "session": str(session),
            "agent": session.agent,
            "tools": sorted(tools.allowed),
            "elevated": level.value,
        }

    async def consider(
        self, call: ToolCall, judge: Judge | None = None, *, approved: bool = False
    ) -> tuple[Case, Verdict]:
        """Gather facts and decide, without a trace anywhere.

        Host names are looked up only where all else says yes by now, or a question was answered by one.
        """
        judge = judge or self._judge()
        call = replace(call, claims=await self._sessions.settled(call.session, call.claims))
        case = await self._look(judge, call, look_up=False)
        now = self._clock.now()
        remembered = await self._store.remembered(call.agent, case.binding.digest, now, call.session.lineage)
        verdict = await self._verdict(judge, case, remembered)
        if case.arguments.unresolved and verdict.effect <= (Effect.ASK if approved else Effect.ALLOW):
            case = await self._look(judge, call, look_up=True)
            verdict = await self._verdict(judge, case, remembered)
        for warning in self._told.fresh(judge.toolset(call.session, call.claims).warnings):
            log.warning("%s", warning)
        return case, verdict

    async def _verdict(self, judge: Judge, case: Case, remembered: Remembered) -> Verdict:
        """Decide a case; a large one must not hold up the others."""
        if _takes_long(case, remembered):
            async with self._turns[case.call.agent]:
                return await asyncio.to_thread(judge.verdict, case, remembered)
        return judge.verdict(case, remembered)

    async def fallback(self, request: Request) -> bool:
        """Answer, for a question nobody answered, whether `askFallback` turns it into a yes."""
        judge = self._judge()
        case, verdict = await self.consider(request.call, judge)
        if verdict.effect is Effect.DENY or case.binding != request.binding:
            return False
        call, now = request.call, self._clock.now()
        kept = await self._store.remembered(call.agent, case.binding.digest, now, call.session.lineage)
        return judge.fallback_allows(case, kept.learned, kept.tightenings)

    async def _look(self, judge: Judge, call: ToolCall, *, look_up: bool) -> Case:
        try:
            async with asyncio.timeout(self.looking_deadline_s), self._turns[call.agent]:
                standing = self._elevations.standing(call)
                return await asyncio.to_thread(judge.examine, call, standing, look_up=look_up)
        except TimeoutError:
            why = "the files that this command names could not be looked at in time, so it was refused"
            raise RequestError(why, field="cwd") from None

    async def _barred(self, request: Request) -> Outcome:
        """Refuse what the store did not open: all was locked since, a permission ended, the agent revoked."""
        ended = ENDED if request.permission else ELEVATION_ENDED if request.elevation else REVOKED
        return await self._overrule(request, LOCKED if await self._store.locked() else ended)

    async def _overrule(self, request: Request, decision: Decision) -> Outcome:
        return await self._refuse(overruled(request, decision, self._locate(decision.source)))

    async def _refuse(self, request: Request) -> Outcome:
        """Refuse; where the refusal cannot be recorded it holds all the same."""
        change = lifecycle.refused(request, self._clock.now())
        try:
            await self._ledger.commit(change)
        except StoreError as error:
            return replace(outcome_of(change.request), reason=f"{_reason(request)} (not recorded: {error})")
        return outcome_of(change.request)

    async def _ask_and_follow(self, request: Request, observer: RunObserver) -> Outcome:
        asked = await self._put_to_people(request)
        if asked.status is not Status.PENDING or asked.request_id is None:
            return asked
        card = await self._approvals.card(asked.request_id)
        if card is not None:
            observer.requested(card)
        return await self._follow(asked.request_id, observer)

    async def _put_to_people(self, request: Request) -> Outcome:
        unanswerable = self._approvals.unanswerable(request)
        if unanswerable is not None:
            return await self._overrule(request, unanswerable)
        window = self._approvals.window_ms(request)
        asked = await self._approvals.ask(replace(request, deadline=request.created_at + window))
        if isinstance(asked, Decision):
            return await self._turn_away(request, asked)
        return outcome_of(asked) if asked else await self._barred(request)

    async def _turn_away(self, request: Request, decision: Decision) -> Outcome:
        """Refuse one question of a flood; only the first of them is recorded by itself."""
        if self._approvals.flood.first(request.call.agent, decision.rule):
            return await self._overrule(request, decision)
        counted = overruled(request, decision, self._locate(decision.source))
        refused = lifecycle.refused(counted, self._clock.now()).request
        return replace(outcome_of(refused), request_id=None)

    async def _follow(self, request_id: str, observer: RunObserver) -> Outcome:
        """Wait for the answer, then for the run; the first asker to see a yes starts it."""
        beyond_waiting = tuple(state for state in State if state is not State.WAITING)
        request = await self._ledger.until(request_id, *beyond_waiting)
        if request.kind is RequestKind.ASK and request.state is not State.RUNNING:
            return await self._handed_over(request)
        if request.state is State.APPROVED:
            case, verdict = await self.consider(request.call)
            return await self._start(request, case, verdict, observer)
        return await self._until_ended(request.id, observer)

    async def _handed_over(self, request: Request) -> Outcome:
        """Give the answer to its asker; one that its own program carries out is used up by that, once."""
        if request.state is not State.APPROVED or request.placement is not Placement.CLIENT:
            return _taken(request) if request.state is State.USED else outcome_of(request)
        case, verdict = await self.consider(request.call, approved=True)
        objection = _objection(request, case, verdict)
        if objection:
            return await self._stopped(request, objection)
        terms = [term.to_json() for term in verdict.constraints]
        request = replace(request, verdict={**request.verdict, "constraints": terms})
        used = lifecycle.used(request, self._clock.now())
        if await self._ledger.commit(used):
            return outcome_of(used.request)
        return _taken(await self._store.request(request.id) or request)

    async def _start(self, request: Request, case: Case, verdict: Verdict, observer: RunObserver) -> Outcome:
        """Check policy, placement and binding again, then use up the grant and run."""
        objection = _objection(request, case, verdict)
        if objection:
            return await self._stopped(request, objection)
        request = replace(request, elevation=_rests_on(case))
        return await self._run(lifecycle.started(request, self._clock.now()), case, verdict, observer)

    async def _stopped(self, request: Request, objection: Objection) -> Outcome:
        refusal = lifecycle.mismatched(request, objection.reason, self._clock.now(), objection.rule)
        await self._ledger.commit(refusal)
        return outcome_of(await self._store.request(request.id) or refusal.request)

    async def _run(self, start: Change, case: Case, verdict: Verdict, observer: RunObserver) -> Outcome:
        """Record the start and hand the bound command to its runner; whoever comes second only watches."""
        request = start.request
        if case.placed.asking is Asking.NEVER:
            start = unasked(start, case.placed.decision)
        argv = run_argv(case.facts) if case.facts else ()
        stdin = request.call.command.stdin if request.call.command else None
        order = RunOrder(request.id, argv, case.bound, request.binding, stdin)
        runner = self._runners[case.placed.placement]
        if not await self._runs.start(start, order, runner, observer) and start.insert:
            return await self._barred(request)
        await self._note_uses(verdict)
        return await self._until_ended(request.id, observer)

    async def _note_uses(self, verdict: Verdict) -> None:
        """Note which kept entries admitted what was decided and started; nothing hangs on that."""
        uses = verdict.uses()
        if not uses:
            return
        try:
            await self._store.record_uses(uses, self._clock.now())
        except StoreError as error:
            log.warning("the use of an allowlist entry is not noted: %s", error)

    async def _until_ended(self, request_id: str, observer: RunObserver) -> Outcome:
        with self._runs.watching(request_id, observer):
            ended = await self._ledger.until(request_id, *(state for state in State if state.final))
        return outcome_of(ended)

    async def _own(self, agent: str, request_id: str) -> Request:
        """Find an agent's own request; that others have one with this id is not told."""
        found = [r for r in await self._store.by_prefix(request_id) if r.call.agent == agent]
        if len(request_id) < MIN_PREFIX or not found:
            raise UnknownRequest(f"no request of this agent has the id {request_id[:40]!r}", field="id")
        if len(found) > 1:
            raise UnknownRequest(f"several requests begin with {request_id}; give more of the id", field="id")
        return found[0]

    def _request(
        self, case: Case, verdict: Verdict, kind: RequestKind, peer: PeerCredentials | None
    ) -> Request:
        now = self._clock.now()
        row = verdict.to_json()
        row["where"] = self._locate(verdict.decision.source)
        deadline = now + self._judge().config.approvals.exec.timeout
        permission = verdict.permission
        return Request(
            id=str(uuid.uuid4()),
            kind=kind,
            state=State.WAITING,
            call=case.call,
            canonical=case.bound.canonical,
            cwd=case.bound.cwd,
            placement=case.placed.placement,
            sandbox=case.bound.plan.backend if case.placed.placement is Placement.SANDBOX else None,
            verdict=row,
            binding=case.binding,
            created_at=now,
            deadline=min(deadline, permission.expires_at) if permission else deadline,
            always=verdict.always,
            obligations=frozenset().union(*(decision.obligations for decision in verdict.trace)),
            peer=peer,
            permission=permission.id if permission else None,
            elevation=_rests_on(case),
        )


def _rests_on(case: Case) -> str | None:
    """Name what was set for the session, where the placement follows from it."""
    elevation = case.placed.standing.elevation
    return elevation.id if elevation else None


def _takes_long(case: Case, remembered: Remembered) -> bool:
    if case.facts is None:
        return False
    entries = len(remembered.learned) + (len(case.policy.allowlist) if case.policy else 0)
    return len(case.facts.text) > LARGE or len(case.facts.segments) * entries > MANY


def _objection(request: Request, case: Case, verdict: Verdict) -> Objection | None:
    """Say what stands against what was allowed by now; a yes of policy holds while policy says yes."""
    changed = request.binding.changed(case.binding)
    if changed:
        return Objection(str(BindingMismatch(changed)))
    decision = request.resolution.decision if request.resolution else ""
    by_policy_alone = decision in ("allowed-by-policy", "allowed-by-elevation")
    if verdict.effect is Effect.DENY or (by_policy_alone and verdict.effect is not Effect.ALLOW):
        why = f"it was allowed, but by now {verdict.decision.reason}"
        return Objection(why, verdict.decision.rule)
    return None


def _taken(request: Request) -> Outcome:
    """Refuse an answer that cannot be handed over: it was taken already, or is open no more."""
    late = "this answer was taken already, and it counts once; ask again"
    closed = "it was allowed, but by now its time is over, or Sayso is locked; ask again"
    reason = late if request.state is State.USED else closed
    return replace(outcome_of(request), status=Status.DENIED, reason=reason)


def _reason(request: Request) -> str:
    return str(request.verdict.get("reason", "denied"))
