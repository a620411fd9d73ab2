"""What an agent may call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adapters.ingress import params as p
from adapters.ingress.jsonrpc import CallId
from adapters.ingress.observer import CallObserver, DetachedObserver, Notify
from core.desks import AgentDesk
from core.model.call import ToolCall
from core.model.card import Card
from core.model.outcome import Outcome, Status
from core.model.principal import PeerCredentials

Json = dict[str, Any]


class _Asked(Protocol):
    def call(self, agent: str) -> ToolCall:
        """Return the call."""
        ...


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call of an authenticated agent, with all that its method may use.

    `credential` is the digest of its token.
    """

    agent: str
    peer: PeerCredentials
    desk: AgentDesk
    call_id: CallId
    notify: Notify
    credential: str

    def call(self, asked: _Asked) -> ToolCall:
        """Give the call of what was asked, with the token that it came in with."""
        return replace(asked.call(self.agent), credential=self.credential)

    @property
    def observer(self) -> CallObserver:
        """An observer that tells this caller."""
        return CallObserver(self.call_id, self.notify)


async def _run(ctx: AgentCall, params: Mapping[str, Any]) -> Json:
    asked = p.read(p.ExecRun, params)
    call = ctx.call(asked)
    if asked.approval_id is not None:
        return (await ctx.desk.run_approved(call, asked.approval_id, ctx.observer)).to_json()
    if asked.detach:
        return await _run_detached(ctx, call)
    return (await ctx.desk.run(call, ctx.peer, ctx.observer)).to_json()


async def _run_detached(ctx: AgentCall, call: ToolCall) -> Json:
    observer = DetachedObserver(ctx.call_id, ctx.notify)
    run = asyncio.create_task(ctx.desk.run(call, ctx.peer, observer), name=f"detached-run-{ctx.call_id}")
    try:
        either: tuple[asyncio.Future[Any], ...] = (run, observer.asked)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return (await run).to_json() if run.done() else _pending(observer.asked.result())
    finally:
        run.cancel()  # the question stays open: hanging up is not taking back
        await asyncio.gather(run, return_exceptions=True)


def _pending(card: Card) -> Json:
    outcome = Outcome(Status.PENDING, card.reason, request_id=card.request_id, placement=card.placement)
    return {**outcome.to_json(), "deadline": card.deadline}


async def _check(ctx: AgentCall, params: Mapping[str, Any]) -> Json:
    asked = p.read(p.ToolCheck, params)
    return await _ask(ctx, ctx.call(asked), wait=asked.wait)


async def _request(ctx: AgentCall, params: Mapping[str, Any]) -> Json:
    asked = p.read(p.ApprovalRequest, params)
    answer = await _ask(ctx, ctx.call(asked), wait=not asked.two_phase)
    if asked.two_phase and answer["status"] == Status.PENDING.value:
        return {**answer, "status": "accepted"}
    return answer


async def _ask(ctx: AgentCall, call: ToolCall, *, wait: bool) -> Json:
    outcome = await ctx.desk.ask(call, ctx.peer)
    if wait and outcome.status is Status.PENDING and outcome.request_id is not None:
        outcome = await ctx.desk.wait(ctx.agent, outcome.request_id, ctx.observer)
    return outcome.to_json()


async def _wait(ctx: AgentCall, params: Mapping[str, Any]) -> Json:
    return (await ctx.desk.wait(ctx.agent, p.read(p.ById, params).id, ctx.observer)).to_json()


async def _withdraw(ctx: AgentCall, params: Mapping[str, Any]) -> Json:
    return (await ctx.desk.withdraw(ctx.agent, p.read(p.ById, params).id)).to_json()


async def _describe(ctx: AgentCall, params: Mapping[str, Any]) -> Json:
    asked = p.read(p.SessionParams, params)
    return dict(await ctx.desk.describe(asked.session_of(ctx.agent), asked.claims.value()))


AgentMethod = Callable[[AgentCall, Mapping[str, Any]], Awaitable[Json]]

AGENT_METHODS: Mapping[str, AgentMethod] = {
    "exec.run": _run,
    "tool.check": _check,
    "exec.approval.request": _request,
    "exec.approval.waitDecision": _wait,
    "exec.approval.withdraw": _withdraw,
    "session.describe": _describe,
}
