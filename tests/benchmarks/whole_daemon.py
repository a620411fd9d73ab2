"""A daemon as a process: its start, its memory, and a command from end to end."""

from __future__ import annotations

import time

from tests.benchmarks.figures import Figure
from tests.benchmarks.places import RunningDaemon, daemon

RUNS = 50
MOST_MB = 90


def measure() -> list[Figure]:
    """Start a daemon, look at its memory, and ask it for `git --version` again and again."""
    began = time.perf_counter()
    with daemon() as running:
        started = time.perf_counter() - began
        at_rest = running.memory()
        times = [_once(running) for _ in range(RUNS)]
        afterwards = running.memory()
    return [
        Figure("daemon start to ready", "ms", [started * 1000]),
        Figure("daemon memory at rest, resident", "MB", [at_rest["Rss"]], at_most=MOST_MB),
        Figure("daemon memory at rest, its share", "MB", [at_rest["Pss"]]),
        Figure(f"daemon memory after {RUNS} requests, resident", "MB", [afterwards["Rss"]], at_most=MOST_MB),
        Figure("sayso exec -- git --version, end to end", "ms", times),
    ]


def _once(running: RunningDaemon) -> float:
    began = time.perf_counter()
    done = running.sayso("exec", "--", "git", "--version")
    if not done.stdout.startswith("git version"):
        raise RuntimeError(f"git did not run: {done}")
    return (time.perf_counter() - began) * 1000
