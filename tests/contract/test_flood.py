"""Flood control, over the core and a real store: what one agent may ask, and what is left of a flood."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from core.approvals.rehearsal import rehearsal
from core.config import ExecApprovals
from core.model.history import HistoryQuery
from core.model.outcome import Status
from core.model.request import Answer, Review, State
from core.model.session import SessionKey
from tests.core_system import ALICE, CONFIG, exec_call

MAIN = SessionKey.main("main")
OTHER = SessionKey.main("other")


def asking(number, session=MAIN):
    return exec_call("touch", f"file{number}", session=session)


@pytest.fixture
def flooded(make_system):
    return make_system({**CONFIG, "approvals": {"exec": {"maxOpen": 3, "maxPerMinute": 5}}})


async def fill(system, count, first=0):
    return [await system.gate.ask(asking(number), None) for number in range(first, first + count)]


async def answer_all(system):
    for request in await system.store.in_states(State.WAITING):
        await system.approvals.review(Review(request.id, Answer.DENY, ALICE))


async def test_one_question_more_than_may_be_open_is_denied_at_once_and_told_why_and_when(flooded, clock):
    asked = await fill(flooded, 3)
    assert {outcome.status for outcome in asked} == {Status.PENDING}
    clock.advance(30_000)
    (refused,) = await fill(flooded, 1, first=3)
    assert refused.status is Status.DENIED
    assert refused.decision["rule"] == "approvals.too-many-open"
    assert refused.decision["source"] == "approvals.exec.maxOpen"
    assert "agent main has 3 questions open and may have 3" in refused.reason
    assert "in 1 min 30 s" in refused.reason
    assert len(await flooded.store.in_states(State.WAITING)) == 3


async def test_an_answer_makes_room_for_the_next_question(flooded):
    (first, *_rest) = await fill(flooded, 3)
    await flooded.approvals.review(Review(first.request_id, Answer.DENY, ALICE))
    (next_one,) = await fill(flooded, 1, first=3)
    assert next_one.status is Status.PENDING


async def test_more_questions_than_a_minute_may_hold_are_denied_until_the_oldest_is_a_minute_old(
    flooded, clock
):
    for first in (0, 3):
        await fill(flooded, 3 if first == 0 else 2, first)
        await answer_all(flooded)
        clock.advance(1_000)
    (refused,) = await fill(flooded, 1, first=9)
    assert refused.decision["rule"] == "approvals.too-fast"
    assert "put 5 questions in the last minute and may put 5" in refused.reason
    assert "try again in 58 s" in refused.reason
    clock.advance(57_999)
    assert (await fill(flooded, 1, first=9))[0].status is Status.DENIED
    clock.advance(1)
    assert (await fill(flooded, 1, first=9))[0].status is Status.PENDING


async def test_an_identical_question_joins_the_one_that_waits_and_costs_nothing(flooded):
    asked = await fill(flooded, 3)
    for _ in range(20):
        (again,) = await fill(flooded, 1)
        assert (again.status, again.request_id) == (Status.PENDING, asked[0].request_id)


async def test_one_agent_takes_nothing_from_another(flooded):
    await fill(flooded, 4)
    theirs = await flooded.gate.ask(asking(1, OTHER), None)
    assert theirs.status is Status.PENDING


async def test_questions_put_at_once_are_counted_one_by_one(flooded):
    outcomes = await asyncio.gather(*(flooded.gate.ask(asking(number), None) for number in range(40)))
    assert sum(outcome.status is Status.PENDING for outcome in outcomes) == 3


async def test_of_a_flood_the_first_refusal_is_recorded_and_the_others_as_one_sum(flooded, clock):
    await fill(flooded, 3)
    refused = await fill(flooded, 10, first=3)
    assert [outcome.request_id is None for outcome in refused] == [False] + [True] * 9
    denied = await flooded.store.search(HistoryQuery(100, states=(State.DENIED,)))
    assert [request.id for request in denied] == [refused[0].request_id]
    flood = flooded.approvals.flood
    await flood.sum_up(flooded.store, before=clock.monotonic() - 60)
    assert await sums(flooded) == []
    clock.advance(60_000)
    await flood.sum_up(flooded.store, before=clock.monotonic() - 60)
    assert await sums(flooded) == [("agent:main", {"rule": "approvals.too-many-open", "refused": 9})]
    await flood.sum_up(flooded.store, before=math.inf)
    assert len(await sums(flooded)) == 1


async def sums(system):
    events = [link.event async for link in system.store.events()]
    told = [event for event in events if event.kind == "approval.flood"]
    return [(event.actor, {k: v for k, v in event.data.items() if k != "since"}) for event in told]


async def test_the_sums_are_recorded_when_the_daemon_ends(flooded):
    await fill(flooded, 6)
    keeping = asyncio.create_task(flooded.approvals.flood.keep_account(flooded.store))
    await asyncio.sleep(0)
    keeping.cancel()
    await asyncio.wait([keeping])
    assert [data["refused"] for _, data in await sums(flooded)] == [2]


async def test_open_questions_count_after_a_restart(flooded, make_system):
    await fill(flooded, 3)
    again = make_system({**CONFIG, "approvals": {"exec": {"maxOpen": 3}}})
    await again.approvals.recover()
    assert (await fill(again, 1, first=3))[0].decision["rule"] == "approvals.too-many-open"


async def test_a_question_that_could_not_be_kept_does_not_count(flooded, clock):
    await flooded.console.set_locked(locked=True, reviewer=ALICE)
    kept = flooded.approvals
    assert await kept.ask(request_of(clock, 1)) is None
    await flooded.console.set_locked(locked=False, reviewer=ALICE)
    assert {outcome.status for outcome in await fill(flooded, 3)} == {Status.PENDING}


def request_of(clock, number):
    return replace(rehearsal(None, clock.now(), 1_000), call=asking(number))


def test_by_default_twenty_may_be_open_and_thirty_put_in_a_minute():
    assert (ExecApprovals().max_open, ExecApprovals().max_per_minute) == (20, 30)
