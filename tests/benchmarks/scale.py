"""Many at once: questions made durable together, many that wait, many that look on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.stores.sqlite import open_store
from bot.clock import SystemClock
from bot.config import Overrides, load
from core.model.call import CommandText, ToolCall
from core.model.plan import Binding
from core.model.request import Answer, Request, Review, State
from core.model.session import SessionKey
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import EXAMPLE, SOMEBODY_IS_ASKED, RunningDaemon, daemon, directory
from tests.core_system import ALICE, System

ROUNDS, TOGETHER = 10, 256
ANSWERS = 200
KEPT, LOOKS = 100_000, 2_000
WAITING = 10_000
CLIENTS = 1_000
IN_FLIGHT = 32
LIMITS = {"maxOpen": 100_000, "maxPerMinute": 100_000, "timeout": 3_600_000}


def measure() -> list[Figure]:
    """Measure the store and the approvals in this process, then a daemon with many who wait."""
    rates, answers, looks = asyncio.run(_in_process())
    memory, connected, told = _in_a_daemon()
    return [
        Figure(f"from request to durable, {TOGETHER} at once", "per s", rates, at_least=1500),
        Figure("from an answer to its waiter", "ms", answers, at_most=3),
        Figure(f"look-up by a prefix among {KEPT:,}, in SQLite", "us", looks, at_most=100),
        Figure(f"daemon memory, {WAITING:,} questions wait", "MB", [memory], at_most=150),
        Figure(f"{CLIENTS:,} clients connected, all of them waiting", "s", [connected]),
        Figure(f"the lock until the last of {CLIENTS:,} knows", "s", [told]),
    ]


async def _in_process() -> tuple[list[float], list[float], list[float]]:
    config = load([EXAMPLE], env=os.environ, overrides=Overrides()).config.model_dump(by_alias=True)
    config["approvals"]["exec"] |= LIMITS
    with directory() as root:
        async with open_store(root / "sayso.db") as store:
            system = System(store, SystemClock(), root, config, ("web",), FilesystemResolver())
            template = await _template(system)
            rates = [await _rate(system, template, number) for number in range(ROUNDS)]
            answers = [await _answered(system, template, number) for number in range(ANSWERS)]
        return rates, answers, list(_looks(root / "sayso.db"))


async def _template(system: System) -> Request:
    call = ToolCall("exec", SessionKey.main("main"), command=CommandText(line="touch file"))
    asked = await system.gate.ask(call, None)
    kept = await system.store.request(asked.request_id or "")
    if kept is None:
        raise RuntimeError(f"nobody is asked: {asked}")
    return replace(kept, copies=())


def _like(template: Request, name: str) -> Request:
    return replace(template, id=name, binding=Binding(f"{name:0>64}", template.binding.parts))


async def _rate(system: System, template: Request, round_number: int) -> float:
    """Put questions that are decided already; each is on the disk before its asker goes on."""
    names = [f"{round_number:04x}{number:04x}-rate" for number in range(TOGETHER)]
    began = time.perf_counter()
    await asyncio.gather(*(system.approvals.ask(_like(template, name)) for name in names))
    return TOGETHER / (time.perf_counter() - began)


async def _answered(system: System, template: Request, number: int) -> float:
    name = f"{number:08x}-answer"
    await system.approvals.ask(_like(template, name))
    waiter = asyncio.create_task(system.ledger.until(name, State.APPROVED))
    await asyncio.sleep(0.002)
    began = time.perf_counter()
    reviewing = asyncio.create_task(system.approvals.review(Review(name, Answer.ALLOW_ONCE, ALICE)))
    await waiter
    took = (time.perf_counter() - began) * 1000
    await reviewing
    return took


def _looks(path: Path) -> Iterator[float]:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT * FROM requests LIMIT 1").fetchone()
        slots = ", ".join("?" * len(row))
        copies = ((None, f"{number * 40_503 % 2**32:08x}-{number}", *row[2:]) for number in range(KEPT))
        connection.executemany(f"INSERT INTO requests VALUES ({slots})", copies)  # noqa: S608 - question marks
        connection.commit()
        sql = "SELECT body FROM requests WHERE id >= ? AND id < ? ORDER BY id LIMIT 10"
        for _ in range(LOOKS):
            prefix = f"{random.SystemRandom().randrange(KEPT) * 40_503 % 2**32:08x}"
            began = time.perf_counter()
            connection.execute(sql, (prefix, prefix + "\x7f")).fetchall()
            yield (time.perf_counter() - began) * 1e6


def _in_a_daemon() -> tuple[float, float, float]:
    with daemon(SOMEBODY_IS_ASKED) as running, ExitStack() as stack:
        _put_many(running)
        memory = running.memory()["Rss"]
        began = time.perf_counter()
        lines = [_waiting_client(stack, running, number) for number in range(CLIENTS)]
        connected = time.perf_counter() - began
        began = time.perf_counter()
        running.sayso("lock")
        for line in lines:
            while b'"id": 2' not in (answer := line.readline()).replace(b'"id":2', b'"id": 2'):
                if not answer:
                    raise RuntimeError("the daemon hung up")
        return memory, connected, time.perf_counter() - began


def _put_many(running: RunningDaemon) -> None:
    """Put questions over one connection, some of them in flight at a time."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(60)
        line.connect(str(running.socket))
        line.sendall(_call(0, "hello", token=running.token, role="agent"))
        with line.makefile("rb") as answers:
            answers.readline()
            for first in range(0, WAITING, IN_FLIGHT):
                numbers = range(first, min(first + IN_FLIGHT, WAITING))
                line.sendall(b"".join(_question(number) for number in numbers))
                if not all(b"accepted" in answers.readline() for _ in numbers):
                    raise RuntimeError("nobody is asked")


def _question(number: int) -> bytes:
    return _call(number + 1, "exec.approval.request", argv=["touch", f"file{number}"], twoPhase=True)


def _waiting_client(stack: ExitStack, running: RunningDaemon, number: int):
    line = stack.enter_context(socket.socket(socket.AF_UNIX))
    line.settimeout(60)
    line.connect(str(running.socket))
    line.sendall(_call(1, "hello", token=running.token, role="agent"))
    line.sendall(_call(2, "exec.approval.request", argv=["touch", f"file{number}"]))
    answers = stack.enter_context(line.makefile("rb"))
    if not any(b"exec.approval.requested" in answer for answer in answers):
        raise RuntimeError("the daemon hung up")
    return answers


def _call(number: int, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
