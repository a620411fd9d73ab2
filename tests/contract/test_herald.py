"""Notices from a commit to a channel: over a real store, with the couriers that carry them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from core.approvals import lifecycle
from core.approvals.conversation import Conversation, Switches
from core.approvals.courier import Courier
from core.approvals.elevation import unasked
from core.approvals.herald import MOST_IN_WINDOW, MOST_NEWS, WINDOW_MS, Addresses, Herald
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.service import Approvals
from core.config import NoticeSettings
from core.elevated.placement import Placed
from core.errors import StoreError
from core.model.chat import Press, Typed
from core.model.command import Placement
from core.model.decision import Decision, Effect, Layer
from core.model.elevation import Elevation, Level, Standing
from core.model.notice import NoticeKind
from core.model.principal import Sender
from core.model.request import AuditEvent, State
from core.model.session import SessionKey

CHAT = SessionKey("main", "telegram", "-100")
OPS = {"targets": [{"channel": "telegram", "to": "-900"}]}
MALLORY = Sender("telegram", "666", "Mal")
ROUTE = Route("telegram", "-100", ("telegram:111",), 120_000, "test")


class NotingChannel:
    """A chat that notes what it is told and posts."""

    name = "telegram"
    keeps_copies = True

    def __init__(self):
        self.told = []
        self.news = asyncio.Event()

    async def post(self, _card, _place, _nonce):
        return "7"

    async def update(self, _card, _place, _ref):
        pass

    async def notify(self, notice, place):
        self.told.append((place, notice))
        self.news.set()

    async def until(self, is_so):
        async with asyncio.timeout(5):
            while not is_so():
                self.news.clear()
                await self.news.wait()

    def texts(self, place, kind=None):
        return [notice.text for where, notice in self.told if where == place and kind in (None, notice.kind)]


class World:
    """The parts that notices pass through, wired as the daemon wires them."""

    def __init__(self, store, clock, settings):
        self.store, self.clock = store, clock
        self.channel = NotingChannel()
        self.ledger = Ledger(store)
        self.herald = Herald(
            store,
            clock,
            lambda: NoticeSettings.model_validate(settings),
            Addresses(
                ["telegram"], lambda _channel, to: to, lambda: {("telegram", "-100"), ("telegram", "-7")}
            ),
            ("hunter2",),
        )
        self.ledger.on_commit.append(self.herald.hear)
        self.approvals = Approvals(self.ledger, store, clock, lambda _request: (ROUTE,))
        switches = Switches(_nothing, _nothing, _nothing, None)
        self.desk = Conversation(self.approvals, store, clock, switches, self.herald.hear)
        self.courier = Courier(self.channel, store, self.desk, clock)
        self.ledger.on_commit.append(self.courier.wake)
        self.herald.on_post.append(self.courier.nudge)
        self.numbers = iter(range(1, 10_000))

    async def deny(self, request, **fields):
        denied = replace(request, id=f"{next(self.numbers):032x}", **fields)
        assert await self.ledger.commit(lifecycle.refused(denied, self.clock.now()))

    async def told(self, count):
        await self.channel.until(lambda: len(self.channel.told) >= count)

    async def quiet(self):
        """Wait until all that was heard is told, by one event that always is, in a place of its own."""
        mark = len(self.channel.texts("-900", NoticeKind.SECURITY))
        self.herald.hear(AuditEvent(self.clock.now(), f"security.mark-{next(self.numbers)}", "test"))
        await self.channel.until(lambda: len(self.channel.texts("-900", NoticeKind.SECURITY)) > mark)


async def _nothing(*_args):
    return ""


@asynccontextmanager
async def running(*works):
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def make_world(kept, clock):
    async with asyncio.timeout(30):
        stack = []

        async def make(through=None, **settings):
            world = World(through or kept, clock, settings)
            context = running(world.herald.run(), world.courier.run())
            await context.__aenter__()
            stack.append((world, context))
            return world

        yield make
        for world, context in stack:
            await context.__aexit__(None, None, None)
            await world.ledger.close()


@pytest.fixture
def in_chat(make_request):
    request = make_request()
    return replace(request, call=replace(request.call, session=CHAT))


async def test_a_denial_reaches_the_sessions_chat_and_the_targets(make_world, in_chat):
    world = await make_world(**OPS)
    await world.deny(in_chat, canonical="cat hunter2")
    await world.told(2)
    ((place, notice), (other, same)) = world.channel.told
    assert {place, other} == {"-100", "-900"}
    assert notice == same
    assert notice.kind is NoticeKind.DENIED
    assert "cat •••" in notice.text


async def test_a_kind_that_is_off_is_not_told(make_world, in_chat):
    world = await make_world(denied=False, **OPS)
    await world.deny(in_chat)
    await world.quiet()
    assert world.channel.texts("-100") == []
    assert world.channel.texts("-900", NoticeKind.DENIED) == []


async def test_without_target_and_chat_nothing_is_told(make_world, make_request):
    world = await make_world()
    await world.deny(make_request())
    world.herald.hear(AuditEvent(1, "security.outsider", "person:telegram:666"))
    await world.deny(replace(make_request(), call=replace(make_request().call, session=CHAT)), canonical="x")
    await world.told(1)
    assert [place for place, _ in world.channel.told] == ["-100"]


async def test_a_denial_that_repeats_is_told_once_a_minute(make_world, in_chat, clock):
    world = await make_world(**OPS)
    for _ in range(5):
        await world.deny(in_chat)
    await world.deny(in_chat, canonical="/usr/bin/rm -rf src")
    await world.quiet()
    assert len(world.channel.texts("-100")) == 2
    clock.advance(WINDOW_MS)
    await world.deny(in_chat)
    await world.quiet()
    assert len(world.channel.texts("-100")) == 3


async def test_what_is_too_much_is_summed_up_in_one_line(make_world, in_chat, clock):
    world = await make_world(**OPS)
    for number in range(MOST_IN_WINDOW + 12):
        await world.deny(in_chat, canonical=f"rm {number}")
    await world.quiet()
    assert len(world.channel.texts("-100")) == MOST_IN_WINDOW
    clock.advance(WINDOW_MS)
    await world.quiet()
    assert world.channel.texts("-100")[MOST_IN_WINDOW:] == ["12 more denials in the last minute"]


async def test_an_outsiders_press_and_a_foreign_button_reach_the_targets(make_world, in_chat):
    world = await make_world(**OPS)
    asked = await world.approvals.ask(in_chat)
    (copy,) = asked.copies
    await world.desk.press(Press(MALLORY, "-100", "7", "o", copy.nonce))
    await world.desk.press(Press(MALLORY, "-555", "7", "o", copy.nonce))
    await world.told(2)
    first, second = world.channel.texts("-900", NoticeKind.SECURITY)
    assert "security.outsider" in first
    assert "security.foreign-button" in second
    assert "Mal (person:telegram:666)" in first
    assert world.channel.texts("-100") == []
    assert (await world.store.request(asked.id)).state is State.WAITING


async def test_an_outsider_who_goes_on_is_told_of_once(make_world):
    world = await make_world(**OPS)
    for number in range(20):
        await world.desk.typed(Typed(MALLORY, "-100", f"/approve {number:08}", direct=False))
    await world.quiet()
    texts = world.channel.texts("-900", NoticeKind.SECURITY)
    assert sum("security.outsider" in text for text in texts) == 1


@pytest.mark.parametrize(("targets", "places"), [(OPS, {"-900"}), ({}, {"-100", "-7"})])
async def test_an_end_that_nobody_asked_for_reaches_the_targets_or_wherever_people_are_asked(
    make_world, targets, places
):
    world = await make_world(**targets)
    data = {"last": 1, "runs": [{"id": "a" * 32, "command": "ls hunter2"}], "waiting": [], "over": []}
    world.herald.hear(AuditEvent(world.clock.now(), "daemon.cut-off", "daemon", None, data))
    await world.told(len(places))
    assert {place for place, _ in world.channel.told} == places
    assert all("aaaaaaaa (ls " in notice.text for _, notice in world.channel.told)
    assert not any("hunter2" in notice.text for _, notice in world.channel.told)


def trouble(clock, kind="channel.failed", channel="slack"):
    data = {"channel": channel, "state": "down", "words": "revoked: hunter2", "since": clock.now()}
    return AuditEvent(clock.now(), kind, f"channel:{channel}", None, data)


async def test_the_trouble_of_another_channel_reaches_the_targets_once(make_world, clock):
    world = await make_world(**OPS)
    for _ in range(3):
        world.herald.hear(trouble(clock))
    await world.quiet()
    (text,) = world.channel.texts("-900", NoticeKind.CHANNEL)
    assert text.startswith("Slack does not work since ")
    assert "hunter2" not in text
    world.herald.hear(trouble(clock, "channel.recovered"))
    await world.quiet()
    assert len(world.channel.texts("-900", NoticeKind.CHANNEL)) == 2
    assert world.channel.texts("-100") == world.channel.texts("-7") == []


async def test_without_a_target_trouble_is_told_where_people_are_asked(make_world, clock):
    world = await make_world()
    world.herald.hear(trouble(clock))
    await world.told(2)
    assert sorted(place for place, _ in world.channel.told) == ["-100", "-7"]


async def test_a_channels_own_places_are_not_told_of_its_trouble(make_world, clock):
    world = await make_world(**OPS)
    world.herald.hear(trouble(clock, channel="telegram"))
    await world.quiet()
    assert {notice.kind for _, notice in world.channel.told} == {NoticeKind.SECURITY}


async def test_the_trouble_of_channels_is_not_told_where_that_is_off(make_world, clock):
    world = await make_world(channel=False, **OPS)
    world.herald.hear(trouble(clock))
    await world.quiet()
    assert {notice.kind for _, notice in world.channel.told} == {NoticeKind.SECURITY}


async def test_an_event_without_its_data_silences_nothing_that_comes_after_it(make_world, clock):
    world = await make_world(**OPS)
    world.herald.hear(AuditEvent(clock.now(), "channel.failed", "channel:slack"))
    world.herald.hear(trouble(clock))
    await world.told(1)
    assert len(world.channel.texts("-900", NoticeKind.CHANNEL)) == 1


async def test_finished_and_asked_elsewhere_are_told_where_they_are_on(make_world, in_chat):
    world = await make_world(finished=True, asked_elsewhere=True)
    elsewhere = replace(in_chat, call=replace(in_chat.call, session=SessionKey("main", "telegram", "-7")))
    await world.approvals.ask(elsewhere)
    await world.told(1)
    running_now = lifecycle.allowed(replace(in_chat, id="f" * 32), world.clock.now())
    assert await world.ledger.commit(running_now)
    assert await world.ledger.commit(lifecycle.failed(running_now.request, "no sandbox", world.clock.now()))
    await world.told(2)
    assert [(place, notice.kind) for place, notice in world.channel.told] == [
        ("-7", NoticeKind.ASKED_ELSEWHERE),
        ("-100", NoticeKind.FINISHED),
    ]


async def test_a_store_that_fails_for_a_moment_loses_no_notice_and_holds_up_no_commit(
    make_world, meddled, in_chat
):
    failures = iter([StoreError("disk full")])

    async def fail(*_messages):
        for failure in failures:
            raise failure

    meddled.before["post"] = fail
    world = await make_world(meddled, **OPS)
    await world.deny(in_chat)
    await world.told(2)
    assert next(failures, None) is None


async def test_too_much_news_at_once_raises_nothing(kept, clock, in_chat):
    world = World(kept, clock, OPS)
    for _ in range(MOST_NEWS + 5):
        world.herald.hear(lifecycle.refused(in_chat, 1))
    await world.deny(in_chat)


async def test_what_was_heard_before_the_end_is_kept_for_the_next_start(kept, clock, in_chat):
    world = World(kept, clock, OPS)
    async with running(world.herald.run()):
        await asyncio.sleep(0)
        await world.deny(in_chat)
    messages = await kept.due("telegram", clock.now(), 10)
    assert [(message.place, message.notice.kind) for message in messages] == [
        ("-100", NoticeKind.DENIED),
        ("-900", NoticeKind.DENIED),
    ]


SET = {
    "session": str(CHAT),
    "level": "full",
    "until": 1_700_000_900_000,
    "reason": "hunter2 is lost",
    "once": False,
    "breakGlass": False,
    "name": "Ann",
    "channel": "telegram",
    "place": None,
}


def level_set(**facts):
    return AuditEvent(5, "elevated.set", "person:telegram:111", None, SET | facts)


async def test_a_level_is_told_in_the_chat_of_its_session_and_to_the_targets(make_world):
    world = await make_world(**OPS)
    world.herald.hear(level_set())
    await world.told(2)
    for place in ("-100", "-900"):
        (text,) = world.channel.texts(place, NoticeKind.ELEVATED)
        assert text.startswith("Elevated full until 2023-11-14")
        assert "Ann (person:telegram:111)" in text
        assert "hunter2" not in text
    assert world.channel.texts("-7") == []


async def test_break_glass_is_told_everywhere_even_where_such_notices_are_off(make_world):
    world = await make_world(**OPS, elevated=False)
    world.herald.hear(level_set())
    world.herald.hear(level_set(breakGlass=True))
    await world.told(3)
    told = {place for place, notice in world.channel.told if "Break-glass: elevated full" in notice.text}
    assert told == {"-100", "-7", "-900"}
    assert len(world.channel.told) == 3


async def test_every_run_under_full_is_told_and_many_are_summed_up(make_world, in_chat):
    world = await make_world(**OPS)
    why = Placed(Placement.HOST, Decision(Layer.ELEVATED, Effect.ALLOW, "set by Ann", "elevated.full"))
    for number in range(MOST_IN_WINDOW + 3):
        request = replace(in_chat, id=f"{number:032x}")
        start = unasked(lifecycle.allowed(request, world.clock.now()), why)
        assert await world.ledger.commit(start)
    await world.told(2 * MOST_IN_WINDOW)
    world.clock.advance(WINDOW_MS)
    await world.quiet()
    for place in ("-100", "-900"):
        texts = world.channel.texts(place, NoticeKind.UNASKED)
        assert len([text for text in texts if "Ran on the host without asking" in text]) == MOST_IN_WINDOW
        assert texts[-1] == "3 more runs without asking in the last minute"


async def test_one_refusal_is_only_recorded_and_several_are_told_to_the_targets(make_world):
    world = await make_world(**OPS)
    who = {"name": "Mal", "place": "-100"}
    world.herald.hear(AuditEvent(5, "security.elevation-refused", "person:telegram:666", None, who))
    world.herald.hear(AuditEvent(5, "security.elevation-attempts", "person:telegram:666", None, who))
    await world.quiet()
    told = [text for text in world.channel.texts("-900") if "elevat" in text]
    assert len(told) == 1
    assert "again and again" in told[0]


async def test_the_last_word_about_a_level_is_told_however_many_there_were(make_world):
    world = await make_world(**OPS)
    for number in range(2 * MOST_IN_WINDOW):
        world.herald.hear(level_set(level="on" if number % 2 else "off", breakGlass=True))
    await world.told(6 * MOST_IN_WINDOW)
    assert "elevated on" in world.channel.texts("-900", NoticeKind.ELEVATED)[-1]


async def test_a_level_is_not_told_twice_in_the_chat_where_it_was_set_and_runs_are(make_world, in_chat):
    world = await make_world()
    world.herald.hear(level_set(place="-7"))
    await world.told(1)
    assert [place for place, _ in world.channel.told] == ["-100"]
    kept = Elevation("e", str(CHAT), Level.FULL, Sender("telegram", "1"), 1, place="-7")
    allowed = Decision(Layer.ELEVATED, Effect.ALLOW, "set by Ann", "elevated.full")
    placed = Placed(Placement.HOST, allowed, standing=Standing(Level.FULL, "", kept))
    start = unasked(lifecycle.allowed(in_chat, world.clock.now()), placed)
    assert await world.ledger.commit(start)
    await world.told(3)
    runs = {place for place, notice in world.channel.told if notice.kind is NoticeKind.UNASKED}
    assert runs == {"-100", "-7"}


async def test_runs_under_full_are_told_also_where_nobody_named_a_place_for_notices(make_world, in_chat):
    world = await make_world()
    elsewhere = replace(in_chat, call=replace(in_chat.call, session=SessionKey.main("main")))
    placed = Placed(Placement.HOST, Decision(Layer.ELEVATED, Effect.ALLOW, "set by Ann", "elevated.full"))
    assert await world.ledger.commit(unasked(lifecycle.allowed(elsewhere, world.clock.now()), placed))
    await world.told(2)
    assert {place for place, _ in world.channel.told} == {"-100", "-7"}


async def test_a_level_set_at_the_terminal_is_told_elsewhere_alone(make_world):
    world = await make_world()
    world.herald.hear(level_set(session="agent:main:main", channel="terminal", place=""))
    await world.told(2)
    assert {place for place, _ in world.channel.told} == {"-100", "-7"}
