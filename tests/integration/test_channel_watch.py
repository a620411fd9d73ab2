"""The watch over channels: a real record and a real Telegram channel, and a clock that tests turn."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channels.telegram.adapter import TelegramChannel
from bot.health import ChannelHealth
from bot.outages import PATIENCE_S, STEADY_S
from bot.watch import Watch
from core.config import TelegramSettings
from core.errors import StoreError
from tests.platforms.telegram import faults

pytest_plugins = ("tests.platforms.telegram.plugin",)


class NobodyAsks:
    """A ChatDesk to which nobody brings anything."""

    async def press(self, press):
        raise AssertionError(press)

    async def typed(self, _typed):
        return None


@pytest.fixture
def health():
    return ChannelHealth()


@pytest.fixture
def heard():
    return []


@pytest.fixture
def watch(health, kept, heard, clock):
    return Watch(health.rows, kept, heard.append, clock)


@pytest.fixture
async def telegram(telegram_api, health, clock):
    settings = TelegramSettings(token=telegram_api.token)
    channel = TelegramChannel(settings, clock, base_url=telegram_api.base_url)
    await channel.open(NobodyAsks())
    await telegram_api.called("getUpdates")
    health.opened(channel)
    yield channel
    await channel.close()


async def until_state(channel, state):
    async with asyncio.timeout(10):
        while channel.health()[0] != state:  # noqa: ASYNC110 - a state, not an event
            await asyncio.sleep(0.01)


async def until_connected(channel, api):
    """Let a person say something: a poll that is idle would be answered only after a while."""
    ann = api.new_user("Ann")
    api.say(api.private_chat(ann), ann, "hello")
    await until_state(channel, "ok")


async def recorded(store):
    every = [chained.event async for chained in store.events()]
    return [event for event in every if event.kind.startswith("channel.")]


async def test_a_revoked_token_is_recorded_and_told_once(watch, telegram, telegram_api, heard, kept):
    await watch.look()
    telegram_api.revoked = True
    await telegram_api.updates.poll({})
    await until_state(telegram, "down")
    for _ in range(3):
        await watch.look()
    (event,) = heard
    assert (event.kind, event.data["state"]) == ("channel.failed", "down")
    assert event.data["words"].startswith("revoked: Telegram does not accept the token any more")
    assert telegram_api.token not in str(event.data)
    assert await recorded(kept) == heard


async def test_an_outage_is_told_after_two_minutes_and_its_end_once(
    watch, telegram, telegram_api, heard, clock, kept
):
    await telegram_api.stop()
    await until_state(telegram, "degraded")
    await watch.look()
    clock.advance(int(PATIENCE_S * 1000) - 1)
    await watch.look()
    assert heard == []
    clock.advance(1)
    await watch.look()
    await watch.look()
    assert [event.kind for event in heard] == ["channel.failed"]
    await telegram_api.start()
    await until_connected(telegram, telegram_api)
    await watch.look()
    clock.advance(int(STEADY_S * 1000))
    for _ in range(2):
        await watch.look()
    assert [event.kind for event in heard] == ["channel.failed", "channel.recovered"]
    assert await recorded(kept) == heard


async def test_a_short_outage_is_not_told(watch, telegram, telegram_api, heard, clock, kept):
    telegram_api.misbehave("getUpdates", faults.server_error(), times=2)
    await telegram_api.updates.poll({})
    await until_state(telegram, "degraded")
    await watch.look()
    await until_connected(telegram, telegram_api)
    for _ in range(30):
        clock.advance(10_000)
        await watch.look()
    assert heard == []
    assert await recorded(kept) == []


async def test_what_the_record_does_not_take_is_told_with_a_later_look(health, meddled, heard, clock, caplog):
    failures = iter([StoreError("disk full"), StoreError("disk full")])

    async def fail(*_events):
        for failure in failures:
            raise failure

    meddled.before["append"] = fail
    watch = Watch(health.rows, meddled, heard.append, clock)
    health.failed("telegram", "wrong token")
    await watch.look()
    await watch.look()
    assert heard == []
    await watch.look()
    await watch.look()
    assert [event.data["words"] for event in heard] == ["not opened: wrong token"]
    assert await recorded(meddled.store) == heard
    assert len([line for line in caplog.messages if "disk full" in line]) == 2


async def test_it_watches_until_it_is_cancelled(watch, health, heard):
    health.failed("telegram", "wrong token")
    task = asyncio.create_task(watch.run())
    async with asyncio.timeout(5):
        while not heard:  # noqa: ASYNC110 - a list, not an event
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
