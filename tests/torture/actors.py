"""Agents that ask and reviewers that answer, without end, over a daemon that keeps dying."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.torture.peer import Gone, Peer, Refused
from tests.torture.site import Site

SETTLED = {"finished", "failed", "denied", "expired", "withdrawn", "interrupted"}
MINUTE_MS = 60_000
_ANSWERS = ("allow-once",) * 6 + ("allow-for",) * 2 + ("deny",) * 2 + ("allow-always", "deny-always")
_PROGRAMS = ("mark0", "mark0", "mark1", "mark2", "mark3", "free")
# Only here is a yes ever given for always; the others must be asked about to the end.
LEARNED_FROM = "mark3"


@dataclass
class Notes:
    """What the daemon promised, as those noted who heard it.

    `answers` that settled a request by themselves, `given` ones as (request, uid, answer), and `outcomes`.
    """

    answers: dict[str, str] = field(default_factory=dict)
    given: set[tuple[str, int, str]] = field(default_factory=set)
    outcomes: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)

    def accepted(self, request_id: str, answer: str) -> None:
        """Note an answer that was taken; a second one for the same request contradicts the first."""
        earlier = self.answers.setdefault(request_id, answer)
        self.counts["answers accepted"] += 1
        if self.counts[f"accepted {request_id}"]:
            self.contradictions.append(f"{request_id}: {answer} was accepted after {earlier}")
        self.counts[f"accepted {request_id}"] += 1

    def ended(self, outcome: dict[str, Any]) -> None:
        """Note how a request ended; it may never be told otherwise later."""
        request_id, status = outcome["id"], outcome["status"]
        self.known.add(request_id)
        self.counts[f"told {status}"] += 1
        if status in SETTLED and self.outcomes.setdefault(request_id, status) != status:
            self.contradictions.append(f"{request_id}: told {self.outcomes[request_id]}, then {status}")


@dataclass
class World:
    """What all of them share: `heard` is called for every line of the socket, `over` ends new jobs."""

    site: Site
    notes: Notes
    heard: Callable[[], None]
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def connected(self, name: str, role: str, uid: int | None = None) -> Peer:
        """Connect, and try again as long as nobody answers."""
        while True:
            try:
                return await Peer.connect(self.site.socket, self.site.token(name), role, self.heard, uid)
            except (Gone, OSError):
                await asyncio.sleep(0.02)


class Agent:
    """One asker: every command has a word of its own, which its run writes down."""

    def __init__(self, world: World, name: str, number: int, rng: random.Random) -> None:
        self._world = world
        self._name = name
        self._number = number
        self._rng = rng
        self._jobs = 0
        self._earlier: list[list[str]] = []

    async def work(self) -> None:
        """Ask until it is over; each job is brought to its outcome."""
        ways = (self._run, self._run, self._run, self._run_again, self._ask_then_run, self._take_back)
        while not self._world.over.is_set():
            await self._rng.choice(ways)()
            await asyncio.sleep(self._rng.uniform(0, 0.05))

    async def _run(self) -> None:
        await self._to_the_end("exec.run", {"argv": self._fresh()})

    async def _run_again(self) -> None:
        argv = self._rng.choice(self._earlier) if self._earlier else self._fresh()
        await self._to_the_end("exec.run", {"argv": argv})

    async def _ask_then_run(self) -> None:
        argv = self._fresh()
        allowed = await self._to_the_end("exec.approval.request", {"argv": argv, "twoPhase": True})
        if allowed and allowed["status"] == "allowed" and allowed["id"]:
            await self._to_the_end("exec.run", {"argv": argv, "approvalId": allowed["id"]}, allowed["id"])

    async def _take_back(self) -> None:
        peer = await self._world.connected(self._name, "agent")
        try:
            asked = await peer.call("exec.run", argv=self._fresh(), detach=True)
            self._note(asked["id"])
            outcome = await peer.call("exec.approval.withdraw", id=asked["id"])
            self._world.notes.ended(outcome)
        except (Gone, Refused):
            self._world.notes.counts["hang-ups"] += 1
        finally:
            peer.close()

    async def _to_the_end(self, method: str, params: dict[str, Any], known: str | None = None) -> Any:
        """Ask; where the daemon dies meanwhile and the id was told, wait for its outcome under that id."""
        ids = [known] if known else []

        def told(_method: str, about: dict[str, Any]) -> None:
            self._note(about["id"])
            ids.append(about["id"])

        peer = await self._world.connected(self._name, "agent")
        while True:
            try:
                outcome = await peer.call(method, told, **params)
            except Gone:
                self._world.notes.counts["hang-ups"] += 1
                if not ids:
                    return None
                peer.close()
                peer = await self._world.connected(self._name, "agent")
                method, params = "exec.approval.waitDecision", {"id": ids[-1]}
                continue
            finally:
                if not ids:
                    peer.close()
            if outcome["status"] in {"accepted", "pending"}:
                self._note(outcome["id"])
                ids.append(outcome["id"])
                method, params = "exec.approval.waitDecision", {"id": outcome["id"]}
                continue
            peer.close()
            self._world.notes.ended(outcome)
            return outcome

    def _note(self, request_id: str) -> None:
        self._world.notes.known.add(request_id)

    def _fresh(self) -> list[str]:
        self._jobs += 1
        argv = [f"./{self._rng.choice(_PROGRAMS)}", f"{self._name}-{self._number}-{self._jobs}"]
        self._earlier = [*self._earlier[-5:], argv]
        return argv


class Shell:
    """An asker at the command line: `sayso exec`, and `sayso wait` where it was cut off."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    async def work(self) -> None:
        """Ask until it is over."""
        jobs = 0
        while not self._world.over.is_set():
            jobs += 1
            program = self._rng.choice(_PROGRAMS)
            _, said = await self._world.site.sayso("exec", "--json", "--", f"./{program}", f"shell-{jobs}")
            last = said.strip().splitlines()[-1:]
            if last and last[0].startswith("{"):
                self._world.notes.ended(json.loads(last[0]))
            await asyncio.sleep(self._rng.uniform(0, 0.1))


