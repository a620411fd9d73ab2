"""What the operator may see and do. Everything it returns is plain JSON."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.acts import Acts
from core.approvals.card import outcome_of
from core.approvals.elevation import alarm_about
from core.approvals.ledger import Ledger
from core.approvals.recovery import EVERYTHING_LOCKED, TOKEN_REVOKED
from core.approvals.rehearsal import rehearsal
from core.approvals.service import Approvals
from core.audit import to_row, verify
from core.console_rows import delivery_row, event_row, notifications, offered, review_row, summary
from core.credentials import Credentials
from core.elevations import Elevations
from core.errors import RequestError, UnknownRequest
from core.explain import call_of, explain, listed_segments, read_row, standing_of
from core.judge import Judge
from core.model.history import HistoryQuery
from core.model.principal import Reviewer
from core.model.request import (
    MIN_PREFIX,
    AuditEvent,
    ChainedEvent,
    Request,
    Review,
    State,
)
from core.policy.rows import tools_row
from core.ports import Clock, Store
from core.runs import Runs

PAGE_CHARACTERS = 1_000_000  # of a page of the record, so that one answer stays small


@dataclass(frozen=True, slots=True)
class Daemon:
    """What wiring knows and the operator may ask for; `where` tells file and line of a configuration path."""

    status: Callable[[], dict[str, Any]]
    web_link: Callable[[], tuple[str, int]] | None
    where: Callable[[str], str | None]
    reload: Callable[[Reviewer], Awaitable[dict[str, Any]]] | None = None


class OperatorConsole:
    """Answers the operator; see `core.ports.Console` for what each method gives."""

    def __init__(
        self,
        store: Store,
        approvals: Approvals,
        ledger: Ledger,
        runs: Runs,
        credentials: Credentials,
        judge: Callable[[], Judge],
        clock: Clock,
        daemon: Daemon,
        *,
        elevations: Elevations,
    ) -> None:
        self._store = store
        self._approvals = approvals
        self._ledger = ledger
        self._runs = runs
        self._credentials = credentials
        self._judge = judge
        self._clock = clock
        self._daemon = daemon
        self._elevations = elevations
        self._acts = Acts("act of the operator")
        self.on_revoked: list[Callable[[str], None]] = []
        self.on_locked: list[Callable[[], object]] = []

    async def close(self) -> None:
        """Wait for what is under way."""
        await self._acts.close()

    async def pending(self) -> list[dict[str, Any]]:
        """List what waits, oldest first."""
        return [summary(request) for request in await self._store.in_states(State.WAITING)]

    async def history(self, query: HistoryQuery) -> list[dict[str, Any]]:
        """List what was decided and fits, newest first."""
        return [summary(request) for request in await self._store.search(query)]

    async def show(self, request_id: str) -> dict[str, Any]:
        """Tell everything about one request."""
        request = await self._find(request_id)
        always = offered(request)
        record = [event_row(chained) for chained in await self._store.events_about(request.id)]
        deliveries = await self._store.deliveries(request.id)
        return {
            **summary(request),
            "tool": request.call.tool,
            "peer": asdict(request.peer) if request.peer else None,
            "startedAt": request.started_at,
            "approval": request.resolution.to_json(request.id) if request.resolution else None,
            "outcome": outcome_of(request).to_json(),
            "verdict": request.verdict,
            "always": {"words": list(always.words), "why": always.why},
            "binding": request.binding.digest,
            "reviews": [review_row(given) for given in request.reviews],
            "copies": [delivery_row(delivery) for delivery in deliveries],
            "record": record,
        }

    async def resolve(self, review: Review) -> dict[str, Any]:
        """Decide as the operator, also by a prefix of the id."""
        request = await self._find(review.request_id)
        reviewed = await self._approvals.review(replace(review, request_id=request.id))
        if reviewed.alarm is not None:
            await self._store.append(alarm_about(request, review, reviewed.alarm, self._clock.now()))
        now = await self._store.request(request.id)
        state = (now or request).state.value
        return {"accepted": reviewed.accepted, "text": reviewed.text, "id": request.id, "state": state}

    async def cancel(self, request_id: str, reviewer: Reviewer) -> dict[str, Any]:
        """End a run."""
        request = await self._find(request_id)
        accepted = self._runs.cancel(request.id, f"ended by {reviewer}")
        text = "Ending the run." if accepted else f"It does not run; it is {request.state.value}."
        return {"accepted": accepted, "text": text, "id": request.id}

    async def agents(self) -> list[dict[str, Any]]:
        """List agents."""
        return [
            {"id": record.id, "createdAt": record.created_at, "revokedAt": record.revoked_at}
            for record in await self._store.agents()
        ]

    async def add_agent(self, agent: str) -> dict[str, Any]:
        """Mint a token; the only time it is told."""
        return await self._acts.whole(self._added(agent))

    async def _added(self, agent: str) -> dict[str, Any]:
        if not self._credentials.alive(agent):
            await self._approvals.call_off(TOKEN_REVOKED, agent)  # nothing asked under an old token revives
            self._elevations.forget_agent(agent)
        return {"id": agent, "token": await self._credentials.mint(agent, "operator")}

    async def revoke_agent(self, agent: str) -> dict[str, Any]:
        """End an agent's token at once, and with it its runs, its open questions and its connections.

        Once more does no harm: it ends what is left.
        """
        return await self._acts.whole(self._revoked(agent))

    async def _revoked(self, agent: str) -> dict[str, Any]:
        await self._credentials.revoke(agent, "operator")
        self._elevations.forget_agent(agent)
        try:
            await self._stop(TOKEN_REVOKED, agent)
        finally:
            for cut_off in self.on_revoked:
                cut_off(agent)
        return {"id": agent, "revoked": True}

    async def explain(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a row of `explain` against the configuration and allowlist in force."""
        asked = read_row(row)
        if asked.config is not None:
            raise RequestError("config is for `sayso explain` without the daemon", field="config")
        judge = self._judge()
        call = call_of(asked)
        standing, _ = standing_of(judge.config, asked, call, self._elevations.standing(call))
        case = await asyncio.to_thread(judge.examine, call, standing)
        now = self._clock.now()
        call = case.call
        remembered = await self._store.remembered(call.agent, case.binding.digest, now, call.session.lineage)
        answer = self._located(explain(judge, asked, case, remembered))
        return {**answer, "where": self._daemon.where(str(answer["source"]))}

    async def tools(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a row of `tools` likewise."""
        judge = self._judge()
        answer = tools_row(judge.config, row, judge.plugins())
        denied = {
            tool: {**gone, "where": self._daemon.where(gone["source"])}
            for tool, gone in answer["denied"].items()
        }
        return {**answer, "denied": denied}

    async def audit_tail(self, limit: int) -> list[dict[str, Any]]:
        """Return the newest audit events, oldest first."""
        head, _ = await self._store.head()
        async with aclosing(self._store.events(max(0, head - limit))) as events:
            tail: deque[ChainedEvent] = deque([event async for event in events], maxlen=limit)
        return [event_row(chained) for chained in tail]

    async def audit_page(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Return the links after an event, in order, as rows that can be verified elsewhere."""
        rows: list[dict[str, Any]] = []
        size = 0
        async with aclosing(self._store.events(after)) as links:
            async for link in links:
                rows.append(to_row(link))
                size += len(str(link.event.data))
                if len(rows) >= limit or size >= PAGE_CHARACTERS:
                    break
        return rows

    async def audit_verify(self) -> dict[str, Any]:
        """Recompute the chain."""
        return (await verify(self._store)).to_json()

    async def set_locked(self, *, locked: bool, reviewer: Reviewer) -> dict[str, Any]:
        """Pull or release the kill switch: nothing starts, what runs ends, what waits is withdrawn."""
        return await self._acts.whole(self._locked(locked=locked, reviewer=reviewer))

    async def _locked(self, *, locked: bool, reviewer: Reviewer) -> dict[str, Any]:
        kind = "daemon.locked" if locked else "daemon.unlocked"
        event = AuditEvent(self._clock.now(), kind, f"person:{reviewer.channel}:{reviewer.id}")
        if not locked:
            if await self._store.locked():
                await self._approvals.call_off(EVERYTHING_LOCKED)  # what the lock could not take back
            await self._store.set_locked(locked=False, event=event)
            return {"locked": False, "text": "Unlocked: requests are decided again."}
        try:
            await self._store.set_locked(locked=True, event=event)
        finally:  # a lock that could not be kept ends what runs all the same
            self._elevations.forget_all()
            for forget in self.on_locked:
                forget()
            called_off = await self._stop(f"locked by {reviewer}")
        text = f"Locked: every request is denied; {called_off} open questions were withdrawn."
        return {"locked": True, "text": text}

    async def _stop(self, why: str, agent: str | None = None) -> int:
        """End the runs and take back the open questions (of one agent); returns how many questions.

        The runs are told first: the questions may be many.
        """
        self._runs.end(why, agent)
        try:
            return await self._approvals.call_off(why, agent)
        finally:
            await self._runs.stop(why, agent)

    async def test_channels(self, channel: str | None) -> dict[str, Any]:
        """Put a question that cannot run anything to the chats, or to one channel."""
        now, timeout = self._clock.now(), self._judge().config.approvals.exec.timeout
        question = rehearsal(channel, now, timeout)
        if not self._approvals.routes(question):
            raise RequestError(_nowhere(channel), field="channel")
        asked = await self._approvals.ask(question)
        if not isinstance(asked, Request):
            raise RequestError("Sayso is locked, so nobody is asked anything; sayso unlock ends that")
        places = [{"channel": copy.channel, "place": copy.place} for copy in asked.copies]
        return {"id": asked.id, "deadline": asked.deadline, "places": places}

    async def web_link(self) -> dict[str, Any]:
        """Make a one-time login link."""
        if self._daemon.web_link is None:
            raise RequestError(
                "the page is off; set channels.web.enabled: true and restart", field="channels.web"
            )
        url, expires_at = self._daemon.web_link()
        return {"url": url, "expiresAt": expires_at}

    async def reload(self, reviewer: Reviewer) -> dict[str, Any]:
        """Read the configuration again."""
        if self._daemon.reload is None:
            raise RequestError("this daemon cannot read its configuration again; restart it")
        return await self._daemon.reload(reviewer)

    async def status(self) -> dict[str, Any]:
        """Tell how the daemon is."""
        return {
            **self._daemon.status(),
            "waiting": await self._store.count(State.WAITING),
            "running": len(self._runs),
            "locked": await self._store.locked(),
        }

    async def subscribe(self) -> AsyncIterator[dict[str, Any]]:
        """Yield a notification for each event from now on."""
        async with aclosing(self._ledger.feed()) as feed:
            async for change in feed:
                for notification in notifications(change):
                    yield notification

    def _located(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Add to each row of the trace where its rule is written."""
        rows = [{**row, "where": self._daemon.where(row["source"])} for row in answer["trace"]]
        for segment in listed_segments(answer):
            segment["where"] = self._daemon.where(segment["source"])
        return {**answer, "trace": rows}

    async def _find(self, prefix: str) -> Request:
        if len(prefix) < MIN_PREFIX:
            raise UnknownRequest(
                f"id {prefix!r} is too short; give at least {MIN_PREFIX} characters", field="id"
            )
        found = await self._store.by_prefix(prefix)
        if not found:
            raise UnknownRequest(f"no request has an id that begins with {prefix[:40]!r}", field="id")
        if len(found) > 1:
            several = ", ".join(request.id for request in found)
            raise UnknownRequest(f"{prefix} is ambiguous: {several}", field="id")
        return found[0]


def _nowhere(channel: str | None) -> str:
    which = f"nobody is asked in {channel!r}" if channel else "nobody is asked in any chat"
    return (
        f"{which}: sayso status tells which channels work; a chat is asked where approvals.exec.mode is "
        "targets or both, approvals.exec.targets names it, and approvers of that channel are named"
    )
