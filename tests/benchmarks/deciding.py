"""How long a decision takes for a command line never seen before, and from a yes to the start of the run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.stores.sqlite import open_store
from bot.clock import SystemClock
from bot.config import Overrides, load
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.request import Answer, Review
from core.model.session import SessionKey
from tests.benchmarks.commands import command_lines
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import EXAMPLE, SAYSO, directory
from tests.core_system import ALICE, Noting, NotingRunner, System

COMMANDS = 400
ANSWERS = 60
QUESTIONS = 200
AT_ONCE = 16
FEW_ROWS, MANY_ROWS = 200, 2200
BATCHES = 3
MAIN = SessionKey.main("main")


def measure() -> list[Figure]:
    """Measure decisions, answers and questions over a real store, and the batch of `explain`."""
    return [*asyncio.run(_in_process()), Figure("explain --batch", "rows/s", list(_batches()), at_least=1000)]


async def _in_process() -> list[Figure]:
    async with _system() as system:
        pure, looked_up = list(_pure(system)), [took async for took in _looked_up(system)]
        answers = [await _from_yes_to_run(system, line) for line in command_lines(ANSWERS, 10_000)]
        alone = await _questions_per_second(system, at_once=1, first=20_000)
        together = await _questions_per_second(system, at_once=AT_ONCE, first=30_000)
    return [
        Figure("decision on a new command line", "ms", pure, at_most=2),
        Figure("the same, with the store's look-ups", "ms", looked_up, at_most=2),
        Figure("from a person's yes to the runner", "ms", answers, at_most=10),
        Figure("questions made durable, one after the other", "per s", [alone]),
        Figure(f"questions made durable, {AT_ONCE} at once", "per s", [together]),
    ]


@asynccontextmanager
async def _system() -> AsyncIterator[System]:
    """Wire the core over a store on a disk, configured as the example is."""
    config = load([EXAMPLE], env=os.environ, overrides=Overrides()).config.model_dump(by_alias=True)
    with directory() as root:
        async with open_store(root / "sayso.db") as store:
            yield System(store, SystemClock(), root, _unlimited(config), ("web",), FilesystemResolver())


def _pure(system: System) -> Iterator[float]:
    for line in command_lines(COMMANDS):
        began = time.perf_counter()
        system.judge.verdict(system.judge.examine(_call(line)))
        yield (time.perf_counter() - began) * 1000


async def _looked_up(system: System) -> AsyncIterator[float]:
    for line in command_lines(COMMANDS, COMMANDS):
        began = time.perf_counter()
        await system.gate.consider(_call(line))
        yield (time.perf_counter() - began) * 1000


class TimingRunner(NotingRunner):
    """Notes when it was called, and runs nothing."""

    started = 0.0

    async def run(self, order, sink):
        self.started = time.perf_counter()
        return await super().run(order, sink)


async def _from_yes_to_run(system: System, line: str) -> float:
    """Ask, say yes, and tell the time from handing in the answer until the runner is called."""
    runner = TimingRunner(Placement.SANDBOX)
    system.runners[Placement.SANDBOX] = runner
    observer = Noting()
    asked = asyncio.create_task(
        system.gate.run(_call(f"touch {line.rsplit(maxsplit=1)[-1]}"), None, observer)
    )
    await observer.asked.wait()
    began = time.perf_counter()
    await system.approvals.review(Review(observer.seen[0][1], Answer.ALLOW_ONCE, ALICE))
    await asked
    return (runner.started - began) * 1000


def _unlimited(config: dict[str, Any]) -> dict[str, Any]:
    config["approvals"]["exec"] |= {"maxOpen": 100_000, "maxPerMinute": 100_000}
    return config


async def _questions_per_second(system: System, *, at_once: int, first: int) -> float:
    """Put questions to people, each committed to the disk before the next step."""
    calls = [_call(f"touch file{number}") for number in range(first, first + QUESTIONS)]
    rounds = [calls[at : at + at_once] for at in range(0, QUESTIONS, at_once)]
    began = time.perf_counter()
    for some in rounds:
        await asyncio.gather(*(system.gate.ask(call, None) for call in some))
    return QUESTIONS / (time.perf_counter() - began)


def _batches() -> Iterator[float]:
    """Give rows per second without the start: what the longer of two batches took more than the shorter."""
    for _ in range(BATCHES):
        short, long = _batch(FEW_ROWS), _batch(MANY_ROWS)
        yield (MANY_ROWS - FEW_ROWS) / (long - short)


def _batch(rows: int) -> float:
    text = "".join(json.dumps({"command": line}) + "\n" for line in command_lines(rows))
    began = time.perf_counter()
    subprocess.run(
        [SAYSO, "explain", "--config", EXAMPLE, "--batch"],
        input=text,
        text=True,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def _call(line: str) -> ToolCall:
    return ToolCall("exec", MAIN, command=CommandText(line=line))
