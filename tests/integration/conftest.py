"""A real Unix socket, with small desks behind it instead of a daemon."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.ingress.unix_socket import UnixSocketIngress
from core.errors import RequestError, StoreError, UnknownRequest
from core.model.card import Card
from core.model.outcome import Outcome, Status
from core.model.request import State
from tests.desks import some_desks
from tests.permission_desk import MemoryPermissions

SAYSO = Path(sys.executable).parent / "sayso"
REQUEST_ID = "3f2b91c0-1111-4222-8333-444455556666"
DENIAL = {
    "effect": "deny",
    "layer": "exec_security",
    "reason": "output is redirected to a file",
    "rule": "exec.redirection",
    "source": "tools.exec.security",
    "where": "config.yaml:12",
}


def card(request_id: str = REQUEST_ID) -> Card:
    return Card(
        request_id=request_id,
        state=State.WAITING,
        agent="main",
        session="agent:main:main",
        command="rm -rf build",
        cwd="/work",
        placement="sandbox (bubblewrap)",
        on_host=False,
        reason="no entry of the allowlist matches",
        rule="exec.miss",
        written="default",
        env=(),
        always=(),
        always_why=None,
        durations=(900_000, 3_600_000),
        denies_always=True,
        created_at=0,
        deadline=2**42,
    )


class FakeGatekeeper:
    def __init__(self) -> None:
        self.agents = {"agent-token": "main", "other-token": "other"}

    async def agent(self, token: str) -> str | None:
        return self.agents.get(token)

    def operator(self, token: str) -> bool:
        return token == "operator-token"


class FakeDesk:
    """Does what the command says; `answered` ends the waiting."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.peers: list[Any] = []
        self.hung_up: list[str] = []
        self.answered = asyncio.Event()
        self.flooded = False
        self.after_answer = Outcome(Status.FINISHED, "ran", REQUEST_ID, exit_code=0)

    async def run(self, call, peer, observer) -> Outcome:
        self.calls.append(call)
        self.peers.append(peer)
        words = (call.command.line or " ".join(call.command.argv)).split()
        return await getattr(self, f"_{words[0]}")(observer, *words[1:])

    async def _exit(self, observer, code: str) -> Outcome:
        observer.running(REQUEST_ID)
        return Outcome(Status.FINISHED, "ran", REQUEST_ID, exit_code=int(code))

    async def _say(self, observer, *words: str) -> Outcome:
        observer.running(REQUEST_ID)
        observer.write(REQUEST_ID, "stdout", " ".join(words).encode())
        observer.write(REQUEST_ID, "stderr", b"\xff\x00 raw\n")
        text = " ".join(words)
        return Outcome(Status.FINISHED, "ran", REQUEST_ID, exit_code=0, stdout=text, stderr="? raw\n")

    async def _quiet(self, _observer) -> Outcome:
        return Outcome(Status.FINISHED, "ran", REQUEST_ID, exit_code=0, stdout="kept\n")

    async def _deny(self, _observer) -> Outcome:
        return Outcome(Status.DENIED, DENIAL["reason"], REQUEST_ID, decision=DENIAL)

    async def _end(self, _observer, status: str) -> Outcome:
        return Outcome(Status(status), f"it is {status}", REQUEST_ID)

    async def _nobody(self, _observer) -> Outcome:
        decision = {**DENIAL, "rule": "no-approval-route", "reason": "nobody can be asked"}
        return Outcome(Status.DENIED, "nobody can be asked", REQUEST_ID, decision=decision)

    async def _wait(self, observer, name: str = "") -> Outcome:
        observer.requested(card())
        try:
            await self.answered.wait()
        except asyncio.CancelledError:
            self.hung_up.append(name)
            raise
        return self.after_answer

    async def _hold(self, observer) -> Outcome:
        observer.running(REQUEST_ID)
        return await self._wait_silently()

    async def _wait_silently(self) -> Outcome:
        await self.answered.wait()
        return self.after_answer

    async def _flood(self, observer, pieces: str) -> Outcome:
        try:
            for _ in range(int(pieces)):
                observer.write(REQUEST_ID, "stdout", bytes(64 * 1024))
                await asyncio.sleep(0)
        finally:
            self.flooded = True
        return self.after_answer

    async def _fault(self, _observer) -> Outcome:
        raise RuntimeError("a secret detail")

    async def _full(self, _observer) -> Outcome:
        raise StoreError("the disk is full; nothing was kept")

    async def _malformed(self, _observer) -> Outcome:
        raise RequestError("cwd /x is not a directory", field="cwd")

    async def run_approved(self, call, request_id, _observer) -> Outcome:
        self.calls.append((call, request_id))
        return Outcome(Status.FINISHED, "ran", request_id, exit_code=0)

    async def ask(self, call, _peer) -> Outcome:
        self.calls.append(call)
        if call.tool == "read":
            return Outcome(Status.ALLOWED, "read is allowed")
        return Outcome(Status.PENDING, "a person must decide", REQUEST_ID)

    async def wait(self, _agent, request_id, observer) -> Outcome:
        if not REQUEST_ID.startswith(request_id):
            raise UnknownRequest(f"no request of this agent has the id {request_id!r}", field="id")
        observer.requested(card())
        return await self._wait_silently()

    async def withdraw(self, agent, request_id) -> Outcome:
        return Outcome(Status.WITHDRAWN, f"withdrawn by {agent}", request_id)

    async def describe(self, session, claims) -> Mapping[str, Any]:
        return {"session": str(session), "depth": claims.depth}


