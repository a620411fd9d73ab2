"""What outlives the daemon to end what it left: told of runs, gone with the last of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.runners.guardian import Guardian
from core.errors import StartError
from tests.integration.runners.kit import processes_with

# A daemon with three runs, of which one has ended, that is killed; the runs are held by nothing.
DAEMON = """
import os, signal, subprocess, sys
from adapters.runners.guardian import Guardian

guardian = Guardian().__enter__()
guardian.wait()
runs = []
for name in ("one", "two", "three"):
    of_run = {"SAYSO_RUN": f"{name}-{sys.argv[1]}"}
    subprocess.Popen(["sleep", sys.argv[1]], env=of_run, start_new_session=True, stdout=subprocess.DEVNULL)
    runs.append(guardian.over(of_run["SAYSO_RUN"]))
    runs[-1].__enter__()
runs[-1].__exit__(None, None, None)
print(guardian.pid(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    with Guardian() as guardian:
        guardian.wait()
        yield guardian


def wait_for_end(pid: int) -> None:
    """Wait until a process that is no child of this one has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], 10)[0], f"{pid} does not end"
    finally:
        os.close(descriptor)


def test_what_a_killed_daemon_left_is_ended_and_only_that() -> None:
    tag = f"49.{os.getpid()}"
    daemon = subprocess.run(
        [sys.executable, "-c", DAEMON, tag],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    wait_for_end(int(daemon.stdout))
    (left,) = processes_with(tag)
    assert f"SAYSO_RUN=three-{tag}".encode() in Path(f"/proc/{left}/environ").read_bytes()
    os.kill(left, signal.SIGKILL)


def test_it_goes_with_a_daemon_that_stops(guardian: Guardian) -> None:
    pid = guardian.pid()
    with guardian.over("a run"):
        pass
    guardian.__exit__(None, None, None)
    assert not Path(f"/proc/{pid}").exists()


def test_runs_go_on_where_it_was_killed_and_that_is_told_once(guardian: Guardian, caplog) -> None:
    os.kill(guardian.pid(), signal.SIGKILL)
    wait_for_end(guardian.pid())
    for number in range(3):
        with guardian.over(f"run {number}"):
            pass
    (said,) = caplog.records
    assert "restart Sayso" in said.getMessage()


def test_one_that_does_not_listen_ends_no_run_of_a_daemon_that_lives(guardian: Guardian, caplog) -> None:
    tag = f"50.{os.getpid()}"
    with subprocess.Popen(["sleep", tag], env={"SAYSO_RUN": tag}) as run:
        with guardian.over(tag):
            os.kill(guardian.pid(), signal.SIGSTOP)
            for number in range(10_000):
                with guardian.over(f"run {number}"):
                    pass
            os.kill(guardian.pid(), signal.SIGCONT)
        guardian.__exit__(None, None, None)
        assert run.poll() is None
        run.kill()
    assert len(caplog.records) == 1


def test_a_thousand_runs_at_once_are_told_of(guardian: Guardian, caplog) -> None:
    with contextlib.ExitStack() as runs:
        for number in range(1000):
            runs.enter_context(guardian.over(f"run {number}"))
    assert caplog.records == []


def test_a_start_without_it_is_refused() -> None:
    with Guardian() as guardian:
        os.kill(guardian.pid(), signal.SIGKILL)
        with pytest.raises(StartError, match="did not start"):
            guardian.wait()


def test_one_that_was_never_opened_does_nothing() -> None:
    guardian = Guardian()
    guardian.wait()
    with guardian.over("a run"):
        assert guardian.pid() is None
