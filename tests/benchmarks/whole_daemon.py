"""A daemon as a process: its start, its memory, what a question adds to it, and a command from end to end."""

from __future__ import annotations

import time
from pathlib import Path

from bot.client import Client
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import SOMEBODY_IS_ASKED, RunningDaemon, daemon

RUNS = 50
WARM_UP, QUESTIONS = 100, 1000
MOST_MB = 90
_KB_PER_MB = 1000 / 1.024


def measure() -> list[Figure]:
    """Start a daemon, look at its memory, and ask it for `git --version` again and again."""
    began = time.perf_counter()
    with daemon() as running:
        started = time.perf_counter() - began
        at_rest = _memory(running)
        times = [_once(running) for _ in range(RUNS)]
        afterwards = _memory(running)
    return [
        Figure("daemon start to ready", "ms", [started * 1000]),
        Figure("daemon memory at rest, resident", "MB", [at_rest["Rss"]], at_most=MOST_MB),
        Figure("daemon memory at rest, its share", "MB", [at_rest["Pss"]]),
        Figure(f"daemon memory after {RUNS} requests, resident", "MB", [afterwards["Rss"]], at_most=MOST_MB),
        Figure("sayso exec -- git --version, end to end", "ms", times),
        Figure(f"memory of a question, of {QUESTIONS:,} that wait", "kB", [_per_question()]),
    ]


def _per_question() -> float:
    """Tell what a question that waits adds to the daemon's memory."""
    with daemon(SOMEBODY_IS_ASKED) as running:
        _ask(running, 0, WARM_UP)
        before = _memory(running)["Rss"]
        _ask(running, WARM_UP, WARM_UP + QUESTIONS)
        return (_memory(running)["Rss"] - before) * 1000 / QUESTIONS


def _ask(running: RunningDaemon, first: int, end: int) -> None:
    home = running.root / "home"
    token = (home / "agents" / "main.token").read_text().strip()
    with Client(str(home / "sayso.sock"), token) as client:
        for number in range(first, end):
            params = {"argv": ["touch", f"file{number}"], "twoPhase": True}
            answer = client.call("exec.approval.request", params)
            if answer["status"] != "accepted":
                raise RuntimeError(f"nobody is asked: {answer}")


def _once(running: RunningDaemon) -> float:
    began = time.perf_counter()
    done = running.sayso("exec", "--", "git", "--version")
    if not done.stdout.startswith("git version"):
        raise RuntimeError(f"git did not run: {done}")
    return (time.perf_counter() - began) * 1000


def _memory(running: RunningDaemon) -> dict[str, float]:
    """Read resident memory, and the share that counts shared pages by how many share them."""
    lines = Path(f"/proc/{running.pid}/smaps_rollup").read_text().splitlines()[1:]
    pairs = (line.split()[:2] for line in lines)
    return {name.rstrip(":"): int(kb) / _KB_PER_MB for name, kb in pairs}
