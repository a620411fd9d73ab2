"""The path of every request, top to bottom.

1 tool policy, 2 exec security and 3 placement are decided together by `core.judge` from facts gathered
first; 4 approval asks people; 5 the grant is issued and used up in the transaction that records the start;
6 the run checks the binding a last time; 7 the outcome goes to the agent, the chats and the record.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from core.approvals import lifecycle
from core.approvals.card import card_of, outcome_of
from core.approvals.ledger import Ledger
from core.approvals.service import NO_ROUTE, Approvals, overruled
from core.approvals.standing import ENDED
from core.errors import BindingMismatch, RequestError, StoreError, UnknownRequest
from core.judge import LOCKED, REVOKED, Case, Judge
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.decision import Decision, Effect
from core.model.outcome import Outcome, Status
from core.model.plan import RunOrder
from core.model.principal import Claims, PeerCredentials
from core.model.request import Change, Request, RequestKind, State
from core.model.session import SessionKey
from core.model.verdict import Verdict
from core.policy.warnings import ToldWarnings
from core.ports import Clock, Runner, RunObserver, Store
from core.runs import Runs
from core.shell.render import run_argv

log = logging.getLogger(__name__)

MIN_PREFIX = 8

Locate = Callable[[str], str | None]


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
    ) -> None:
        self._judge = judge
        self._told = ToldWarnings()
        self._approvals = approvals
        self._ledger = ledger
        self._store = store
        self._runs = runs
        self._runners = runners
        self._clock = clock
        self._locate = locate

    async def run(self, call: ToolCall, peer: PeerCredentials | None, observer: RunObserver) -> Outcome:
        """Decide, ask people where policy says so, run, and return the outcome."""
        case, verdict = await self.consider(call)
        request = self._request(case, verdict, RequestKind.RUN, peer)
        if verdict.effect is Effect.DENY:
            return await self._refuse(request)
        if verdict.effect is Effect.ASK:
            return await self._ask_and_follow(request, observer)
        return await self._run(lifecycle.allowed(request, self._clock.now()), case, observer)

    async def ask(self, call: ToolCall, peer: PeerCredentials | None) -> Outcome:
        """Decide without running: allowed, denied, or pending with the id to wait for."""
        case, verdict = await self.consider(call)
        request = self._request(case, verdict, RequestKind.ASK, peer)
        if verdict.effect is Effect.DENY:
            return await self._refuse(request)
        if verdict.effect is Effect.ASK:
            return await self._put_to_people(request)
        change = lifecycle.allowed(request, self._clock.now())
        if not await self._ledger.commit(change):
            return await self._barred(request)
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
        case, verdict = await self.consider(call)
        return await self._start(request, case, verdict, observer)

    async def withdraw(self, agent: str, request_id: str) -> Outcome:
        """Take back the agent's own waiting request."""
        request = await self._own(agent, request_id)
        await self._approvals.withdraw(request)
        return outcome_of(await self._store.request(request.id) or request)

    async def describe(self, session: SessionKey, claims: Claims) -> Mapping[str, Any]:
        """Tell an agent what holds for its session."""
        tools = self._judge().toolset(session, claims)
        return {"session": str(session), "agent": session.agent, "tools": sorted(tools.allowed)}

    async def consider(self, call: ToolCall) -> tuple[Case, Verdict]:
        """Gather facts and decide, without a trace anywhere."""
        judge = self._judge()
        case = await self._look(judge, call)
        now = self._clock.now()
        remembered = await self._store.remembered(call.agent, case.binding.digest, now)
        for warning in self._told.fresh(judge.toolset(call.session, call.claims).warnings):
            log.warning("%s", warning)
        return case, judge.verdict(case, remembered)

    async def fallback(self, request: Request) -> bool:
        """Answer, for a question nobody answered, whether `askFallback` turns it into a yes."""
        case, verdict = await self.consider(request.call)
        if verdict.effect is Effect.DENY or case.binding != request.binding:
            return False
        return self._judge().fallback_allows(case, await self._store.learned(request.call.agent))

    async def _look(self, judge: Judge, call: ToolCall) -> Case:
        try:
            async with asyncio.timeout(self.looking_deadline_s):
                return await asyncio.to_thread(judge.examine, call)
        except TimeoutError:
            why = "the files that this command names could not be looked at in time, so it was refused"
            raise RequestError(why, field="cwd") from None

    async def _barred(self, request: Request) -> Outcome:
        """Refuse what the store did not open: all was locked since, a permission ended, the agent revoked."""
        ended = ENDED if request.permission else REVOKED
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
        if not self._approvals.routes(request):
            return await self._overrule(request, NO_ROUTE)
        asked = await self._approvals.ask(request)
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
        if request.kind is RequestKind.ASK:
            return outcome_of(request)
        if request.state is State.APPROVED:
            case, verdict = await self.consider(request.call)
            return await self._start(request, case, verdict, observer)
        return await self._until_ended(request.id, observer)

    async def _start(self, request: Request, case: Case, verdict: Verdict, observer: RunObserver) -> Outcome:
        """Check policy, placement and binding again, then use up the grant and run."""
        changed = request.binding.changed(case.binding)
        if not changed and verdict.effect is not Effect.DENY:
            return await self._run(lifecycle.started(request, self._clock.now()), case, observer)
        why = f"it was approved, but by now {verdict.decision.reason}"
        if changed:
            why = str(BindingMismatch(changed))
        refusal = lifecycle.mismatched(request, why, self._clock.now())
        await self._ledger.commit(refusal)
        return outcome_of(await self._store.request(request.id) or refusal.request)

    async def _run(self, start: Change, case: Case, observer: RunObserver) -> Outcome:
        """Record the start and hand the bound command to its runner; whoever comes second only watches."""
        request = start.request
        argv = run_argv(case.facts) if case.facts else ()
        stdin = request.call.command.stdin if request.call.command else None
        order = RunOrder(request.id, argv, case.bound, request.binding, stdin)
        runner = self._runners[case.placed.placement]
        if not await self._runs.start(start, order, runner, observer) and start.insert:
            return await self._barred(request)
        return await self._until_ended(request.id, observer)

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
        timeout = self._judge().config.approvals.exec.timeout
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
            deadline=now + timeout,
            always=verdict.always,
            obligations=frozenset().union(*(decision.obligations for decision in verdict.trace)),
            peer=peer,
            permission=verdict.permission,
        )


def _reason(request: Request) -> str:
    return str(request.verdict.get("reason", "denied"))
