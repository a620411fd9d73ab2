"""What every ReviewDesk promises, and the ReviewAnswer it gives, over the core and a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adapters.stores.sqlite import open_store
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.service import Approvals
from core.model.allowlist import AlwaysOffer
from core.model.principal import Reviewer
from core.model.request import Answer, Review, State
from tests.keeper import deadlines_pass

ALICE = Reviewer("web", "alice", "Alice")
BOB = Reviewer("terminal", "1000", "bob")


@pytest.fixture
async def desk(tmp_path, clock):
    async with open_store(tmp_path / "sayso.db") as store:
        approvals = Approvals(
            Ledger(store), store, clock, lambda _request: (Route("web", "", (), 120_000, "test"),)
        )
        approvals.store = store
        yield approvals


async def test_the_first_answer_wins_and_the_second_is_told_what_stands(desk, make_request):
    request = await desk.ask(make_request())
    first = await desk.review(Review(request.id, Answer.DENY, ALICE, "not today"))
    second = await desk.review(Review(request.id, Answer.ALLOW_ONCE, BOB))
    assert first.accepted
    assert not second.accepted
    assert "Denied by Alice" in second.text
    assert "not today" in second.text
    assert (await desk.store.request(request.id)).state is State.DENIED


async def test_a_hundred_answers_at_once_settle_a_question_once(desk, make_request):
    request = await desk.ask(make_request())
    answers = [Answer.ALLOW_ONCE, Answer.DENY] * 50
    reviews = [
        desk.review(Review(request.id, a, Reviewer("web", str(i), f"p{i}"))) for i, a in enumerate(answers)
    ]
    accepted = [reviewed for reviewed in await asyncio.gather(*reviews) if reviewed.accepted]
    assert len(accepted) == 1


async def test_an_unknown_id_is_answered_in_words(desk):
    reviewed = await desk.review(Review("nothing", Answer.ALLOW_ONCE, ALICE))
    assert not reviewed.accepted
    assert "No request" in reviewed.text


async def test_always_is_refused_where_it_was_not_offered(desk, make_request):
    request = await desk.ask(make_request(always=AlwaysOffer(why="sudo is never remembered")))
    reviewed = await desk.review(Review(request.id, Answer.ALLOW_ALWAYS, ALICE))
    assert not reviewed.accepted
    assert "sudo is never remembered" in reviewed.text
    assert (await desk.store.request(request.id)).state is State.WAITING


async def test_always_saves_exactly_what_was_offered(desk, make_request):
    request = await desk.ask(make_request())
    assert (await desk.review(Review(request.id, Answer.ALLOW_ALWAYS, ALICE))).accepted
    learned = await desk.store.learned("main")
    assert learned == request.always.entries
    assert [(entry.pattern, entry.args, entry.directory.path) for entry in learned] == [
        ("/usr/bin/rm", ("-rf", "build"), "/srv/project")
    ]


async def test_once_saves_nothing(desk, make_request):
    request = await desk.ask(make_request())
    assert (await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))).accepted
    assert await desk.store.learned("main") == ()


async def test_an_answer_at_or_after_the_deadline_is_too_late(desk, make_request, clock):
    request = await desk.ask(make_request())
    clock.advance(120_000)
    reviewed = await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    assert not reviewed.accepted
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_an_answer_just_before_the_deadline_counts(desk, make_request, clock):
    request = await desk.ask(make_request())
    clock.advance(119_999)
    assert (await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))).accepted


async def test_a_question_nobody_answers_expires_at_its_deadline(desk, make_request, clock):
    request = await desk.ask(make_request())
    clock.advance(119_000)
    await deadlines_pass(desk)
    assert (await desk.store.request(request.id)).state is State.WAITING
    clock.advance(1_000)
    await deadlines_pass(desk)
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_a_yes_nobody_comes_for_expires_too(desk, make_request, clock):
    request = await desk.ask(make_request())
    await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    clock.advance(120_000)
    await deadlines_pass(desk)
    expired = await desk.store.request(request.id)
    assert expired.state is State.EXPIRED
    assert "did not run" in (await desk.card(request.id)).decided


async def test_the_fallback_approves_only_where_it_says_so(desk, make_request, clock):
    async def yes(request):
        return request.canonical.startswith("/usr/bin/rm")

    rm = await desk.ask(make_request())
    ls = make_request("22222222-aaaa-4aaa-8aaa-000000000002", canonical="/usr/bin/ls")
    ls = await desk.ask(_other_binding(ls))
    clock.advance(120_000)
    await deadlines_pass(desk, yes)
    assert (await desk.store.request(rm.id)).state is State.APPROVED
    assert (await desk.store.request(ls.id)).state is State.EXPIRED


async def test_an_identical_question_joins_the_one_that_waits_and_a_no_for_fifteen_seconds(
    desk, make_request, clock
):
    first = await desk.ask(make_request())
    second = await desk.ask(make_request("22222222-aaaa-4aaa-8aaa-000000000002"))
    assert second.id == first.id
    await desk.review(Review(first.id, Answer.DENY, ALICE))
    clock.advance(14_999)
    third = await desk.ask(make_request("33333333-aaaa-4aaa-8aaa-000000000003"))
    assert (third.id, third.state) == (first.id, State.DENIED)
    clock.advance(1)
    fourth = await desk.ask(make_request("44444444-aaaa-4aaa-8aaa-000000000004"))
    assert (fourth.id, fourth.state) == ("44444444-aaaa-4aaa-8aaa-000000000004", State.WAITING)


async def test_a_yes_is_never_shared_with_a_question_that_comes_after_it(desk, make_request):
    first = await desk.ask(make_request())
    await desk.review(Review(first.id, Answer.ALLOW_ONCE, ALICE))
    again = await desk.ask(make_request("22222222-aaaa-4aaa-8aaa-000000000002"))
    assert (again.id != first.id, again.state) == (True, State.WAITING)


async def test_a_question_that_was_taken_back_is_put_again_at_once(desk, make_request):
    first = await desk.ask(make_request())
    assert await desk.withdraw(first)
    again = await desk.ask(make_request("22222222-aaaa-4aaa-8aaa-000000000002"))
    assert again.state is State.WAITING


async def test_a_hundred_identical_questions_at_once_become_one(desk, make_request):
    names = [f"{number:08x}-aaaa-4aaa-8aaa-000000000000" for number in range(100)]
    asked = await asyncio.gather(*(desk.ask(make_request(name)) for name in names))
    assert len({request.id for request in asked}) == 1
    assert len(await desk.store.in_states(State.WAITING)) == 1


async def test_a_question_with_another_binding_does_not_join(desk, make_request):
    first = await desk.ask(make_request())
    other = await desk.ask(_other_binding(make_request("22222222-aaaa-4aaa-8aaa-000000000002")))
    assert other.id != first.id


async def test_open_questions_are_taken_up_again_after_a_restart(desk, make_request, clock):
    request = await desk.ask(make_request())
    again = Approvals(
        Ledger(desk.store), desk.store, clock, lambda _request: (Route("web", "", (), 120_000, "test"),)
    )
    again.store = desk.store
    await again.recover()
    assert (await again.ask(make_request("22222222-aaaa-4aaa-8aaa-000000000002"))).id == request.id
    clock.advance(120_000)
    await deadlines_pass(again)
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_cards_that_wait_are_listed_oldest_first_and_decided_ones_newest_first(
    desk, make_request, clock
):
    first = await desk.ask(make_request())
    clock.advance(10)
    second = make_request("22222222-aaaa-4aaa-8aaa-000000000002")
    second = await desk.ask(_other_binding(second))
    assert [card.request_id for card in await desk.waiting()] == [first.id, second.id]
    await desk.review(Review(first.id, Answer.DENY, ALICE))
    clock.advance(10)
    await desk.review(Review(second.id, Answer.DENY, ALICE))
    assert await desk.waiting() == ()
    assert [card.request_id for card in await desk.decided(10)] == [second.id, first.id]


def _other_binding(request):
    return replace(request, binding=replace(request.binding, digest="d" * 64))
