"""The path of every request, top to bottom.

1 tool policy, 2 exec security and 3 placement are decided together by `core.judge` from facts gathered
first; 4 approval asks people; 5 the grant is issued and used up in the transaction that records the start;
6 the run checks the binding a last time; 7 the outcome goes to the agent, the chats and the record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from core.admission import admitted, rests_on
from core.approvals import lifecycle
from core.approvals.binding import suspects
from core.approvals.card import card_of, outcome_of
from core.approvals.elevation import no_longer_elevated, unasked
from core.approvals.ledger import Ledger
from core.approvals.service import Approvals, overruled
from core.approvals.standing import ENDED
from core.approvals.used import taken, told_again
from core.decider import Decider
from core.elevated.authority import authority
from core.elevated.levels import Asking
from core.elevations import ELEVATION_ENDED, Elevations
from core.errors import BindingMismatch, RunError, StoreError, UnknownRequest
from core.judge import LOCKED, REVOKED, Case, Judge
from core.model.call import EXEC, ToolCall
from core.model.command import Placement
from core.model.decision import Decision, Effect
from core.model.outcome import Outcome, Status
from core.model.plan import RunOrder
from core.model.principal import Claims, PeerCredentials
from core.model.request import MIN_PREFIX, Answer, Change, Request, RequestKind, State
from core.model.session import SessionKey
from core.model.verdict import Verdict
from core.ports import Clock, Runner, RunObserver, Store
from core.runs import Runs
from core.sessions import Sessions
from core.shell.render import run_argv
from core.shell.scripts import pinned_files

log = logging.getLogger(__name__)

MOST_DECISIONS = 12  # of one call, where what it is decided by changes while it is decided
BREATH_S = 0.005
_BY_RULE = ("allowed-by-policy", "allowed-by-elevation", "allowed-by-permission")

Locate = Callable[[str], str | None]
Act = Callable[[Case, Verdict], Awaitable[Outcome | None]]


@dataclass(frozen=True, slots=True)
class Objection:
    """Why what was allowed is not done after all, and the rule that says so."""

    reason: str
    rule: str | None = None


class Gate:
    """The policy enforcement point: nothing runs but through here.

    `judge` gives the judge of the configuration in force.
    """

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
        self._sessions = Sessions(store, clock)
        self._approvals = approvals
        self._ledger = ledger
        self._store = store
        self._runs = runs
        self._runners = runners
        self._clock = clock
        self._locate = locate
        self._elevations = elevations
        self._decider = Decider(judge, store, self._sessions, elevations, approvals.lasting, clock)

    async def run(self, call: ToolCall, peer: PeerCredentials | None, observer: RunObserver) -> Outcome:
        """Decide, ask people where policy says so, run, and return the outcome."""
        call = await self._directed(call)
        return await self._decided(call, partial(self._admit_run, peer, observer))

    async def _admit_run(
        self, peer: PeerCredentials | None, observer: RunObserver, case: Case, verdict: Verdict
    ) -> Outcome | None:
        request = self._request(case, verdict, RequestKind.RUN, peer)
        if verdict.effect is Effect.DENY:
            return await self._refuse(request)
        if verdict.effect is Effect.ASK:
            if self._made_workspace(case):
                return None  # what Always offers is for a directory that is there
            return await self._ask_and_follow(request, case, observer)
        return await self._run(lifecycle.allowed(request, self._clock.now()), case, verdict, observer)

    async def ask(self, call: ToolCall, peer: PeerCredentials | None) -> Outcome:
        """Decide without running: allowed, denied, or pending with the id to wait for."""
        call = await self._directed(call)
        return await self._decided(call, partial(self._admit_ask, peer))

    async def _directed(self, call: ToolCall) -> ToolCall:
        """Give the call the directive that waits for it; what a session once claimed it claims here too."""
        claims = await self._sessions.settled(call.session, call.claims)
        return await self._elevations.directed(replace(call, claims=claims))

    async def _admit_ask(self, peer: PeerCredentials | None, case: Case, verdict: Verdict) -> Outcome | None:
        request = self._request(case, verdict, RequestKind.ASK, peer)
        if verdict.effect is Effect.DENY:
            return await self._refuse(request)
        if self._made_workspace(case):
            return None  # an answer is tied to the directory that is there
        if verdict.effect is Effect.ASK:
            return await self._put_to_people(request, case)
        change = replace(lifecycle.allowed(request, self._clock.now()), basis=case.basis)
        if not await self._ledger.commit(change):
            return await self._barred(request, case)
        await self._note_uses(verdict)
        return outcome_of(change.request)

    async def _decided(
        self, call: ToolCall, act: Act, *, approved: bool = False, counted: str | None = None
    ) -> Outcome:
        """Decide and act on it; again where something that decides was changed before the act was kept.

        What is answered to whoever changed it holds from then on: no start rests on what was before.
        """
        for tries in range(MOST_DECISIONS):
            await asyncio.sleep(tries * BREATH_S)
            case, verdict = await self._decider.consider(call, approved=approved, counted=counted)
            outcome = await act(case, verdict)
            if outcome is not None:
                return outcome
        raise StoreError("what may run is being changed all the time, so nothing was started; ask again")

    async def wait(self, agent: str, request_id: str, observer: RunObserver) -> Outcome:
        """Wait for the decision on the agent's own request; where it is one to run, run it too."""
        request = await self._own(agent, request_id)
        if request.state is State.WAITING:
            observer.requested(card_of(request))
        return await self._follow(request.id, observer)

    async def run_approved(self, call: ToolCall, request_id: str, observer: RunObserver) -> Outcome:
        """Run a call under the approval that `ask` got for it; it counts once, and the binding must match."""
        request = await self._own(call.agent, request_id)
        call = replace(call, directive=request.call.directive, elevated=request.call.elevated)
        if request.state is State.APPROVED:
            return await self._start(request, call, observer)
        case, _ = await self._decider.consider(call, approved=True)
        return told_again(await self._store.request(request.id) or request, case.binding)

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

    async def consider(self, call: ToolCall) -> tuple[Case, Verdict]:
        """Gather facts and decide, without a trace anywhere."""
        return await self._decider.consider(call)

    async def fallback(self, request: Request) -> bool:
        """Answer, for a question nobody answered, whether `askFallback` turns it into a yes."""
        return await self._decider.fallback(request)

    def _request(
        self, case: Case, verdict: Verdict, kind: RequestKind, peer: PeerCredentials | None
    ) -> Request:
        now, window = self._clock.now(), self._judge().config.approvals.exec.timeout
        return admitted(case, verdict, kind, peer, now, now + window, self._locate(verdict.decision.source))

    async def _barred(self, request: Request, case: Case) -> Outcome | None:
        """Refuse what the store did not open; None where it is to be decided again."""
        if await self._decider.outdated(case):
            return None
        bar = await self._bar(request, case)
        if bar is ENDED:
            return None  # the permission is used up or ended: without it people are asked
        return await self._overrule(request, bar)

    async def _bar(self, request: Request, case: Case) -> Decision:
        """Say what keeps the store from opening: a lock, a token that ended, a permission, an elevation."""
        if await self._store.locked():
            return LOCKED
        token = case.call.credential
        if token is not None and await self._store.agent_by_token(token) is None:
            return REVOKED
        if request.permission or _left_permission(request):
            return ENDED
        return ELEVATION_ENDED if request.elevation else REVOKED

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

    def _made_workspace(self, case: Case) -> bool:
        """Make the workspace before the run; where that fails the run will say why."""
        runner = self._runners.get(case.placed.placement)
        if runner is None or case.facts is None:
            return False
        try:
            return runner.make_workspace(case.bound.plan)
        except RunError as error:
            log.info("no workspace for a question: %s", error)
            return False

    async def _ask_and_follow(self, request: Request, case: Case, observer: RunObserver) -> Outcome | None:
        asked = await self._put_to_people(request, case)
        if asked is None or asked.status is not Status.PENDING or asked.request_id is None:
            return asked
        card = await self._approvals.card(asked.request_id)
        if card is not None:
            observer.requested(card)
        return await self._follow(asked.request_id, observer)

    async def _put_to_people(self, request: Request, case: Case) -> Outcome | None:
        unanswerable = self._approvals.unanswerable(request)
        if unanswerable is not None:
            return await self._overrule(request, unanswerable)
        window = self._approvals.window_ms(request)
        asked = await self._approvals.ask(replace(request, deadline=request.created_at + window), case.basis)
        if isinstance(asked, Decision):
            return await self._turn_away(request, asked)
        return outcome_of(asked) if asked else await self._barred(request, case)

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
            return await self._start(request, request.call, observer)
        return await self._until_ended(request.id, observer)

    async def _handed_over(self, request: Request) -> Outcome:
        """Give the answer to its asker; one that its own program carries out is used up by that, once."""
        if request.state is not State.APPROVED or request.placement is not Placement.CLIENT:
            return taken(request) if request.state is State.USED else outcome_of(request)
        return await self._decided(request.call, partial(self._hand_over, request), approved=True)

    async def _hand_over(self, request: Request, case: Case, verdict: Verdict) -> Outcome | None:
        objection = await self._objection(request, case, verdict)
        if objection:
            return await self._stopped(request, objection, case)
        terms = [term.to_json() for term in verdict.constraints]
        request = replace(request, verdict={**request.verdict, "constraints": terms})
        used = replace(lifecycle.used(request, self._clock.now()), basis=case.basis)
        if await self._ledger.commit(used):
            return outcome_of(used.request)
        kept = await self._store.request(request.id) or request
        if kept.state is State.APPROVED and await self._decider.outdated(case):
            return None
        return taken(kept)

    async def _start(self, request: Request, call: ToolCall, observer: RunObserver) -> Outcome:
        """Check policy, placement and binding again, then use up the grant and run."""
        start = partial(self._start_by, request, observer)
        return await self._decided(call, start, counted=request.permission)

    async def _start_by(
        self, request: Request, observer: RunObserver, case: Case, verdict: Verdict
    ) -> Outcome | None:
        objection = await self._objection(request, case, verdict)
        if objection:
            return await self._stopped(request, objection, case)
        request = replace(request, elevation=rests_on(case))
        return await self._run(lifecycle.started(request, self._clock.now()), case, verdict, observer)

    async def _objection(self, request: Request, case: Case, verdict: Verdict) -> Objection | None:
        """Say what stands against what was allowed by now; the yes of a rule holds while that says yes."""
        changed = request.binding.changed(case.binding)
        if changed:
            return Objection(str(BindingMismatch(changed, suspects(changed, case.bound))))
        wanted = case.placed.asking is Asking.BY_AUTHORISED
        who = authority(self._judge().config, request.call.agent)
        ended = no_longer_elevated(request, who, wanted_now=wanted)
        if ended:
            return Objection(f"it was allowed, but by now {ended}", ELEVATION_ENDED.rule)
        decided_by = request.resolution.decision if request.resolution else ""
        stands = verdict.effect is not Effect.DENY
        if stands and decided_by in _BY_RULE:
            stands = verdict.effect is Effect.ALLOW
        elif stands and decided_by == lifecycle.BY_FALLBACK:
            stands = await self.fallback(request)
        if stands:
            return None
        return Objection(f"it was allowed, but by now {verdict.decision.reason}", verdict.decision.rule)

    async def _stopped(self, request: Request, objection: Objection, case: Case) -> Outcome:
        refusal = lifecycle.mismatched(request, objection.reason, self._clock.now(), objection.rule)
        await self._ledger.commit(refusal)
        return told_again(await self._store.request(request.id) or refusal.request, case.binding)

    async def _run(
        self, start: Change, case: Case, verdict: Verdict, observer: RunObserver
    ) -> Outcome | None:
        """Record the start and hand the bound command to its runner; whoever comes second only watches."""
        start, request = replace(start, basis=case.basis), start.request
        by_person = request.resolution is not None and request.resolution.by is not None
        if case.placed.asking is Asking.NEVER and not by_person:
            start = unasked(start, case.placed)
        argv = run_argv(case.facts) if case.facts else ()
        stdin = request.call.command.stdin if request.call.command else None
        allowed, agent = by_person or request.permission is not None, request.call.agent
        # A person's yes is for programs that rewrite what they are given, too: that is not held then.
        pinned = pinned_files(case.facts, _by_pin(verdict)) if case.facts and not allowed else ()
        order = RunOrder(request.id, argv, case.bound, request.binding, stdin, allowed, agent, pinned)
        runner = self._runners[case.placed.placement]
        if not await self._runs.start(start, order, runner, observer):
            return await self._not_started(start, case, observer)
        await self._note_uses(verdict)
        return await self._until_ended(request.id, observer)

    async def _not_started(self, start: Change, case: Case, observer: RunObserver) -> Outcome | None:
        """Find out why a start was refused; None where it is to be decided again."""
        if start.insert:
            return await self._barred(start.request, case)
        kept = await self._store.request(start.request.id)
        too_late = kept is not None and self._approvals.over(kept)  # its end is on the way
        if kept is None or kept.state is not State.APPROVED or too_late:
            return await self._until_ended(start.request.id, observer)
        if await self._decider.outdated(case):
            return None
        bar = await self._bar(start.request, case)
        return await self._stopped(kept, Objection(bar.reason, bar.rule), case)

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


def _by_pin(verdict: Verdict) -> list[bool]:
    return [entry is not None and entry.sha256 is not None for entry in verdict.entries]


def _left_permission(request: Request) -> bool:
    """Tell whether a yes left a permission, which ends this one, too, when it is revoked."""
    return request.resolution is not None and request.resolution.decision == Answer.ALLOW_FOR


def _reason(request: Request) -> str:
    return str(request.verdict.get("reason", "denied"))
