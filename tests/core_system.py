"""The core as the daemon wires it, over a real store and resolver, for tests of the gate.

The runner is a small fake of the Runner port that notes what it was given: here it matters what reaches it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from adapters.stores.sqlite import open_store
from bot import registry
from core.approvals.binding import reverify
from core.approvals.flood import FloodControl
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.rules import Rulebook
from core.approvals.service import Approvals
from core.config import Config
from core.console import Daemon, OperatorConsole
from core.credentials import Credentials
from core.elevations import Elevations
from core.gate import Gate
from core.judge import Judge, Site
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.plan import RunResult, RunStatus
from core.model.principal import Reviewer
from core.model.session import SessionKey
from core.runs import Runs

ALICE = Reviewer("cli", "0", "alice")
MAIN = SessionKey.main("main")


@dataclass
class NotingRunner:
    """Runs nothing; notes every order, and ends when it is told to."""

    placement: Placement
    name: str = "noting"
    resolver: FilesystemResolver = field(default_factory=FilesystemResolver)
    orders: list = field(default_factory=list)
    fault: Exception | None = None
    hold: asyncio.Event | None = None

    def make_workspace(self, plan):
        there = Path(plan.workspace).exists()
        Path(plan.workspace).mkdir(parents=True, exist_ok=True)
        return not there

    async def run(self, order, sink):
        reverify(order, self.resolver)
        self.orders.append(order)
        sink.write(order.request_id, "stdout", b"hello\n")
        if self.fault:
            raise self.fault
        if self.hold:
            await self.hold.wait()
        return RunResult(RunStatus.FINISHED, 0, "hello\n", "", 0, 0, 5)


class Noting:
    """An observer that notes what it is told."""

    def __init__(self):
        self.seen = []
        self.asked = asyncio.Event()
        self.started = asyncio.Event()

    def requested(self, card):
        self.seen.append(("requested", card.request_id))
        self.asked.set()

    def running(self, request_id):
        self.seen.append(("running", request_id))
        self.started.set()

    def write(self, _request_id, stream, data):
        self.seen.append((stream, data))


class System:
    """The core, wired as the daemon wires it, but for its channels."""

    def __init__(self, store, clock, root, config, routes, resolver, names=None):
        self.store, self.clock, self.routes = store, clock, routes
        self.ledger = Ledger(store)
        flood = FloodControl(clock, lambda: self.judge.config.approvals.exec)
        self.rules = None
        self.required = lambda _request: 1
        book = Rulebook(lambda: self.judge.config, registry.whose_chat)
        rules = lambda: self.rules or book.rules()  # noqa: E731 - tests replace them
        self.approvals = Approvals(self.ledger, store, clock, self._routes, rules=rules, flood=flood)
        self.runs = Runs(self.ledger, clock)
        self.runners = {place: NotingRunner(place) for place in (Placement.SANDBOX, Placement.HOST)}
        site = Site(str(root / "state"), str(root / "workspaces"), ("/home", "/root"), "/root")
        self.judge = Judge(Config.model_validate(config), site, resolver, names or SystemNameResolver())
        self.elevations = Elevations(store, clock, lambda: self.judge.config)
        self.gate = Gate(
            lambda: self.judge,
            self.approvals,
            self.ledger,
            store,
            self.runs,
            self.runners,
            clock,
            lambda _path: None,
            elevations=self.elevations,
        )
        self.credentials = Credentials(store, clock, "operator-token")
        daemon = Daemon(dict, None, lambda _path: None)
        self.console = OperatorConsole(
            store,
            self.approvals,
            self.ledger,
            self.runs,
            self.credentials,
            lambda: self.judge,
            clock,
            daemon,
            elevations=self.elevations,
        )

    def _routes(self, request):
        required = self.required(request)
        return tuple(Route(channel, "", (), 120_000, "test", required=required) for channel in self.routes)

    @property
    def orders(self):
        return [order for runner in self.runners.values() for order in runner.orders]

    def asking(self, call):
        """Start a call in the background; returns its task and observer."""
        observer = Noting()
        return asyncio.create_task(self.gate.run(call, None, observer)), observer


CONFIG = {
    "tools": {"profile": "coding", "exec": {"security": "allowlist", "ask": "on-miss"}},
    "agents": {
        "by_id": {"main": {"exec": {"allowlist": [{"pattern": "/usr/bin/git", "args": ["--version"]}]}}}
    },
}


class Meddled:
    """A store in front of another: `before` and `after` are awaited around each call of a method."""

    def __init__(self, store):
        self.store = store
        self.before = {}
        self.after = {}

    def __getattr__(self, name):
        method = getattr(self.store, name)
        if name not in self.before and name not in self.after:
            return method

        async def meddled(*args, **fields):
            for hook in filter(None, [self.before.get(name)]):
                await hook(*args, **fields)
            result = await method(*args, **fields)
            for hook in filter(None, [self.after.get(name)]):
                await hook(*args, **fields)
            return result

        return meddled


@pytest.fixture
async def kept(tmp_path):
    async with open_store(tmp_path / "sayso.db") as store:
        yield store


@pytest.fixture
def meddled(kept):
    return Meddled(kept)


@pytest.fixture
async def make_system(tmp_path, clock, kept):
    made = []

    def make(config=CONFIG, routes=("web",), through=None, resolver=None, names=None):
        resolver = resolver or FilesystemResolver()
        made.append(System(through or kept, clock, tmp_path, config, routes, resolver, names))
        return made[-1]

    yield make
    for system in made:
        await system.runs.close("the test ended", patience_s=2)
        for part in (system.console, system.elevations, system.approvals, system.ledger):
            await part.close()


@pytest.fixture
def system(make_system):
    return make_system()


def exec_call(*argv, line=None, session=MAIN, **fields):
    return ToolCall("exec", session, command=CommandText(line=line, argv=argv, **fields))
