"""From a call to a case and a verdict: looks up what is kept, gathers facts, and has the judge decide."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

from core.elevations import Elevations
from core.errors import RequestError
from core.judge import Case, Judge
from core.lasting import Lasting
from core.model.call import ToolCall
from core.model.decision import Effect
from core.model.request import Basis, Request
from core.model.standing import Remembered
from core.model.verdict import Verdict
from core.policy.warnings import ToldWarnings
from core.ports import Clock, Store
from core.sessions import Sessions

log = logging.getLogger(__name__)

LOOKED_AT_ONCE = 2
LARGE_AT_ONCE = 1  # threads that compute hand each other the turn, and the event loop waits for its own
LARGE = 2048  # characters of a command; deciding about more would hold up everybody else
MANY = 1000  # entries of allowlists that are compared, all commands of a line together


class Decider:
    """Decides calls, each by one judge, and tells whether a decision is outdated by now."""

    looking_deadline_s = 10.0  # for a file system that does not answer

    def __init__(
        self,
        judge: Callable[[], Judge],
        store: Store,
        sessions: Sessions,
        elevations: Elevations,
        lasting: Lasting,
        clock: Clock,
    ) -> None:
        self._judge = judge
        self._store = store
        self._sessions = sessions
        self._elevations = elevations
        self._lasting = lasting
        self._clock = clock
        self._told = ToldWarnings()
        # What one agent asks about takes long in places; it must not take every thread that looks.
        self._turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(LOOKED_AT_ONCE))
        self._large = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(LARGE_AT_ONCE))

    async def outdated(self, case: Case) -> bool:
        """Tell whether something that decides was changed since a case was begun."""
        return case.basis is not None and case.basis.revision != await self._store.revision()

    async def consider(
        self,
        call: ToolCall,
        judge: Judge | None = None,
        *,
        approved: bool = False,
        counted: str | None = None,
    ) -> tuple[Case, Verdict]:
        """Gather facts and decide, without a trace anywhere.

        Host names are looked up only where all else says yes by now, or a question was answered by one. Of
        the permission `counted` a use was taken for this call already.
        """
        call = replace(call, claims=await self._sessions.settled(call.session, call.claims))
        async with self._turn(call):
            # Only now, so that what waited long is not outdated; and before anything is looked up.
            basis = Basis(await self._store.revision(), call.credential)
            judge = judge or self._judge()
            case = await self._look(judge, call, look_up=False)
        remembered = await self._remembered(case, counted)
        verdict = await self._verdict(judge, case, remembered)
        if case.arguments.unresolved and verdict.effect <= (Effect.ASK if approved else Effect.ALLOW):
            async with self._turn(call):
                case = await self._look(judge, call, look_up=True)
            verdict = await self._verdict(judge, case, remembered)
        for warning in self._told.fresh(judge.toolset(call.session, call.claims).warnings):
            log.warning("%s", warning)
        return replace(case, basis=basis), verdict

    async def _remembered(self, case: Case, counted: str | None) -> Remembered:
        """Look up what earlier answers mean; a permission ends by the steady clock, too."""
        call, now = case.call, self._clock.now()
        kept = await self._store.remembered(
            call.agent, case.binding.digest, now, call.session.lineage, counted
        )
        over = kept.permission is not None and self._lasting.over(kept.permission.id)
        return replace(kept, permission=None) if over else kept

    async def _verdict(self, judge: Judge, case: Case, remembered: Remembered) -> Verdict:
        """Decide a case; a large one must not hold up the others."""
        if _takes_long(case, remembered):
            async with self._large[case.call.agent], self._turns[case.call.agent]:
                return await asyncio.to_thread(judge.verdict, case, remembered)
        return judge.verdict(case, remembered)

    async def fallback(self, request: Request) -> bool:
        """Answer, for a question nobody answered, whether `askFallback` turns it into a yes."""
        judge = self._judge()
        case, verdict = await self.consider(request.call, judge)
        if verdict.effect is Effect.DENY or case.binding != request.binding:
            return False
        kept = await self._remembered(case, None)
        return judge.fallback_allows(case, kept.learned, kept.tightenings)

    async def _look(self, judge: Judge, call: ToolCall, *, look_up: bool) -> Case:
        standing = self._elevations.standing(call)
        return await asyncio.to_thread(judge.examine, call, standing, look_up=look_up)

    @asynccontextmanager
    async def _turn(self, call: ToolCall) -> AsyncIterator[None]:
        """Wait for the agent's turn to look at files; the wait and the look have one deadline."""
        alone = self._large[call.agent] if _is_large(call) else nullcontext()
        try:
            async with asyncio.timeout(self.looking_deadline_s), alone, self._turns[call.agent]:
                yield
        except TimeoutError:
            why = "the files that this command names could not be looked at in time, so it was refused"
            raise RequestError(why, field="cwd") from None


def _is_large(call: ToolCall) -> bool:
    command = call.command
    texts = call.args.values() if command is None else (command.line or "", *command.argv)
    return sum(len(text) for text in texts if isinstance(text, str)) > LARGE


def _takes_long(case: Case, remembered: Remembered) -> bool:
    if case.facts is None:
        return False
    entries = len(remembered.learned) + (len(case.policy.allowlist) if case.policy else 0)
    return len(case.facts.text) > LARGE or len(case.facts.segments) * entries > MANY