class FakeConsole:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.accepts = True

    async def pending(self):
        return [SUMMARY]

    async def history(self, limit):
        self.seen.append(limit)
        return [{**SUMMARY, "state": "finished", "exitCode": 3}]

    async def show(self, request_id):
        if not REQUEST_ID.startswith(request_id):
            raise UnknownRequest(f"no request has an id that begins with {request_id!r}", field="id")
        outcome = Outcome(Status.DENIED, "no", REQUEST_ID).to_json()
        record = [{"seq": 1, "at": 0, "kind": "request.created", "actor": "agent:main"}]
        always = {"words": ["exactly this"], "why": None}
        more = {"outcome": outcome, "verdict": {"trace": [DENIAL]}, "always": always, "record": record}
        return {**SUMMARY, **more, "copies": [DELIVERY]}

    async def resolve(self, review):
        self.seen.append(review)
        return {"accepted": self.accepts, "text": "Allowed once.", "id": REQUEST_ID, "state": "approved"}

    async def cancel(self, request_id, _reviewer):
        return {"accepted": True, "text": "Ending the run.", "id": request_id}

    async def agents(self):
        return [{"id": "main", "createdAt": 0, "revokedAt": None}]

    async def add_agent(self, agent):
        return {"id": agent, "token": "t0ken"}

    async def revoke_agent(self, agent):
        return {"id": agent, "revoked": True}

    async def explain(self, row):
        return {"id": None, "row": row, **DENIAL, "trace": [DENIAL], "canonical": "ls"}

    async def tools(self, _row):
        gone = {"step": "profile", "rule": "r", "source": "tools.profile"}
        return {"id": None, "allowed": ["exec"], "denied": {"cron": gone}, "warnings": []}

    async def audit_tail(self, _limit):
        return [{"seq": 1, "at": 0, "kind": "a.b", "actor": "x", "request": None, "data": None, "hash": "h"}]

    async def audit_verify(self):
        problem = None if self.accepts else "the hash does not match"
        broken = None if self.accepts else 7
        return {"ok": self.accepts, "events": 9, "head": "abc", "brokenAt": broken, "problem": problem}

    async def set_locked(self, *, locked, reviewer):
        self.seen.append((locked, reviewer.channel))
        return {"locked": locked, "text": "Locked." if locked else "Unlocked."}

    async def test_channels(self, channel):
        self.seen.append(channel)
        places = [{"channel": channel or "telegram", "place": "-100"}]
        return {"id": REQUEST_ID, "deadline": 2**42, "places": places}

    async def web_link(self):
        return {"url": "http://127.0.0.1:8717/login/x", "expiresAt": 2**42}

    async def status(self):
        return {"version": "0", "locked": False, "channels": ["web"]}

    async def subscribe(self):
        while (
            event := await self.events.get()
        ) is not None:  # None ends it, as for a reader that fell behind
            yield event


