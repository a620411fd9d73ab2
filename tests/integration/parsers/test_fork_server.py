"""Workers come from one process that was loaded once: what is on disk later counts for nothing."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import bashlex
import pytest

from adapters.parsers.forking import LOST
from adapters.parsers.pool import ParserPool
from core.errors import StartError
from core.shell.parse import parse
from core.shell.scan import Refused
from tests.benchmarks.analysis import LINES

ROOT = Path(__file__).parents[3]
NEEDS_GRAMMAR = "echo $X | cat"
PATIENT_S = 20.0
# What a worker would answer whose files were exchanged: one harmless command, whatever was asked.
EXCHANGED = """
def parse_by_grammar(text):
    from core.shell.scan import scan
    from core.shell.assemble import assemble
    return assemble(scan("true $X"))
def parse_plain(text):
    return None
"""


@pytest.fixture
def pool():
    with ParserPool(deadline_s=PATIENT_S) as opened:
        opened.start()
        opened.wait()
        yield opened


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A copy of the program, with its grammar, from which pools of this test are started."""
    for name in ("core", "adapters"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(bashlex.__file__).parent, tmp_path / "bashlex")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def refusal_of(pool, line=NEEDS_GRAMMAR):
    with pytest.raises(Refused) as found:
        pool.parse(line)
    return found.value.refusal


