"""Deadlines hold whatever the clocks do, and over restarts."""

from __future__ import annotations

import pytest

from adapters.stores.sqlite import open_store
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.service import Approvals
from core.model.principal import Reviewer
from core.model.request import Answer, Review, State
from tests.keeper import deadlines_pass

HOUR, DAY = 3_600_000, 86_400_000
ANN = Reviewer("web", "ann", "Ann")


@pytest.fixture
async def kept(tmp_path):
    async with open_store(tmp_path / "sayso.db") as opened:
        yield opened


@pytest.fixture
def desk(kept, clock):
    return approvals(kept, clock)


def approvals(store, clock):
    return Approvals(Ledger(store), store, clock, lambda _request: (Route("web", "", (), 120_000, "test"),))


async def state_after_a_look(desk, store, request_id):
    """Let the deadlines be looked at once, and tell the state."""
    await deadlines_pass(desk)
    return (await store.request(request_id)).state


def jump(clock, ms):
    """Put the wall clock elsewhere; the steady one goes on."""
    clock.wall += ms


async def test_a_wall_clock_put_back_an_hour_lets_nothing_wait_longer(desk, kept, make_request, clock):
    asked = await desk.ask(make_request())
    jump(clock, -HOUR)
    clock.advance(119_999)
    assert await state_after_a_look(desk, kept, asked.id) is State.WAITING
    clock.advance(1)
    assert await state_after_a_look(desk, kept, asked.id) is State.EXPIRED


async def test_a_late_answer_is_late_although_the_wall_clock_was_put_back(desk, kept, make_request, clock):
    asked = await desk.ask(make_request())
    jump(clock, -HOUR)
    clock.advance(120_000)
    answer = await desk.review(Review(asked.id, Answer.ALLOW_ONCE, ANN))
    assert not answer.accepted
    assert (await kept.request(asked.id)).state is State.EXPIRED


async def test_an_answer_in_time_counts_although_the_wall_clock_was_put_back(desk, make_request, clock):
    asked = await desk.ask(make_request())
    jump(clock, -HOUR)
    clock.advance(60_000)
    assert (await desk.review(Review(asked.id, Answer.ALLOW_ONCE, ANN))).accepted


async def test_a_yes_nobody_comes_for_ends_in_time_although_the_wall_clock_was_put_back(
    desk, kept, make_request, clock
):
    asked = await desk.ask(make_request())
    jump(clock, -HOUR)
    clock.advance(60_000)
    await desk.review(Review(asked.id, Answer.ALLOW_ONCE, ANN))
    clock.advance(59_999)
    assert await state_after_a_look(desk, kept, asked.id) is State.APPROVED
    clock.advance(1)
    assert await state_after_a_look(desk, kept, asked.id) is State.EXPIRED


async def test_a_wall_clock_put_forward_a_day_ends_what_waits(desk, kept, make_request, clock):
    asked = await desk.ask(make_request())
    jump(clock, DAY)
    assert await state_after_a_look(desk, kept, asked.id) is State.EXPIRED


async def test_a_wall_clock_put_forward_and_back_changes_nothing(desk, kept, make_request, clock):
    asked = await desk.ask(make_request())
    jump(clock, DAY)
    jump(clock, -DAY)
    assert await state_after_a_look(desk, kept, asked.id) is State.WAITING


@pytest.mark.parametrize(("away", "state"), [(119_999, State.WAITING), (120_000, State.EXPIRED)])
async def test_the_time_a_daemon_was_away_counts(desk, kept, make_request, clock, away, state):
    asked = await desk.ask(make_request())
    clock.wall += away
    clock.steady = 3.0  # the machine was started anew
    again = approvals(kept, clock)
    await again.recover()
    assert await state_after_a_look(again, kept, asked.id) is state


async def test_after_a_restart_with_a_wall_clock_put_back_the_window_is_not_longer_than_it_was(
    desk, kept, make_request, clock
):
    asked = await desk.ask(make_request())
    jump(clock, -HOUR)
    again = approvals(kept, clock)
    await again.recover()
    clock.advance(119_999)
    assert await state_after_a_look(again, kept, asked.id) is State.WAITING
    clock.advance(1)
    assert await state_after_a_look(again, kept, asked.id) is State.EXPIRED
