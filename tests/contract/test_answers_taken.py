"""Near misses of what an answer may do, and of what time may end; beside each the hit that is taken."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adapters.stores.sqlite import open_store
from core.approvals.ledger import Ledger
from core.approvals.quorum import People
from core.approvals.routes import Route
from core.approvals.rules import Rules
from core.approvals.service import MOST_REVIEWS, Approvals
from core.approvals.terms import Terms
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.principal import Reviewer, Sender
from core.model.request import Answer, Review, State
from core.model.session import SessionKey
from tests.core_system import exec_call

ANN = Sender("telegram", "111", "Ann")
BEA = Sender("telegram", "222", "Bea")
MINUTE = 60_000
OFFER = AlwaysOffer((AllowlistEntry("/usr/bin/ls"),), ("any `ls` command",))


async def no(_request):
    return False


class Desk:
    """Approvals whose routes and rules a test may change."""

    def __init__(self, store, clock):
        self.store, self.clock, self.rules = store, clock, Rules()
        self.routes = (Route("telegram", "-100", ("id:111", "id:222"), 120_000, "test"),)
        self.approvals = Approvals(
            Ledger(store), store, clock, lambda _request: self.routes, (), lambda: self.rules
        )

    async def says(self, request, who, answer=Answer.ALLOW_ONCE, **fields):
        fields = {"sender": who, **fields}
        reviewer = Reviewer(who.channel, who.id, who.name)
        return await self.approvals.review(Review(request.id, answer, reviewer, **fields))

    async def state(self, request):
        return (await self.store.request(request.id)).state


@pytest.fixture
async def desk(tmp_path, clock):
    async with open_store(tmp_path / "sayso.db") as store:
        yield Desk(store, clock)


async def test_who_may_not_decide_any_more_decides_nothing(desk, make_request):
    request = await desk.approvals.ask(make_request())
    desk.routes = (replace(desk.routes[0], approvers=("id:111",)),)
    for answer in (Answer.ALLOW_ONCE, Answer.DENY):
        refused = await desk.says(request, BEA, answer)
        assert not refused.accepted
        assert "not among the people who may decide here any more" in refused.text
    assert await desk.state(request) is State.WAITING
    assert (await desk.says(request, ANN)).accepted


async def test_a_place_that_is_none_any_more_has_the_general_terms_and_not_none(desk, make_request):
    desk.rules = Rules(terms=Terms(15 * MINUTE, allow_always=False))
    request = await desk.approvals.ask(replace(make_request(), always=OFFER, obligations=frozenset()))
    gone = {"sender": None, "places": ("-999",)}
    always = await desk.says(request, ANN, Answer.ALLOW_ALWAYS, **gone)
    assert (always.accepted, "allowAlways is false" in always.text) == (False, True)
    assert not (await desk.says(request, ANN, Answer.ALLOW_FOR, for_ms=60 * MINUTE, **gone)).accepted
    assert (await desk.says(request, ANN, Answer.ALLOW_FOR, for_ms=15 * MINUTE, **gone)).accepted


async def test_the_answers_to_one_question_have_an_end_and_a_no_does_not(desk, make_request):
    people = People.named({"Ann": ("telegram:111",), "Bea": ("telegram:222",)})
    desk.rules = Rules(people, required=2)
    request = await desk.approvals.ask(replace(make_request(), obligations=frozenset()))
    both = (Answer.ALLOW_ONCE, {}), (Answer.ALLOW_FOR, {"for_ms": MINUTE})
    for number in range(MOST_REVIEWS):
        answer, fields = both[number % 2]
        assert (await desk.says(request, ANN, answer, **fields)).accepted
    assert not (await desk.says(request, ANN)).accepted
    assert not (await desk.says(request, BEA)).accepted
    assert await desk.state(request) is State.WAITING
    assert (await desk.says(request, BEA, Answer.DENY)).accepted
    assert await desk.state(request) is State.DENIED


async def test_a_yes_given_just_before_the_deadline_is_not_ended_by_that_deadline(desk, make_request):
    request = await desk.approvals.ask(make_request())
    desk.clock.advance(119_999)
    assert (await desk.says(request, ANN)).accepted
    desk.clock.advance(2)
    await desk.approvals._end_in_time(request.id, no)
    assert await desk.state(request) is State.APPROVED
    desk.clock.advance(5_000)
    await desk.approvals._end_in_time(request.id, no)
    assert await desk.state(request) is State.EXPIRED


async def test_what_was_settled_as_its_deadline_came_stays_as_it_was_settled(desk, make_request):
    request = await desk.approvals.ask(make_request())
    assert (await desk.says(request, ANN, Answer.DENY)).accepted
    desk.clock.advance(121_000)
    await desk.approvals._end_in_time(request.id, no)
    assert await desk.state(request) is State.DENIED


async def test_the_end_of_one_session_ends_the_questions_of_that_one_alone(system):
    tasks = []
    for name in ("one", "two"):
        call = exec_call("ls", session=SessionKey("main", "cli", name))
        task, observer = system.asking(call)
        await asyncio.wait_for(observer.asked.wait(), 5)
        tasks.append(task)
    assert await system.approvals.end_session("agent:main:cli:one", "it ended") == 1
    (left,) = await system.console.pending()
    assert left["session"] == "agent:main:cli:two"
    await system.gate.withdraw("main", left["id"])
    await asyncio.gather(*tasks)


async def test_a_test_question_needs_one_person_and_leaves_no_rule_behind(system):
    system.required = lambda _request: 2
    told = await system.console.test_channels("web")
    ann = Reviewer("web", "operator", "Ann")
    always = await system.approvals.review(Review(told["id"], Answer.DENY_ALWAYS, ann))
    assert (always.accepted, "leaves nothing behind" in always.text) == (False, True)
    assert (await system.approvals.review(Review(told["id"], Answer.ALLOW_ONCE, ann))).accepted
    assert (await system.store.request(told["id"])).state is State.USED
