"""Kill the daemon again and again under load, and hold what it kept against what it promised."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tests.torture.actors import Agent, Notes, Reviewer, Shell, World
from tests.torture.site import PEOPLE, Site
from tests.torture.verdict import Findings, examine

AGENTS = ("main", "second", "third")
DRAIN_S = 40.0
LONGEST_LIFE_S = 0.9
LONGEST_START_S = 0.5
LOG_LINES = 40


class Ordeal:
    """One seed, one place, so many kills."""

    def __init__(self, site: Site, seed: int, kills: int, say: Callable[[str], None]) -> None:
        self._site = site
        self._seed = seed
        self._kills = kills
        self._say = say
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._lines_left: int | None = None
        self._last_line = asyncio.Event()
        self.notes = Notes()
        self._world = World(site, self.notes, self._heard)

    async def run(self) -> Findings:
        """Kill, restart, and at last let everything come to its end; faults end it early."""
        await self._settle_in()
        reviewers = [asyncio.create_task(work, name="reviewer") for work in self._reviewers()]
        askers = [asyncio.create_task(work, name="asker") for work in self._askers()]
        try:
            for number in range(1, self._kills + 1):
                await self._kill(number)
                self._ask_after(reviewers, askers)
                if number % 10 == 0 and (found := await self._look(number)).faults:
                    return found
            await self._drain(askers)
        finally:
            for task in (*reviewers, *askers):
                task.cancel()
            await asyncio.gather(*reviewers, *askers, return_exceptions=True)
            await self._site.clear()
        return await examine(self._site, self.notes, at_the_end=True)

    async def _settle_in(self) -> None:
        await self._site.spawn()
        assert await self._site.ready(), self.log()
        for agent in AGENTS[1:]:
            status, said = await self._site.sayso("agent", "add", agent, "--save")
            assert status == 0, said

    async def _kill(self, number: int) -> None:
        """End a daemon in one of three ways: after some time, at a line of the socket, or while it starts."""
        way = self._rng.random()
        if way < 0.4:
            await asyncio.sleep(self._rng.uniform(0, LONGEST_LIFE_S))
        elif way < 0.9:
            await self._until_line(self._rng.randrange(1, 120))
        await self._site.end()
        await self._site.spawn()
        while self._rng.random() < 0.15:
            await asyncio.sleep(self._rng.uniform(0, LONGEST_START_S))
            await self._site.end()
            self.notes.counts["kills while starting"] += 1
            await self._site.spawn()
        assert await self._site.ready(), f"it does not start after kill {number}\n{self.log()}"

    async def _until_line(self, lines: int) -> None:
        """Let so many lines pass on the socket; the last one strikes."""
        self._lines_left = lines
        self._last_line.clear()
        try:
            async with asyncio.timeout(2 * LONGEST_LIFE_S):
                await self._last_line.wait()
        except TimeoutError:
            self._lines_left = None

    def _heard(self) -> None:
        if self._lines_left is None:
            return
        self._lines_left -= 1
        if self._lines_left <= 0:
            self._lines_left = None
            self._site.strike()
            self._last_line.set()

    async def _look(self, number: int) -> Findings:
        """Examine between two daemons."""
        await self._site.end()
        found = await examine(self._site, self.notes, at_the_end=False)
        seen = found.seen
        self._say(
            f"{number:4} kills: {seen['requests']} requests, {len(self.notes.given)} answers accepted, "
            f"{seen['marks']} runs left a mark, {seen['ended interrupted']} cut off, "
            f"{seen['events']} events, {len(found.faults)} faults"
        )
        await self._site.spawn()
        assert await self._site.ready(), self.log()
        return found

    async def _drain(self, askers: list[asyncio.Task[None]]) -> None:
        """Ask nothing new; everybody who waits must get an outcome, and nothing may stay open."""
        self._world.over.set()
        began = time.monotonic()
        _, waiting = await asyncio.wait(askers, timeout=DRAIN_S)
        if waiting:
            self.notes.contradictions.append(f"askers: {len(waiting)} still wait after {DRAIN_S} s")
        while time.monotonic() - began < DRAIN_S and not await self._settled():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)

    async def _settled(self) -> bool:
        peer = await self._world.connected("operator", "operator")
        try:
            rows = await peer.call("request.history", limit=1000)
            waiting = await peer.call("exec.approval.list")
            return not waiting and not any(row["state"] in {"approved", "running"} for row in rows)
        finally:
            peer.close()

    def _ask_after(self, reviewers: list[asyncio.Task[None]], askers: list[asyncio.Task[None]]) -> None:
        """A fault in the harness itself must not pass for a quiet daemon."""
        for task in (*reviewers, *askers):
            if task.done():
                task.result()
                raise AssertionError(f"{task.get_name()} ended")

    def _askers(self) -> list[Coroutine[Any, Any, None]]:
        agents = [Agent(self._world, name, number, self._own()) for name in AGENTS for number in (1, 2)]
        return [*(agent.work() for agent in agents), Shell(self._world, self._own()).work()]

    def _reviewers(self) -> list[Coroutine[Any, Any, None]]:
        uids = list(PEOPLE) if self._site.required > 1 else [os.geteuid()]
        return [Reviewer(self._world, uid, self._own()).work() for uid in uids for _ in range(2)]

    def _own(self) -> random.Random:
        return random.Random(self._rng.random())  # noqa: S311 - repeatable, not secret

    def log(self) -> str:
        """Return the end of the daemon's log."""
        return "\n".join(self._site.log.read_text().splitlines()[-LOG_LINES:])