def eventually(look: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, look
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """Tell whether a process has ended; where nobody fetches its status, it stays as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except OSError:
        return True


def kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: gone(pid))


def descriptors(pid: int) -> dict[str, Path]:
    found = {}
    for number in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[number.name] = number.readlink()
    return found


def children(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def exchange(program: Path) -> None:
    for file in (*program.glob("adapters/parsers/*.py"), *program.glob("bashlex/*.py")):
        file.write_text("raise SystemExit('exchanged')\n")
    (program / "core" / "shell" / "parse.py").write_text(EXCHANGED)


def test_a_replaced_worker_runs_what_was_loaded_at_the_start(program):
    with ParserPool(deadline_s=PATIENT_S) as pool:
        pool.start()
        pool.wait()
        exchange(program)
        before = pool.pids()
        kill(before)
        assert [pool.parse(NEEDS_GRAMMAR) for _ in before] == [parse(NEEDS_GRAMMAR)] * 2
        assert not set(pool.pids()) & set(before)


def test_a_pool_that_starts_after_the_exchange_runs_what_is_there_then(program):
    """The positive control: the exchanged files decide where they are read at all."""
    (program / "core" / "shell" / "parse.py").write_text(EXCHANGED)
    with ParserPool(deadline_s=PATIENT_S) as pool:
        assert pool.parse(NEEDS_GRAMMAR) == parse("true $X")
    exchange(program)
    with ParserPool() as pool:
        assert refusal_of(pool).construct == "parser-failed"


def test_where_the_fork_server_cannot_start_nobody_waits_for_ever(program, caplog):
    (program / "adapters" / "parsers" / "worker.py").write_text("raise SystemExit('damaged')\n")
    with ParserPool() as pool:
        pool.start()
        with pytest.raises(StartError, match="parser of command lines did not start"):
            pool.wait()
        assert refusal_of(pool).reason == LOST
    assert LOST in caplog.text


def test_the_fork_server_is_one_clean_thread_without_descriptors_of_the_daemon(monkeypatch):
    monkeypatch.setenv("SAYSO_SECRET", "hidden")
    ours, theirs = socket.socketpair()
    with ours, theirs, ParserPool() as other:
        ours.set_inheritable(True)
        other.start()
        other.wait()
        server = other.fork_server.pid()
        # The descriptor of a worker's socket is closed as soon as the worker has it.
        eventually(lambda: sorted(descriptors(server)) == ["0", "1", "2"])
        described = descriptors(server)
        assert str(described["0"]).startswith("socket:")
        assert {str(described["1"]), str(described["2"])} == {"/dev/null"}
        assert os.listdir(f"/proc/{server}/task") == [str(server)]  # noqa: PTH208 - names are wanted
        assert children(server) == set(other.pids())
        if os.geteuid() == 0:
            assert b"hidden" not in Path(f"/proc/{server}/environ").read_bytes()


SERVING = """
import sys
from adapters.parsers.pool import ParserPool
with ParserPool(deadline_s=60) as pool:
    pool.start()
    pool.wait()
    print(pool.fork_server.pid(), *pool.pids(), flush=True)
    sys.stdin.read()
"""
READ = "import sys; print(open(f'/proc/{sys.argv[1]}/environ').read())"
# Root without any capability is a user like every other.
AS_ANOTHER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def python(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*AS_ANOTHER, sys.executable, *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_workers_and_their_server_are_closed_to_other_processes_of_their_user():
    """Else one could write code into what parses. What starts them is open here: the positive control."""
    with python("-c", SERVING) as serving:
        pids = serving.stdout.readline().split()
        answers = [python("-c", READ, pid).communicate(timeout=20) for pid in (str(serving.pid), *pids)]
        serving.communicate(timeout=20)
    assert len(pids) == 3
    assert "PATH=" in answers[0][0]
    assert ["PermissionError" in err for _, err in answers] == [False, True, True, True]


def test_a_worker_can_open_no_file_and_parses_all_the_same(pool):
    for pid in pool.pids():
        limits = Path(f"/proc/{pid}/limits").read_text()
        rows = {row[:25].strip(): row[25:].split()[:2] for row in limits.splitlines()[1:]}
        for name in ("Max open files", "Max processes", "Max file size", "Max core file size"):
            assert rows[name] == ["0", "0"], name
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) == 3
    for line in (*LINES, *(f"{line}; echo $X" for line in LINES), "echo 'x", "case x in x) ;; esac", "((1))"):
        assert outcome_of(pool.parse, line) == outcome_of(parse, line)


def outcome_of(parsing, line):
    try:
        return parsing(line)
    except Refused as refused:
        return refused.refusal


def test_after_the_fork_server_has_died_only_plain_lines_are_parsed(pool, caplog):
    caplog.set_level(logging.WARNING)
    pids, server = pool.pids(), pool.fork_server.pid()
    os.kill(server, signal.SIGKILL)
    eventually(lambda: all(gone(pid) for pid in pids))
    assert [refusal_of(pool).construct for _ in range(4)] == ["parser-failed"] * 4
    assert refusal_of(pool).reason == LOST
    assert "restart Sayso" in LOST
    assert pool.parse("git status | wc -l") == parse("git status | wc -l")
    assert pool.pids() == []
    assert pool.fork_server.pid() is None
    assert [record.levelname for record in caplog.records if LOST in record.message] == ["ERROR"]


def test_a_fork_server_that_does_not_answer_counts_as_dead(pool, caplog):
    pids, server = pool.pids(), pool.fork_server.pid()
    os.kill(server, signal.SIGSTOP)
    kill(pids)
    assert refusal_of(pool).reason == LOST
    assert gone(server)
    assert LOST in caplog.text


def test_a_stopped_worker_dies_with_its_server(pool):
    pids = pool.pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    os.kill(pool.fork_server.pid(), signal.SIGKILL)
    eventually(lambda: all(gone(pid) for pid in pids))


def test_nothing_is_left_of_a_daemon_that_was_killed():
    """Also of a worker that parses, and would not read that its socket has ended."""
    with python("-c", SERVING) as daemon:
        pids = [int(pid) for pid in daemon.stdout.readline().split()]
        os.kill(pids[1], signal.SIGSTOP)
        assert len(pids) == 3
        assert not any(gone(pid) for pid in pids)
        daemon.kill()
    eventually(lambda: all(gone(pid) for pid in pids))


def test_an_answer_that_nobody_asked_for_is_never_taken_for_the_next_lines(pool):
    """A worker that answers late, or twice, is replaced."""
    (first, _) = pool.pids()
    connection = pool._workers[0]._socket
    connection.sendall(b'"echo $FORGED"\n')
    assert select.select([connection], [], [], PATIENT_S)[0]
    assert [pool.parse(NEEDS_GRAMMAR) for _ in range(2)] == [parse(NEEDS_GRAMMAR)] * 2
    assert first not in pool.pids()


def test_a_replacement_is_there_far_sooner_than_a_first_worker():
    """It is forked; the first one waits until all was read from disk. The best of ten is hardly the load."""
    began = time.perf_counter()
    with ParserPool(workers=1, deadline_s=PATIENT_S) as pool:
        assert pool.parse(NEEDS_GRAMMAR)
        first = time.perf_counter() - began
        replaced = []
        for _ in range(10):
            kill(pool.pids())
            began = time.perf_counter()
            assert pool.parse(NEEDS_GRAMMAR)
            replaced.append(time.perf_counter() - began)
    assert min(replaced) < first / 3
