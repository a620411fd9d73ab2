"""How long it takes from starting `sayso exec` to the daemon having its request."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time

from tests.benchmarks.figures import Figure
from tests.benchmarks.places import SAYSO

ROUNDS = 20
OUTCOME = {"status": "finished", "reason": "", "exitCode": 0, "stdout": "", "stderr": "", "id": None}


def measure() -> list[Figure]:
    """Measure against a listener that answers at once."""
    with tempfile.TemporaryDirectory(prefix="sayso-") as home, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{home}/sayso.sock")
        listener.listen()
        listener.settimeout(30)
        env = {**os.environ, "SAYSO_HOME": home, "SAYSO_TOKEN": "token"}
        _once(listener, env)  # compiled files and the page cache are there from the second time on
        times = [_once(listener, env) for _ in range(ROUNDS)]
    return [Figure("sayso exec, cold start to its request", "ms", times, at_most=60)]


def _once(listener: socket.socket, env: dict[str, str]) -> float:
    began = time.perf_counter()
    process = subprocess.Popen([SAYSO, "exec", "--", "true"], env=env)
    connection, _ = listener.accept()
    with connection, connection.makefile("rwb") as lines:
        _answer(lines, {"role": "agent", "agent": "main"})
        received = _answer(lines, OUTCOME)
    if process.wait(30) != 0:
        raise RuntimeError("sayso exec did not take the answer")
    return (received - began) * 1000


def _answer(lines: socket.SocketIO, result: dict[str, object]) -> float:
    """Read one call and answer it; returns when the call was there."""
    call = json.loads(lines.readline())
    received = time.perf_counter()
    lines.write(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}).encode() + b"\n")
    lines.flush()
    return received
