"""Parsing in processes of their own: hostile lines, killed workers, many at once, the event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.parsers.pool import ParserPool
from adapters.parsers.wire import decode_answer, decode_line, encode_commands, encode_line
from adapters.parsers.worker import MEMORY
from core.shell.parse import parse, parse_by_grammar
from core.shell.scan import Refused

NEEDS_GRAMMAR = "find . -name '*.py' -exec wc -l {} \\; | sort $X"
SLOW = "echo " + "$XXXXXXXXXXXX " * 4000  # keeps the grammar busy for a tenth of a second or longer
PATIENT_S = 20.0


@pytest.fixture
def pool():
    with ParserPool(deadline_s=PATIENT_S) as opened:
        yield opened


@pytest.fixture
def strict():
    """A pool of one worker with so little patience that a big line is too slow."""
    with ParserPool(workers=1, deadline_s=0.04) as opened:
        yield opened


def construct_of(parsing, line):
    with pytest.raises(Refused) as found:
        parsing.parse(line)
    return found.value.refusal.construct


def wait_for_death(pid):
    """Wait until a process has ended; until its status is fetched it stays as a zombie."""
    with suppress(FileNotFoundError, ProcessLookupError):
        while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z":
            time.sleep(0.01)


def answers(parsing, line=NEEDS_GRAMMAR):
    """Ask until there is an answer: under load even a short line may be too slow for a strict pool."""
    for _ in range(50):
        try:
            return parsing.parse(line)
        except Refused as refused:
            if refused.refusal.construct != "too-slow":
                raise
    raise AssertionError("no worker ever answered")


def until_too_slow(parsing):
    """Ask until the line is too slow, and return whose it was.

    Where the machine is busy, the answer may be there once the waiting thread is given the processor again.
    """
    for _ in range(50):
        before = parsing.pids()
        try:
            parsing.parse(SLOW)
        except Refused as refused:
            if refused.refusal.construct == "too-slow":
                return before
            raise
    raise AssertionError("no worker was ever too slow")


@pytest.mark.parametrize(
    "line",
    [
        NEEDS_GRAMMAR,
        "git status | wc -l",
        "A=$X B='x y' make \\\n -j4 2>&1 >/dev/null &",
        'echo "é \\$x" ~/a {a,b} *.c; [ -f x ] && cd /tmp',
    ],
)
def test_what_a_worker_parses_is_what_is_parsed_here(pool, line):
    assert pool.parse(line) == parse(line)


@pytest.mark.parametrize(
    "line", ["echo $(id)", 'echo "${x', "[[ -f x ]]", "ls > x", "echo 'x", "", "if a; then"]
)
def test_a_refusal_of_a_worker_is_the_refusal_here(pool, line):
    with pytest.raises(Refused) as here:
        parse(line)
    with pytest.raises(Refused) as there:
        pool.parse(line)
    assert there.value.refusal == here.value.refusal


@given(st.text(st.characters(codec=None), max_size=80))
@settings(max_examples=200, deadline=None)
def test_every_text_reaches_a_worker_as_it_is(text):
    assert decode_line(encode_line(text)) == text
    assert encode_line(text).count(b"\n") == 1


@given(st.text("ab '\"$X{},~*=\\;|&\n", max_size=30))
@settings(max_examples=300, deadline=None)
def test_what_was_parsed_comes_back_as_it_was(line):
    try:
        commands = parse_by_grammar(line)
    except Refused:
        return
    assert decode_answer(encode_commands(commands)) == commands


def test_plain_lines_need_no_worker_at_all(pool):
    assert pool.parse("git log --oneline | head -5")
    assert pool.pids() == []


def test_workers_start_without_anybody_waiting_for_them(pool):
    began = time.perf_counter()
    pool.start()
    assert time.perf_counter() - began < 1
    assert len(set(pool.pids())) == 2
    assert pool.parse(NEEDS_GRAMMAR)


def test_a_line_that_takes_too_long_is_refused_and_the_worker_is_replaced(strict):
    answers(strict)
    before = until_too_slow(strict)
    assert strict.pids() != before
    assert not Path(f"/proc/{before[0]}").exists()
    assert answers(strict) == parse(NEEDS_GRAMMAR)


def test_a_worker_that_never_answers_is_killed_at_the_deadline(strict):
    answers(strict)
    (stopped,) = strict.pids()
    os.kill(stopped, signal.SIGSTOP)
    began = time.perf_counter()
    assert construct_of(strict, NEEDS_GRAMMAR) == "too-slow"
    assert time.perf_counter() - began < 5
    assert not Path(f"/proc/{stopped}").exists()
    assert answers(strict)


def test_a_worker_that_was_killed_meanwhile_is_replaced_before_anybody_notices(pool):
    pool.start()
    pool.parse(NEEDS_GRAMMAR)
    for pid in pool.pids():
        os.kill(pid, signal.SIGKILL)
        wait_for_death(pid)
    assert pool.parse(NEEDS_GRAMMAR) == pool.parse(NEEDS_GRAMMAR) == parse(NEEDS_GRAMMAR)


def test_a_worker_that_dies_over_a_line_costs_that_line_only(pool):
    pool.start()
    answers(pool)
    victims = pool.pids()
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(construct_of, pool, NEEDS_GRAMMAR)
        time.sleep(0.2)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        assert found.result(30) == "parser-failed"
    for pid in victims:
        wait_for_death(pid)
    assert pool.parse(NEEDS_GRAMMAR) == parse(NEEDS_GRAMMAR)


def test_many_threads_get_each_its_own_answer(pool):
    lines = [f"echo $X{number} | cat" for number in range(200)]
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(pool.parse, lines))
    assert [commands[0].words[1].source for commands in found] == [f"$X{number}" for number in range(200)]
    assert len(pool.pids()) <= 2


def test_lines_that_would_wait_too_long_are_refused():
    with ParserPool(workers=1, deadline_s=5, waiting_s=0.05) as busy:
        answers(busy)
        (pid,) = busy.pids()
        os.kill(pid, signal.SIGSTOP)
        holding = threading.Thread(target=construct_of, args=(busy, NEEDS_GRAMMAR))
        holding.start()
        time.sleep(0.2)
        assert construct_of(busy, NEEDS_GRAMMAR) == "parser-busy"
        assert busy.parse("git status")
        os.kill(pid, signal.SIGKILL)
        holding.join(30)


def test_a_closed_pool_refuses_and_leaves_no_process_behind(pool):
    pool.start()
    pool.parse(NEEDS_GRAMMAR)
    pids = pool.pids()
    pool.close()
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert construct_of(pool, NEEDS_GRAMMAR) == "parser-failed"
    assert pool.pids() == []


def test_a_worker_is_bound_in_memory_and_may_not_write_files(pool):
    pool.start()
    pool.parse(NEEDS_GRAMMAR)
    for pid in pool.pids():
        limits = Path(f"/proc/{pid}/limits").read_text()
        rows = {row[:25].strip(): row[25:].split() for row in limits.splitlines()[1:]}
        if rows["Max address space"][0] == str(MEMORY):
            assert rows["Max file size"][0] == "0"
            assert rows["Max cpu time"][0] != "unlimited"
            return
    raise AssertionError("no worker has bound itself")


def test_a_worker_has_nothing_of_the_environment(pool, monkeypatch):
    monkeypatch.setenv("SAYSO_SECRET", "hidden")
    pool.start()
    pool.parse(NEEDS_GRAMMAR)
    for pid in pool.pids():
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"PYTHONPATH" in environment
        assert b"hidden" not in environment


HOSTILE = [
    SLOW,
    "echo " + "'\"'\"" * 13_000,
    "echo " + "{a,b}" * 13_000,
    "echo " + "~" * 65_000,
    "echo " + "é" * 60_000,
    "A=1 " * 4000 + "$X",
    "a" + " 2>&1" * 4000 + " $X",
    "echo " + "\\a" * 32_000,
    ";".join(["bash -c 'echo $X'"] * 64),
    "a;" * 10_000,
    "bash -c " * 1000,
    "echo " + "$(" * 20_000,
    "echo " + '"${x' * 10_000,
    "x" * 65_536,
    "\n" * 65_000,
]


LATEST_S = 5.0  # far beyond what a busy machine costs, far below what parsing on the loop would


async def test_hostile_lines_leave_the_event_loop_alone():
    """The worst of many pauses is compared with a generous bound; parsing here would take far longer."""
    with ParserPool() as pool:
        pool.start()
        waits: list[float] = []
        ended = asyncio.Event()

        async def watch() -> None:
            while not ended.is_set():
                began = time.perf_counter()
                await asyncio.sleep(0.001)
                waits.append(time.perf_counter() - began - 0.001)

        watching = asyncio.create_task(watch(), name="watch")
        try:
            await asyncio.gather(*(asyncio.to_thread(_refused_or_parsed, pool, line) for line in HOSTILE * 2))
        finally:
            ended.set()
            await watching
    assert len(waits) > 50
    assert max(waits) < LATEST_S


def _refused_or_parsed(pool, line):
    try:
        return bool(pool.parse(line))
    except Refused as refused:
        return refused.refusal.construct
