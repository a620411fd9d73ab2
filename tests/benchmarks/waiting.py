"""What a question adds to the daemon's memory while it waits for people."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from bot.client import Client
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import SOMEBODY_IS_ASKED, RunningDaemon, daemon

WARM_UP, QUESTIONS = 100, 1000
ASKERS = 400  # with the warm-up, well below the 1,024 files that a process may have open by default

Ask = Callable[[ExitStack, RunningDaemon, int], None]


def measure() -> list[Figure]:
    """Measure questions whose askers hung up, and questions whose askers stay connected."""
    return [
        Figure(f"memory of a question, {QUESTIONS:,} wait", "kB", [per_question(put, QUESTIONS)]),
        Figure(f"the same, {ASKERS} with their askers connected", "kB", [per_question(ask_to_run, ASKERS)]),
    ]


def per_question(ask: Ask, count: int, warm_up: int = WARM_UP) -> float:
    """Ask so often, and tell how many kB each question added to what the daemon holds."""
    with daemon(SOMEBODY_IS_ASKED) as running, ExitStack() as stack:
        for number in range(warm_up):
            ask(stack, running, number)
        before = running.memory()["Rss"]
        for number in range(warm_up, warm_up + count):
            ask(stack, running, number)
        return (running.memory()["Rss"] - before) * 1000 / count


def put(_stack: ExitStack, running: RunningDaemon, number: int) -> None:
    """Put a question, and hang up."""
    with Client(str(running.socket), running.token) as client:
        params = {"argv": ["touch", f"file{number}"], "twoPhase": True}
        answer = client.call("exec.approval.request", params)
    if answer["status"] != "accepted":
        raise RuntimeError(f"nobody is asked: {answer}")


def ask_to_run(stack: ExitStack, running: RunningDaemon, number: int) -> None:
    """Ask to run, and stay connected while people are asked."""
    line = stack.enter_context(socket.socket(socket.AF_UNIX))
    line.settimeout(30)
    line.connect(str(running.socket))
    line.sendall(_call(1, "hello", token=running.token, role="agent"))
    line.sendall(_call(2, "exec.run", argv=["touch", f"file{number}"]))
    with line.makefile("rb") as answers:
        if not any(b"exec.approval.requested" in answer for answer in answers):
            raise RuntimeError("the daemon hung up")


def _call(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
