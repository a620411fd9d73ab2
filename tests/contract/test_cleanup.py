"""Copies in chats after a request is settled: edited, or deleted where that is configured."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.approvals import lifecycle
from core.approvals.cleanup import as_is, cleaned_up
from core.approvals.courier import Courier
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.service import Approvals
from core.errors import DeliveryError, DeliveryRefused, DeliveryUnclear
from core.model.plan import RunResult, RunStatus
from core.model.principal import Reviewer
from core.model.request import Answer, Copy, MessageKind, OutboxMessage, Review, State

ALICE = Reviewer("telegram", "111", "Alice")
ROUTES = tuple(Route(channel, "", (), 120_000, "test") for channel in ("telegram", "web", "terminal"))
DONE = RunResult(RunStatus.FINISHED, 0, "", "", 0, 0, 5)


def kinds(change):
    return {message.channel: message.kind for message in cleaned_up(change).messages}


class TestWhatIsRemoved:
    @pytest.fixture
    def waiting(self, make_request):
        return replace(make_request(), copies=tuple(Copy(route.channel) for route in ROUTES))

    def test_a_settled_request_goes_from_chats_and_stays_on_the_page_and_in_the_terminal(self, waiting):
        review = Review(waiting.id, Answer.DENY, ALICE)
        running = replace(waiting, state=State.RUNNING)
        for change in (
            lifecycle.reviewed(waiting, review, 5),
            lifecycle.expired(waiting, 5),
            lifecycle.withdrawn(waiting, 5),
            lifecycle.finished(running, DONE, 5),
            lifecycle.interrupted(running, "the daemon ended", 5),
        ):
            assert kinds(change) == {
                "telegram": MessageKind.REMOVE,
                "web": MessageKind.UPDATE,
                "terminal": MessageKind.UPDATE,
            }

    def test_what_is_not_settled_stays_everywhere(self, waiting):
        approved = lifecycle.reviewed(waiting, Review(waiting.id, Answer.ALLOW_ONCE, ALICE), 5)
        assert set(kinds(approved).values()) == {MessageKind.UPDATE}
        assert set(kinds(lifecycle.asked(waiting, 5)).values()) == {MessageKind.POST}

    def test_nothing_but_the_messages_changes(self, waiting):
        change = lifecycle.expired(waiting, 5)
        assert replace(cleaned_up(change), messages=change.messages) == change

    def test_without_the_setting_nothing_is_removed(self, waiting):
        change = lifecycle.expired(waiting, 5)
        assert as_is(change) == change


class Chat:
    """A chat that notes what is done to its messages, and fails as it is told to."""

    name = "telegram"
    keeps_copies = True

    def __init__(self):
        self.done = []
        self.faults = []
        self.news = asyncio.Event()

    async def post(self, card, _place, _nonce):
        self._note("post", card.state)
        return "7"

    async def update(self, card, _place, ref, _nonce):
        self._note("update", card.state, ref)

    async def remove(self, _place, ref):
        if self.faults:
            raise self.faults.pop()
        self._note("remove", ref)

    async def until(self, count):
        async with asyncio.timeout(5):
            while len(self.done) < count:
                self.news.clear()
                await self.news.wait()

    def _note(self, *what):
        self.done.append(what)
        self.news.set()


class World:
    def __init__(self, store, clock, shape):
        self.store, self.clock, self.chat = store, clock, Chat()
        self.ledger = Ledger(store, shape)
        self.approvals = Approvals(self.ledger, store, clock, lambda _request: ROUTES[:1])
        self.courier = Courier(self.chat, store, self.approvals, clock)
        self.ledger.on_commit.append(self.courier.wake)

    async def ask_and_deny(self, request):
        asked = await self.approvals.ask(request)
        await self.chat.until(1)
        await self.approvals.review(Review(asked.id, Answer.DENY, ALICE))
        return asked


@pytest.fixture
async def make_world(kept, clock):
    couriers = []

    def make(shape=cleaned_up):
        world = World(kept, clock, shape)
        couriers.append(asyncio.create_task(world.courier.run()))
        return world

    yield make
    for courier in couriers:
        courier.cancel()
    await asyncio.gather(*couriers, return_exceptions=True)


async def test_a_denied_question_is_deleted_in_its_chat(make_world, make_request):
    world = make_world()
    await world.ask_and_deny(make_request())
    await world.chat.until(2)
    assert world.chat.done == [("post", State.WAITING), ("remove", "7")]


async def test_it_is_edited_where_nothing_else_is_configured(make_world, make_request):
    world = make_world(as_is)
    await world.ask_and_deny(make_request())
    await world.chat.until(2)
    assert world.chat.done == [("post", State.WAITING), ("update", State.DENIED, "7")]


async def test_what_cannot_be_deleted_any_more_is_edited(make_world, make_request):
    world = make_world()
    world.chat.faults = [DeliveryRefused("message can't be deleted")]
    await world.ask_and_deny(make_request())
    await world.chat.until(2)
    assert world.chat.done[1:] == [("update", State.DENIED, "7")]


@pytest.mark.parametrize("fault", [DeliveryError("no network"), DeliveryUnclear("no answer")])
async def test_a_deletion_that_failed_is_tried_again(make_world, make_request, clock, fault):
    world = make_world()
    world.chat.faults = [fault]
    await world.ask_and_deny(make_request())
    async with asyncio.timeout(5):
        while len(world.chat.done) < 2:
            clock.advance(1_000)
            world.courier.nudge()
            await asyncio.sleep(0.005)
    assert world.chat.faults == []
    assert world.chat.done[1:] == [("remove", "7")]


async def test_a_removal_takes_the_place_of_an_update_that_was_not_delivered(kept, clock, make_request):
    world = World(kept, clock, cleaned_up)
    asked = await world.approvals.ask(make_request())
    (post,) = await kept.due("telegram", clock.now(), 9)
    await kept.delivered(post, "7")
    await world.approvals.review(Review(asked.id, Answer.ALLOW_ONCE, ALICE))
    approved = await kept.request(asked.id)
    await world.ledger.commit(lifecycle.expired(approved, clock.now()))
    (removal,) = await kept.due("telegram", clock.now(), 9)
    assert removal.kind is MessageKind.REMOVE
    await kept.delivered(removal, None)
    assert await kept.due("telegram", clock.now(), 9) == ()


async def test_a_removal_waits_for_the_post_it_is_about(kept, clock, make_request):
    world = World(kept, clock, cleaned_up)
    asked = await world.approvals.ask(make_request())
    await kept.post(OutboxMessage("telegram", MessageKind.REMOVE, asked.id, clock.now()))
    (first,) = await kept.due("telegram", clock.now(), 9)
    assert first.kind is MessageKind.POST