class Reviewer:
    """Answers what waits; now and then ends a run, or locks everything for a moment."""

    def __init__(self, world: World, uid: int, rng: random.Random) -> None:
        self._world = world
        self._uid = uid
        self._rng = rng

    async def work(self) -> None:
        """Answer until cancelled."""
        while True:
            own = None if self._uid == os.geteuid() else self._uid
            peer = await self._world.connected("operator", "operator", own)
            try:
                await peer.call("lock.set", locked=False)
                while True:
                    await self._once(peer)
                    await asyncio.sleep(self._rng.uniform(0, 0.04))
            except Gone:
                self._world.notes.counts["hang-ups"] += 1
            finally:
                peer.close()

    async def _once(self, peer: Peer) -> None:
        waiting = await peer.call("exec.approval.list")
        self._world.notes.known.update(row["id"] for row in waiting)
        if waiting:
            await self._answer(peer, self._rng.choice(waiting))
        chance = self._rng.random()
        if chance < 0.005:
            await peer.call("lock.set", locked=True)
            await asyncio.sleep(self._rng.uniform(0, 0.1))
            await peer.call("lock.set", locked=False)
        elif chance < 0.03:
            await self._cancel(peer)

    async def _answer(self, peer: Peer, row: dict[str, Any]) -> None:
        answer = self._rng.choice(_ANSWERS)
        if answer == "allow-always" and LEARNED_FROM not in row["command"]:
            answer = "allow-once"
        extra: dict[str, Any] = {}
        if answer == "allow-for":
            extra = {"forMs": self._rng.choice((1, 2, 10)) * MINUTE_MS, "maxUses": self._rng.randint(1, 3)}
        try:
            reviewed = await peer.call("exec.approval.resolve", id=row["id"], decision=answer, **extra)
        except Refused as error:
            self._world.notes.contradictions.append(f"{row['id']}: {answer} was an error: {error}")
            return
        if reviewed["accepted"]:
            self._world.notes.given.add((row["id"], self._uid, answer))
        if reviewed["accepted"] and self._world.site.required == 1:
            self._world.notes.accepted(row["id"], answer)

    async def _cancel(self, peer: Peer) -> None:
        rows = await peer.call("request.history", limit=20)
        running = [row["id"] for row in rows if row["state"] == "running"]
        if running:
            await peer.call("request.cancel", id=self._rng.choice(running))
