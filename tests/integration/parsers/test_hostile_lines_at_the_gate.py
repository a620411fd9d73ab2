"""Hostile lines all the way through the gate: the event loop goes on, and others get their answers."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from adapters.parsers.pool import ParserPool
from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from core.judge import Judge
from core.model.call import CommandText, ToolCall
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.session import SessionKey

HOSTILE = [
    "echo " + "$X" * 30_000,
    "echo " + "* " * 4000,
    "rg " + "é" * 60_000,
    "python3 -c '" + "sayso " * 10_000 + "'",
    "echo $(" + "sayso " * 10_000,
    "A=1 " * 4000 + "git x",
    ";".join(["bash -c 'rg x; ls; git x'"] * 15),
    "x " * 4000,
    "a;" * 10_000,
    "rg " + "/*/?/[a]/{b} " * 3000,
]
LATEST_S = 5.0  # far beyond what a busy machine costs, far below what parsing on the loop would


@pytest.fixture
def guarded(system):
    """The core with lines parsed in processes, as the daemon has it."""
    names = SystemNameResolver()
    with ParserPool() as pool:
        pool.start()
        judge = system.judge
        system.judge = Judge(judge.config, judge.site, FilesystemResolver(), names, parse=pool.parse)
        yield system
    names.close()


def call_by(agent, line):
    return ToolCall("exec", SessionKey.main(agent), command=CommandText(line=line))


async def test_the_event_loop_goes_on_while_hostile_lines_are_judged(guarded):
    waits, ended = [], asyncio.Event()

    async def watch():
        while not ended.is_set():
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            waits.append(time.perf_counter() - began - 0.001)

    watching = asyncio.create_task(watch(), name="watch")
    asked = await asyncio.gather(*(guarded.gate.consider(call_by("main", line)) for line in HOSTILE))
    ended.set()
    await watching
    assert [case.facts.text[:30] for case, verdict in asked if verdict.effect is Effect.ALLOW] == []
    assert len(waits) > 50
    assert max(waits) < LATEST_S


async def test_one_agents_hostile_lines_do_not_hold_up_another_agent(guarded):
    flood = [
        asyncio.create_task(guarded.gate.consider(call_by("main", HOSTILE[0])), name=f"flood {number}")
        for number in range(12)
    ]
    await asyncio.sleep(0.1)
    began = time.perf_counter()
    _, verdict = await guarded.gate.consider(call_by("other", "git status"))
    plain = time.perf_counter() - began
    case, _ = await guarded.gate.consider(call_by("other", 'echo "$X"'))
    by_grammar = time.perf_counter() - began - plain
    assert verdict.effect.name == "DENY" or case.facts is not None
    assert plain < LATEST_S
    assert by_grammar < 4
    assert any(not task.done() for task in flood) or plain + by_grammar < 1
    await asyncio.gather(*flood)


async def test_a_line_that_cannot_be_parsed_in_time_is_refused_by_name_at_the_gate(guarded):
    with ParserPool(workers=1, deadline_s=0.05) as hasty:
        hasty.start()
        (parser,) = hasty.pids()
        # It never answers: one that runs may have answered by the time the waiting thread is given the
        # processor again, and an answer that is there is taken.
        os.kill(parser, signal.SIGSTOP)
        judge = guarded.judge
        guarded.judge = Judge(
            judge.config, judge.site, FilesystemResolver(), SystemNameResolver(), parse=hasty.parse
        )
        outcome = await guarded.gate.ask(call_by("main", HOSTILE[0]), None)
    assert outcome.status is Status.DENIED
    assert "50 ms" in outcome.reason
