"""Chats are reminded once of what is still open, through the outbox, and never of what is settled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.stores.sqlite import open_store
from core.approvals.courier import Courier
from core.approvals.ledger import Ledger
from core.approvals.quorum import People
from core.approvals.routes import Route
from core.approvals.rules import Rules
from core.approvals.service import Approvals
from core.model.notice import NoticeKind
from core.model.principal import Reviewer
from core.model.request import Answer, Review

ALICE = Reviewer("telegram", "111", "Alice")
ROUTES = (
    Route("web", "", (), 120_000, "test"),
    Route("telegram", "-100", ("id:111",), 120_000, "test"),
    Route("telegram", "-200", ("id:111",), 120_000, "test"),
)


class Chat:
    """Notes what it is told."""

    keeps_copies = True

    def __init__(self, name="telegram"):
        self.name, self.told = name, []

    async def post(self, _card, place, _nonce):
        return f"message in {place}"

    async def update(self, *_args):
        return None

    async def notify(self, notice, place):
        self.told.append((notice, place))


class World:
    def __init__(self, store, clock, rules=None, chat=None):
        self.store, self.clock, self.chat = store, clock, chat or Chat()
        self.approvals = Approvals(
            Ledger(store), store, clock, lambda _request: ROUTES, (), lambda: rules or Rules()
        )
        self.courier = Courier(self.chat, store, self.approvals, clock)

    async def deliver(self):
        while batch := await self.store.due(self.chat.name, self.clock.now(), 50):
            for message in batch:
                await self.courier._deliver(message)


@pytest.fixture
async def store(tmp_path):
    async with open_store(tmp_path / "sayso.db") as opened:
        yield opened


async def test_each_chat_is_reminded_once_half_a_minute_before_the_end(store, clock, make_request):
    world = World(store, clock)
    request = await world.approvals.ask(make_request())
    await world.deliver()
    clock.advance(89_999)
    await world.deliver()
    assert world.chat.told == []
    clock.advance(1)
    await world.deliver()
    await world.deliver()
    assert [place for _, place in world.chat.told] == ["-100", "-200"]
    notice = world.chat.told[0][0]
    assert notice.kind is NoticeKind.REMINDER
    assert notice.request_id == request.id
    assert "30 s left" in notice.text
    assert "/usr/bin/rm -rf build" in notice.text
    clock.advance(29_000)
    await world.deliver()
    assert len(world.chat.told) == 2


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.DENY])
async def test_what_is_settled_is_not_reminded_of(store, clock, make_request, answer):
    world = World(store, clock)
    request = await world.approvals.ask(make_request())
    await world.deliver()
    await world.approvals.review(Review(request.id, answer, ALICE))
    clock.advance(100_000)
    await world.deliver()
    assert world.chat.told == []
    assert await store.next_due("telegram") is None


async def test_what_is_past_its_deadline_is_not_reminded_of(store, clock, make_request):
    world = World(store, clock)
    await world.approvals.ask(make_request())
    await world.deliver()
    clock.advance(120_000)
    await world.deliver()
    assert world.chat.told == []


async def test_a_reminder_waits_for_no_other_message_and_no_other_waits_for_it(store, clock, make_request):
    world = World(
        store, clock, Rules(People.named({"A": ("telegram:111",), "B": ("telegram:2",)}), required=2)
    )
    request = await world.approvals.ask(make_request())
    await world.deliver()
    await world.approvals.review(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    assert [m.kind.value for m in await store.due("telegram", clock.now(), 9)] == ["update", "update"]
    await world.deliver()
    clock.advance(90_000)
    await world.deliver()
    assert "1 of 2: A (telegram:111) allowed once" in world.chat.told[0][0].text


async def test_a_reminder_outlives_a_restart_and_still_comes_once(tmp_path, clock, make_request):
    chat = Chat()
    async with open_store(tmp_path / "kept.db") as store:
        world = World(store, clock, chat=chat)
        await world.approvals.ask(make_request())
        await world.deliver()
    clock.advance(95_000)
    for _ in range(2):
        async with open_store(tmp_path / "kept.db") as store:
            world = World(store, clock, chat=chat)
            await world.approvals.recover()
            await world.deliver()
    assert [place for _, place in chat.told] == ["-100", "-200"]


async def test_the_page_is_not_reminded(store, clock, make_request):
    world = World(store, clock, chat=Chat("web"))
    await world.approvals.ask(make_request())
    clock.advance(95_000)
    await world.deliver()
    assert world.chat.told == []


@pytest.mark.parametrize(
    ("setting", "window", "after"),
    [
        (None, 120_000, 90_000),
        (None, 40_000, 20_000),
        (None, 20_000, 10_000),
        (None, 19_999, None),
        (None, 3_600_000, 3_570_000),
        (0, 120_000, None),
        (60_000, 120_000, 60_000),
        (120_000, 120_000, None),
    ],
)
def test_when_people_are_reminded(setting, window, after):
    at = Rules(remind_ms=setting).remind_at(1_000, 1_000 + window)
    assert at == (None if after is None else 1_000 + after)


async def test_never_means_never(store, clock, make_request):
    world = World(store, clock, Rules(remind_ms=0))
    await world.approvals.ask(make_request())
    await world.deliver()
    assert await store.next_due("telegram") is None


async def test_a_card_that_hides_a_secret_hides_it_in_the_reminder(store, clock, make_request):
    world = World(store, clock)
    world.approvals._masked = ("s3cret-token",)
    await world.approvals.ask(replace(make_request(), canonical="/usr/bin/curl s3cret-token"))
    await world.deliver()
    clock.advance(90_000)
    await world.deliver()
    assert "s3cret" not in world.chat.told[0][0].text
