"""Bad input at the desk where answers arrive: each has its own words, and changes nothing."""

from __future__ import annotations

import json

import pytest

from adapters.stores.sqlite import open_store
from core.approvals import commands
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.service import Approvals
from core.model.allowlist import AlwaysOffer
from core.model.principal import Reviewer
from core.model.request import Answer, Review, State
from tests.core_system import exec_call
from tests.keeper import deadlines_pass

HOUR = 3_600_000
ALICE, BOB = Reviewer("web", "operator", "operator"), Reviewer("cli", "0", "root")


@pytest.fixture
async def desk(tmp_path, clock):
    async with open_store(tmp_path / "sayso.db") as store:
        approvals = Approvals(
            Ledger(store), store, clock, lambda _request: (Route("web", "", (), 120_000, "test"),)
        )
        approvals.store = store
        yield approvals


async def test_a_decision_that_is_not_offered(desk, make_request):
    request = await desk.ask(make_request(always=AlwaysOffer(why="sudo is never remembered")))
    refused = await desk.review(Review(request.id, Answer.ALLOW_ALWAYS, ALICE))
    assert (refused.accepted, refused.text) == (
        False,
        "Always is not offered here: sudo is never remembered.",
    )
    assert (await desk.store.request(request.id)).reviews == ()


async def test_a_second_different_answer(desk, make_request):
    request = await desk.ask(make_request())
    await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    second = await desk.review(Review(request.id, Answer.DENY, BOB))
    assert (second.accepted, second.text) == (False, "Too late: Allowed once by operator (web:operator).")
    kept = await desk.store.request(request.id)
    assert [given.answer for given in kept.reviews] == [Answer.ALLOW_ONCE]


async def test_a_clock_that_goes_back_an_hour_keeps_no_question_open_longer(desk, make_request, clock):
    request = await desk.ask(make_request())
    clock.wall -= HOUR
    clock.advance(119_999)
    await deadlines_pass(desk)
    assert (await desk.store.request(request.id)).state is State.WAITING
    clock.advance(1)
    late = await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    assert not late.accepted
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_a_clock_that_goes_back_an_hour_ends_a_question_that_nobody_answers(desk, make_request, clock):
    request = await desk.ask(make_request())
    clock.wall -= HOUR
    clock.advance(120_000)
    await deadlines_pass(desk)
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_a_clock_that_goes_back_an_hour_keeps_no_yes_alive_longer(desk, make_request, clock):
    request = await desk.ask(make_request())
    await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    clock.wall -= HOUR
    clock.advance(120_000)
    await deadlines_pass(desk)
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_a_clock_that_went_back_while_the_daemon_was_down_adds_at_most_one_window(
    desk, make_request, clock
):
    request = await desk.ask(make_request())
    clock.wall -= HOUR
    again = Approvals(Ledger(desk.store), desk.store, clock, desk.routes)
    await again.recover()
    clock.advance(120_000)
    await deadlines_pass(again)
    assert (await desk.store.request(request.id)).state is State.EXPIRED


async def test_a_clock_that_goes_forward_an_hour_ends_a_question_as_the_card_said(desk, make_request, clock):
    request = await desk.ask(make_request())
    clock.wall += HOUR
    assert not (await desk.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))).accepted
    assert (await desk.store.request(request.id)).state is State.EXPIRED


@pytest.mark.parametrize(
    "review",
    [
        Review("1" * 36, Answer.ALLOW_ONCE, ALICE),
        Review("", Answer.ALLOW_ONCE, ALICE),
        Review("\udc80", Answer.ALLOW_ONCE, ALICE),
        Review("'; --", Answer.DENY, ALICE),
    ],
)
async def test_an_unknown_id(desk, make_request, review):
    request = await desk.ask(make_request())
    answer = await desk.review(review)
    assert (answer.accepted, answer.text) == (False, "No request with this id is kept here.")
    assert (await desk.store.request(request.id)).state is State.WAITING


async def test_a_withdrawal_by_another_agent_changes_nothing(system):
    from core.errors import UnknownRequest  # noqa: PLC0415 - of this test alone

    asked = await system.gate.ask(exec_call("ls", "-l"), None)
    with pytest.raises(UnknownRequest):
        await system.gate.withdraw("other", asked.request_id)
    assert (await system.store.request(asked.request_id)).state is State.WAITING


def test_the_longest_reason_that_a_line_of_the_socket_can_hold_becomes_one_short_line():
    from adapters.ingress import params  # noqa: PLC0415 - of this test alone
    from adapters.ingress.jsonrpc import RpcError  # noqa: PLC0415 - as above

    long = {"id": "12345678", "decision": "deny", "reason": "no " * 300_000}
    assert len(json.dumps(long)) < 2**20
    with pytest.raises(RpcError, match="reason"):
        params.read(params.Resolve, long)
    fits = params.read(params.Resolve, {**long, "reason": "no\n" * 600})
    reason = fits.review(ALICE).reason
    assert len(reason) < 600
    assert "\n" not in reason


def test_a_reason_of_ten_megabytes_in_a_chat_becomes_one_short_line():
    command = commands.parse("/deny 12345678 " + "because\n" * 1_300_000)
    assert isinstance(command, commands.Deny)
    assert len(command.reason) < 600
    assert "\n" not in command.reason
