"""From a press on Telegram to the start of the run: the core and the real channel, and a Bot API beside them.

The clock starts when the platform hands the press out, or when its call is about to reach the webhook; it
stops when the runner is called, which is after the start was committed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from adapters.channels.telegram.adapter import TelegramChannel
from adapters.resolvers.filesystem import FilesystemResolver
from adapters.stores.sqlite import open_store
from bot.clock import SystemClock
from bot.config import Overrides, load
from core.approvals.conversation import Conversation, Switches
from core.approvals.courier import Courier
from core.approvals.routes import Route
from core.config import TelegramSettings
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.session import SessionKey
from tests.benchmarks.deciding import TimingRunner
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import EXAMPLE, directory
from tests.benchmarks.platform import Platform, platform
from tests.core_system import Noting, System

PRESSES, WARM_UP = 60, 5
MOST_MS = 15
WEBHOOK = {"port": 0, "url": "https://sayso.example.org/telegram", "secret": "known-to-both-ends"}
WAYS: dict[str, dict[str, Any]] = {"polling": {}, "webhook": {"mode": "webhook", "webhook": WEBHOOK}}


def measure() -> list[Figure]:
    """Measure presses that are fetched, and presses that are brought."""
    return [
        Figure(f"from a press on Telegram to the runner, {way}", "ms", asyncio.run(presses(way)), MOST_MS)
        for way in WAYS
    ]


async def presses(way: str, count: int = PRESSES, warm_up: int = WARM_UP) -> list[float]:
    """Press so often, and tell how long each took."""
    async with stage(way) as made:
        return [await made.press(number) for number in range(warm_up + count)][warm_up:]


@dataclass(frozen=True, slots=True)
class Stage:
    """The core with Telegram as its channel, and the platform."""

    system: System
    platform: Platform

    async def press(self, number: int) -> float:
        """Ask, have the button pressed, and tell the time until the runner is called."""
        runner = TimingRunner(Placement.SANDBOX)
        self.system.runners[Placement.SANDBOX] = runner
        command = CommandText(argv=("touch", f"number{number}.txt"))
        call = ToolCall("exec", SessionKey.main("main"), command=command)
        pressed = asyncio.create_task(self.platform.press(f"number{number}.txt"))
        await self.system.gate.run(call, None, Noting())
        return (runner.started - await pressed) * 1000


@asynccontextmanager
async def stage(way: str) -> AsyncIterator[Stage]:
    """Start a platform, and the core with its channel on it."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        there = await asyncio.to_thread(stack.enter_context, platform())
        root = stack.enter_context(directory())
        store = await stack.enter_async_context(open_store(root / "sayso.db"))
        config = load([EXAMPLE], env=os.environ, overrides=Overrides()).config.model_dump(by_alias=True)
        config["approvals"]["exec"] |= {"maxOpen": 100_000, "maxPerMinute": 100_000}
        route = Route("telegram", str(there.user), (f"telegram:{there.user}",), 120_000, "bench")
        system = _AskingOne(store, clock, root, config, (route,), FilesystemResolver())
        channel = TelegramChannel(TelegramSettings(token=there.token, **WAYS[way]), clock, base_url=there.api)
        await stack.enter_async_context(_serving(system, channel))
        if channel._webhook is not None:
            await there.bring_to(f"http://127.0.0.1:{channel._webhook.port}/telegram")
        yield Stage(system, there)


class _AskingOne(System):
    """The core, asking along the routes it is given."""

    def _routes(self, _request):
        return self.routes


@asynccontextmanager
async def _serving(system: System, channel: TelegramChannel) -> AsyncIterator[None]:
    desk = Conversation(
        system.approvals, system.store, system.clock, Switches(_nothing, _nothing, _nothing, None)
    )
    courier = Courier(channel, system.store, desk, system.clock)
    system.ledger.on_commit.append(courier.wake)
    await channel.open(desk)
    carrying = asyncio.create_task(courier.run(), name="courier")
    try:
        async with asyncio.timeout(10):
            while channel.health()[0] != "ok":  # noqa: ASYNC110 - a state, not an event
                await asyncio.sleep(0.01)
        yield
    finally:
        carrying.cancel()
        await asyncio.wait([carrying])
        await channel.close()
        await system.ledger.close()


async def _nothing(*_arguments: object) -> str:
    return ""
