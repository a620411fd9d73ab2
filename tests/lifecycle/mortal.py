"""The core over a real database, in a process that can die between any two writes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.stores.sqlite import open_store
from core.approvals.binding import reverify
from core.approvals.permissions import Permissions
from core.approvals.quorum import People
from core.approvals.recovery import recover
from core.approvals.rules import Rules
from core.audit import verify
from core.errors import BindingMismatch, RunError
from core.model.plan import RunResult, RunStatus
from core.model.request import State
from tests.core_system import CONFIG, Noting, System
from tests.lifecycle.reference import required

PATIENCE_S = 3.0
AGENTS = ("main", "other")
PEOPLE = People.named({"Ann": ("cli:0", "web:operator"), "Bea": ("cli:1",), "Cem": ("cli:2",)})
_WRITES = {
    "commit",
    "commit_all",
    "append",
    "set_locked",
    "put_agent",
    "revoke_agent",
    "end_permission",
    "revoke_deny_rule",
}


class Fused:
    """A store in front of another; once its fuse has burnt down, whoever calls it is not there any more.

    `fuse` counts writes: at 0 the next write is the last one, and `after` says whether it still happens.
    """

    def __init__(self, store):
        self._store = store
        self.fuse: int | None = None
        self.after = False
        self.burnt = asyncio.Event()

    def __getattr__(self, name):
        method = getattr(self._store, name)
        if name == "events":
            return method

        async def called(*args, **fields):
            if self.burnt.is_set():
                await asyncio.Event().wait()
            if name in _WRITES and self.fuse is not None:
                self.fuse -= 1
                if self.fuse < 0:
                    if self.after:
                        await method(*args, **fields)
                    self.burnt.set()
                    await asyncio.Event().wait()
            return await method(*args, **fields)

        return called


@dataclass
class HeldRunner:
    """Runs nothing; notes each order, and ends it the way it is told to."""

    orders: list[str]
    resolver: FilesystemResolver = field(default_factory=FilesystemResolver)
    held: dict[str, asyncio.Future] = field(default_factory=dict)

    def make_workspace(self, plan):
        there = Path(plan.workspace).exists()
        Path(plan.workspace).mkdir(parents=True, exist_ok=True)
        return not there

    async def run(self, order, _sink):
        reverify(order, self.resolver)
        self.orders.append(order.request_id)
        return await self._held(order.request_id)

    def end(self, request_id, state):
        """End a run as finished, failed, or denied at the last moment; one that only starts, then."""
        held = self._held(request_id)
        if state == "finished":
            held.set_result(RunResult(RunStatus.FINISHED, 0, "", "", 0, 0, 5))
        elif state == "failed":
            held.set_exception(RunError("no sandbox"))
        else:
            held.set_exception(BindingMismatch(("command",)))

    def _held(self, request_id):
        return self.held.setdefault(request_id, asyncio.get_running_loop().create_future())


class Mortal:
    """One database, and the daemon's core on it, which dies and is started again."""

    def __init__(self, clock):
        self.clock = clock
        self.root = Path(tempfile.mkdtemp(prefix="sayso-lifecycle-"))
        self.orders: list[str] = []
        self.askers: dict[str, list[asyncio.Task]] = {}
        self._deadlines: asyncio.Task | None = None

    async def start(self):
        """Open the database and take up what is there."""
        self._stack = AsyncExitStack()
        self.store = await self._stack.enter_async_context(open_store(self.root / "sayso.db"))
        self._ours_not = asyncio.all_tasks()
        self.fused = Fused(self.store)
        resolver = FilesystemResolver()
        self.system = System(self.fused, self.clock, self.root, CONFIG, ("web",), resolver)
        self.system.rules = Rules(PEOPLE)
        self.system.required = lambda request: required(request.call.command.argv)
        self.runner = HeldRunner(self.orders)
        for place in self.system.runners:
            self.system.runners[place] = self.runner
        self.permissions = Permissions(self.fused, self.clock)
        system = self.system
        await system.credentials.load()
        await recover(self.fused, system.ledger, system.approvals, self.clock, lambda _id: 0)
        for agent in set(AGENTS) - {record.id for record in await self.store.agents()}:
            await system.credentials.mint(agent, "test")
        self.look_at_deadlines()

    def look_at_deadlines(self):
        """Start the watch over deadlines anew: it sleeps by the machine's clock, not by the test's."""
        if self._deadlines is not None:
            self._deadlines.cancel()
        self._deadlines = asyncio.create_task(
            self.system.approvals.keep_deadlines(self.system.gate.fallback), name="deadlines"
        )

    async def die(self):
        """Drop everything that is not on the disk."""
        self.fused.burnt.set()
        while tasks := asyncio.all_tasks() - self._ours_not - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1)
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.exception()
        self.askers.clear()
        self._deadlines = None
        await self._stack.aclose()

    async def end(self):
        """Die for good."""
        await self.die()
        shutil.rmtree(self.root)

    async def ask_to_run(self, call):
        """Ask and stay; return the id once it is known, whatever it came to."""
        observer = Noting()
        task = asyncio.create_task(self.system.gate.run(call, None, observer), name="asker")
        told = [asyncio.create_task(event.wait()) for event in (observer.asked, observer.started)]
        await asyncio.wait([task, *told], return_when=asyncio.FIRST_COMPLETED)
        for waiting in told:
            waiting.cancel()
        request_id = observer.seen[0][1] if observer.seen else (await task).request_id
        self.askers.setdefault(request_id, []).append(task)
        return request_id

    async def wait_for(self, agent, request_id):
        """Come back for a request, and stay."""
        work = self.system.gate.wait(agent, request_id, Noting())
        self.askers.setdefault(request_id, []).append(asyncio.create_task(work, name="asker"))

    async def states(self):
        """Read each request's state from the disk."""
        return {request.id: request.state.value for request in await self.store.in_states(*State)}

    async def yeses(self):
        """Read from the disk who has said yes to questions that several people must allow, and what."""
        return {
            request.id: {
                given.reviewer.person: (given.answer.value, given.for_ms, given.max_uses)
                for given in request.reviews
                if given.answer.allows
            }
            for request in await self.store.in_states(*State)
            if request.required > 1 and any(given.answer.allows for given in request.reviews)
        }

    async def record(self):
        """Read the record, which must hold together."""
        found = await verify(self.store)
        assert found.ok, f"the record is broken at {found.broken_at}: {found.problem}"
        async with aclosing(self.store.events()) as links:
            return [link.event async for link in links]

    async def reach(self, expected):
        """Wait until the disk says what is expected; False where the process died on the way."""
        for _ in range(int(PATIENCE_S / 0.002)):
            if self.fused.burnt.is_set():
                return False
            if (seen := await self.states()) == expected:
                return True
            await asyncio.sleep(0.002)
        differing = {
            request_id: (expected.get(request_id), seen.get(request_id))
            for request_id in expected.keys() | seen.keys()
            if expected.get(request_id) != seen.get(request_id)
        }
        raise AssertionError(f"expected, and seen after {PATIENCE_S} s: {differing}")
