"""How long hostile calls keep the event loop from everybody else, of a daemon in this process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.config import Overrides, load
from bot.home import Home, held, prepare
from bot.tasks import owned
from bot.turns import take_turns
from bot.wiring import assemble
from tests.benchmarks.figures import Figure
from tests.benchmarks.hostile_lines import PROGRAM
from tests.benchmarks.places import EXAMPLE, directory

TICK_S = 0.001
LONGEST_MS = 20
ENTRIES = 1000


@dataclass
class Ticker:
    """Wakes every millisecond and notes by how much it was late: at what time, for how long.

    Where other programs had the processors, this process was not to blame: no stall counts as longer
    than the time for which the process ran during it.
    """

    stalls: list[tuple[float, float]] = field(default_factory=list)

    async def run(self) -> None:
        """Tick until cancelled."""
        before, used = time.monotonic(), time.process_time()
        while True:
            await asyncio.sleep(TICK_S)
            now, using = time.monotonic(), time.process_time()
            self.stalls.append((now, min(now - before - TICK_S, using - used)))
            before, used = now, using

    def longest_ms(self, began: float, ended: float) -> float:
        """Return the longest stall between two moments."""
        during = (late for at, late in self.stalls if began <= at and at - late <= ended)
        return max(during, default=0.0) * 1000


@dataclass(frozen=True, slots=True)
class Case:
    """What was sent, how long it took to be answered, the answer, and the longest stall meanwhile."""

    name: str
    took_ms: float
    answer: str
    stall_ms: float


def measure() -> list[Figure]:
    """Measure the longest stall of each case; the figure's highest sample is the worst of them."""
    cases = asyncio.run(measured())
    for case in sorted(cases, key=lambda case: case.stall_ms)[-3:]:
        print(f"  {case.stall_ms:.1f} ms: {case.name}")
    worst = max(case.stall_ms for case in cases)
    return [
        Figure("longest stall of the event loop under hostile lines", "ms", [worst], at_most=LONGEST_MS),
        Figure("longest stall, line by line", "ms", [case.stall_ms for case in cases]),
    ]


async def measured(only: str = "") -> list[Case]:
    """Send every case with `only` in its name to a daemon in this event loop, from a process of its own."""
    ticker = Ticker()
    async with _daemon() as (socket, token), owned(ticker.run(), "ticker"):
        agent = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.benchmarks.hostile_client",
            socket,
            token,
            only,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await agent.communicate()
    rows = [json.loads(line) for line in out.splitlines()]
    return [
        Case(name, (ended - began) * 1000, answer, ticker.longest_ms(began, ended))
        for name, began, ended, answer in rows
    ]


@asynccontextmanager
async def _daemon() -> AsyncIterator[tuple[str, str]]:
    with directory() as root:
        overlay = root / "overlay.yaml"
        overlay.write_text(json.dumps(_config(root)))
        loaded = load([EXAMPLE, overlay], env=os.environ, overrides=Overrides(port=0))
        home: Home = prepare(root / "home")
        async with AsyncExitStack() as stack:
            hold = stack.enter_context(held(home))
            ready = await assemble(stack, loaded, lambda: loaded, hold, home.socket)
            take_turns()
            yield str(ready.socket), home.agent_token("main").read_text().strip()


def _config(root: Path) -> dict[str, object]:
    entries = [
        {"pattern": PROGRAM, "argPattern": f"(a|b|y)*{number}(x+)*z.*{number}"} for number in range(ENTRIES)
    ]
    return {
        "sandboxing": {"workspaceRoot": str(root / "workspaces")},
        "tools": {
            "exec": {"security": "allowlist", "ask": "on-miss", "allowlist": entries, "deny": ["*nothing*"]}
        },
        "approvals": {"exec": {"maxOpen": 100_000, "maxPerMinute": 100_000}},
    }


if __name__ == "__main__":
    for each in sorted(asyncio.run(measured(" ".join(sys.argv[1:]))), key=lambda case: case.stall_ms):
        print(f"{each.stall_ms:8.1f} ms stall {each.took_ms:9.1f} ms  {each.name:55} {each.answer[:70]}")