DELIVERY = {
    "channel": "web",
    "place": "",
    "ref": "1",
    "state": "failing",
    "tries": 3,
    "pending": "update",
    "dueAt": 2**42,
    "error": "busy",
}
SUMMARY = {
    "id": REQUEST_ID,
    "state": "waiting",
    "kind": "run",
    "agent": "main",
    "session": "agent:main:main",
    "command": "rm -rf build \u202e",
    "cwd": "/work",
    "placement": "sandbox",
    "reason": "no entry matches",
    "rule": "exec.miss",
    "source": "default",
    "where": None,
    "always": [],
    "createdAt": 0,
    "deadline": 2**42,
    "endedAt": None,
    "decided": None,
    "exitCode": None,
}


class Peer:
    """A client that speaks in raw lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._last = 0

    def send(self, line: bytes) -> None:
        self.writer.write(line)

    def start(self, method: str, **params: Any) -> int:
        self._last += 1
        call = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.send(json.dumps(call).encode() + b"\n")
        return self._last

    async def read(self) -> dict[str, Any] | None:
        """The next message, or None when the connection has ended."""
        async with asyncio.timeout(5):
            line = await self.reader.readline()
        return json.loads(line) if line else None

    async def answer(self, call_id: int | None) -> dict[str, Any]:
        while True:
            message = await self.read()
            assert message is not None, "the connection has ended"
            if "id" in message and message["id"] == call_id:
                return message

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.answer(self.start(method, **params))

    async def hang_up(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@dataclass
class Site:
    """The socket, and what stands behind it."""

    home: Path
    gatekeeper: FakeGatekeeper
    desk: FakeDesk
    console: FakeConsole
    permissions: MemoryPermissions
    ingress: UnixSocketIngress
    peers: list[Peer]

    @property
    def path(self) -> Path:
        return self.home / "sayso.sock"

    async def connect(self) -> Peer:
        self.peers.append(Peer(*await asyncio.open_unix_connection(self.path, limit=2**27)))
        return self.peers[-1]

    async def agent(self, held: str = "agent-token") -> Peer:
        peer = await self.connect()
        assert "result" in await peer.call("hello", token=held, role="agent")
        return peer

    async def operator(self) -> Peer:
        peer = await self.connect()
        assert "result" in await peer.call("hello", token="operator-token", role="operator")
        return peer

    async def start(self, *args: str, **env: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            SAYSO,
            *args,
            env={
                "PATH": os.environ["PATH"],
                "SAYSO_HOME": str(self.home),
                "SAYSO_TOKEN": "agent-token",
                "SAYSO_OPERATOR_TOKEN": "operator-token",
                **env,
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def sayso(self, *args: str, stdin: bytes = b"", **env: str) -> tuple[int, bytes, str]:
        """Run a command to its end: status, stdout, stderr."""
        process = await self.start(*args, **env)
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin)
        assert process.returncode is not None
        return process.returncode, out, err.decode(errors="replace")


@pytest.fixture
def short_home() -> Iterator[Path]:
    """A directory with a path short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="sayso-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def site(short_home: Path, permissions: MemoryPermissions) -> AsyncIterator[Site]:
    gatekeeper, desk, console = FakeGatekeeper(), FakeDesk(), FakeConsole()
    desks = some_desks(console=console, permissions=permissions)
    ingress = UnixSocketIngress(short_home / "sayso.sock", gatekeeper, desk, desks)
    await ingress.open()
    made = Site(short_home, gatekeeper, desk, console, permissions, ingress, [])
    yield made
    for peer in made.peers:
        peer.writer.transport.abort()
    await ingress.close()


@pytest.fixture
def until() -> Callable[..., Any]:
    async def look(condition: Callable[[], Any], seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event to offer
                await asyncio.sleep(0.01)

    return look


@pytest.fixture
def request_id() -> str:
    return REQUEST_ID
