"""What outlives the daemon to end what it left: told of runs, gone with the last of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.runners.guardian import Guardian
from core.errors import StartError
from tests.integration.runners.kit import Place, processes_with

# A daemon with three runs, of which one has ended, that is killed; the runs are held by nothing. Before, its
# guardian is killed so many times, and the first time there is another when the daemon goes on.
DAEMON = """
import os, signal, subprocess, sys, time
from adapters.runners.guardian import Guardian

def there(pid):
    return os.path.exists(f"/proc/{pid}")

guardian = Guardian().__enter__()
guardian.wait()
runs = []
for name in ("one", "two", "three"):
    of_run = {"SAYSO_RUN": f"{name}-{sys.argv[1]}"}
    subprocess.Popen(["sleep", sys.argv[1]], env=of_run, start_new_session=True, stdout=subprocess.DEVNULL)
    runs.append(guardian.over(of_run["SAYSO_RUN"]))
    runs[-1].__enter__()
runs[-1].__exit__(None, None, None)
for kill in range(int(sys.argv[2])):
    killed = guardian.pid()
    os.kill(killed, signal.SIGKILL)
    while there(killed) or (kill == 0 and (guardian.pid() == killed or guardian._control is None)):
        time.sleep(0.01)
print(guardian.pid(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


# A daemon that is killed while it tries whether it can hold runs, before what it tries dies with it.
TRYING = """
import os, signal, subprocess, sys, time
from pathlib import Path
from threading import Thread
from adapters.runners import host_trial
from adapters.runners.guardian import Guardian
from tests.integration.runners.kit import place_on_disk, processes_with

guardian = Guardian().__enter__()
guardian.wait()
options = host_trial.namespace_options
early = lambda *given, **more: [word for word in options(*given, **more) if word != "--die-with-parent"]
host_trial.namespace_options = early
host_trial._LOOK = f"sleep {sys.argv[1]}; :"
with place_on_disk(sys.argv[2]) as place:
    told = (guardian,) if sys.argv[3] == "told" else ()
    Thread(target=host_trial.why_not_held, args=(place.on_the_host, *told), daemon=True).start()
    while not any(Path(f"/proc/{pid}/comm").read_text() == "sleep\\n" for pid in processes_with(sys.argv[1])):
        time.sleep(0.01)
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


def left_by_daemon(tag: str, kills: int) -> list[str]:
    """Return the runs that go on when a daemon was killed, and its guardian so many times before."""
    daemon = subprocess.run(
        [sys.executable, "-c", DAEMON, tag, str(kills)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    wait_for_end(int(daemon.stdout))
    left = processes_with(tag)
    runs = [run_of(pid).removesuffix(f"-{tag}") for pid in left]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return sorted(runs)


def run_of(pid: int) -> str:
    environment = Path(f"/proc/{pid}/environ").read_bytes().decode().rstrip("\0")
    return environment.removeprefix("SAYSO_RUN=")


@pytest.mark.parametrize(
    ("kills", "left"),
    [(0, ["three"]), (1, ["three"]), (2, ["one", "three", "two"])],
    ids=["never", "once, so that there is another", "again, and no run had begun since"],
)
def test_what_a_killed_daemon_left_is_ended_and_only_that_though_its_guardian_was_killed(
    kills: int, left: list[str]
) -> None:
    assert left_by_daemon(f"49{kills}.{os.getpid()}", kills) == left


@pytest.mark.parametrize("told", [True, False])
def test_what_is_tried_before_anything_runs_is_ended_too_where_the_guardian_is_told(
    place: Place,
    told: bool,  # noqa: FBT001 - a table
) -> None:
    tag = f"51.{os.getpid()}"
    daemon = subprocess.run(
        [sys.executable, "-c", TRYING, tag, str(place.root), "told" if told else "not told"],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    wait_for_end(int(daemon.stdout))
    left = processes_with(tag)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert (left == []) is told


def test_it_goes_with_a_daemon_that_stops(guardian: Guardian) -> None:
    pid = guardian.pid()
    with guardian.over("a run"):
        pass
    guardian.__exit__(None, None, None)
    assert not Path(f"/proc/{pid}").exists()


def wait_for_another(guardian: Guardian, pid: int | None) -> int | None:
    """Wait until another listens in the place of this one."""
    deadline = time.monotonic() + 20
    while guardian.pid() == pid or guardian._control is None:
        assert time.monotonic() < deadline, "there is no other"
        time.sleep(0.01)
    return guardian.pid()


def test_one_that_was_killed_is_started_again_once_for_each_run_that_begins(
    guardian: Guardian, caplog, monkeypatch
) -> None:
    monkeypatch.setattr("adapters.runners.guardian._FIRST_PAUSE_S", 0)
    pids = [guardian.pid()]
    for number in range(3):
        os.kill(pids[-1], signal.SIGKILL)
        wait_for_end(pids[-1])
        time.sleep(0.2)  # in which no other is started that no run needs
        assert guardian.pid() == pids[-1]
        with guardian.over(f"run {number}"):
            pids.append(wait_for_another(guardian, pids[-1]))
    assert len(set(pids)) == 4
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert "has ended (status -9); it is started again" in caplog.records[0].getMessage()


def test_one_that_is_killed_all_the_time_is_started_ever_more_seldom(guardian: Guardian, caplog) -> None:
    killed = guardian.pid()
    with guardian.over("one"), guardian.over("two"):
        for _ in range(2):
            os.kill(killed, signal.SIGKILL)
            with guardian.over("three"):
                pass
            killed = wait_for_another(guardian, killed)
        os.kill(killed, signal.SIGKILL)
        while len(caplog.records) < 3:
            time.sleep(0.01)
    guardian.__exit__(None, None, None)
    assert [record.getMessage().rsplit(", ", 1)[1] for record in caplog.records] == [
        "at once",
        "after 1 s",
        "after 2 s",
    ]


def test_one_that_does_not_listen_ends_no_run_of_a_daemon_that_lives(guardian: Guardian, caplog) -> None:
    tag = f"50.{os.getpid()}"
    with subprocess.Popen(["sleep", tag], env={"SAYSO_RUN": tag}) as run:
        with guardian.over(tag):
            stopped = guardian.pid()
            os.kill(stopped, signal.SIGSTOP)
            for number in range(10_000):
                with guardian.over(f"run {number}"):
                    pass
            wait_for_end(stopped)
            wait_for_another(guardian, stopped)
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
