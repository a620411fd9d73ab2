"""A test question asks like any other, and cannot become a run by any way."""

from __future__ import annotations

import asyncio

import pytest

from core.approvals.rehearsal import TESTER, rehearsal, routes_of
from core.config import ExecApprovals
from core.errors import RequestError, UnknownRequest
from core.model.call import CommandText, ToolCall
from core.model.principal import Reviewer
from core.model.request import Answer, Review, State
from core.model.session import SessionKey, is_agent_id

ANN = Reviewer("telegram", "5", "Ann")
CHATS = {
    "mode": "targets",
    "approvers": ("telegram:5", "slack:U5"),
    "targets": ({"channel": "telegram", "to": "user:5"}, {"channel": "slack", "to": "user:U5"}),
}


@pytest.fixture
async def asked(system):
    told = await system.console.test_channels("web")
    return await system.store.request(told["id"])


async def test_a_yes_ends_it_without_a_grant(system, asked):
    answer = await system.approvals.review(Review(asked.id, Answer.ALLOW_ONCE, ANN))
    assert answer.accepted
    ended = await system.store.request(asked.id)
    assert ended.state is State.USED
    assert ended.resolution.by == ANN
    assert not system.orders


async def test_always_is_not_offered(system, asked):
    answer = await system.approvals.review(Review(asked.id, Answer.ALLOW_ALWAYS, ANN))
    assert not answer.accepted
    assert (await system.store.request(asked.id)).state is State.WAITING


@pytest.mark.parametrize("agent", ["main", TESTER])
async def test_no_call_runs_under_it(system, asked, agent):
    await system.approvals.review(Review(asked.id, Answer.ALLOW_ONCE, ANN))
    call = ToolCall("exec", SessionKey.main(agent), command=CommandText(argv=("/usr/bin/true",)))
    try:
        await system.gate.run_approved(call, asked.id, None)
    except UnknownRequest:
        assert agent == "main"
    assert not system.orders


async def test_its_binding_is_the_one_of_no_command(system, asked):
    call = ToolCall("exec", SessionKey.main(TESTER), command=CommandText(argv=("/usr/bin/true",)))
    case, _ = await system.gate.consider(call)
    assert asked.canonical == case.bound.canonical
    assert asked.binding.changed(case.binding)


async def test_nobody_gets_a_token_in_whose_name_it_is_asked(system):
    assert not is_agent_id(TESTER)
    with pytest.raises(RequestError):
        await system.credentials.mint(TESTER, "operator")


async def test_at_its_deadline_it_expires(system, asked, clock):
    deadlines = asyncio.create_task(system.approvals.keep_deadlines(system.gate.fallback))
    try:
        clock.advance(asked.deadline - clock.now() + 1)
        system.approvals._earlier.set()
        ended = await asyncio.wait_for(system.ledger.until(asked.id, State.EXPIRED), 5)
    finally:
        deadlines.cancel()
    assert ended.resolution.by is None


async def test_where_nobody_is_asked_it_says_what_is_missing(make_system):
    system = make_system(routes=())
    with pytest.raises(RequestError, match=r"approvals\.exec\.targets"):
        await system.console.test_channels(None)
    assert not await system.store.recent(5)


async def test_while_locked_nobody_is_asked(system):
    await system.console.set_locked(locked=True, reviewer=ANN)
    with pytest.raises(RequestError, match="locked"):
        await system.console.test_channels("web")


def test_it_goes_to_the_chats_and_not_to_the_page():
    settings = ExecApprovals.model_validate(CHATS)
    opened = ["web", "telegram", "slack"]
    everywhere = routes_of(settings, rehearsal(None, 0, 1_000), opened)
    assert [route.channel for route in everywhere] == ["telegram", "slack"]
    one = routes_of(settings, rehearsal("slack", 0, 1_000), opened)
    assert [route.channel for route in one] == ["slack"]
    assert not routes_of(settings, rehearsal("discord", 0, 1_000), opened)


def test_filters_for_agents_do_not_keep_it_back():
    settings = ExecApprovals.model_validate({**CHATS, "agent_filter": ("builder",), "session_filter": ("x",)})
    assert routes_of(settings, rehearsal("telegram", 0, 1_000), ["telegram"])
