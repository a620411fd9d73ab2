"""A daemon that is killed leaves no process of a run behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.runners.leftovers import kill_leftovers, marked
from tests.integration.runners.kit import processes_with

REPOSITORY = Path(__file__).parents[3]
PARENT = """
import asyncio, sys
from tests.integration.runners.kit import place_on_disk

class Loud:
    def write(self, request_id, stream, data):
        print(request_id, flush=True)

async def main():
    parent, runner, script = sys.argv[1:]
    with place_on_disk(parent) as place:
        await place.runner(runner).run(place.shell(script, runner=runner), Loud())

asyncio.run(main())
"""


# It is killed so many milliseconds after it began to start the run.
STRUCK = """
import asyncio, os, signal, subprocess, sys, threading, time
from adapters.runners import threaded
from adapters.runners.guardian import Guardian
from tests.integration.runners.kit import Recorder, place_on_disk

class Struck(subprocess.Popen):
    def __init__(self, *args, **options):
        threading.Thread(target=strike, daemon=True).start()
        super().__init__(*args, **options)

def strike():
    time.sleep(float(sys.argv[4]) / 1000)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    parent, runner, tag, _, guarded = sys.argv[1:]
    guardian = Guardian()
    if guarded == "True":
        guardian.__enter__().wait()
    with place_on_disk(parent) as place:
        place.runner(runner)._guardian = guardian
        order = place.shell(f"sleep {tag}; :", runner=runner)
        print(order.request_id, flush=True)
        threaded.subprocess.Popen = Struck
        await place.runner(runner).run(order, Recorder())

asyncio.run(main())
"""


@pytest.fixture
def places() -> Iterator[str]:
    """A directory for the killed, who cannot clear away after themselves."""
    with tempfile.TemporaryDirectory(prefix="sayso-test-", dir="/var/tmp") as path:
        Path(path).chmod(0o711)
        yield path


def start(places: str, runner: str, script: str) -> tuple[subprocess.Popen[str], str]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, places, runner, script],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    request_id = parent.stdout.readline().strip()
    assert request_id, "the run did not start"
    return parent, request_id


def kill(parent: subprocess.Popen[str]) -> None:
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert parent.stdout is not None
    parent.stdout.close()


def comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_everything_in_the_sandbox_dies_with_the_daemon(places: str) -> None:
    tag = f"41.{os.getpid()}"
    parent, _ = start(
        places, "bubblewrap", f"trap '' TERM HUP; setsid sleep {tag} & sleep {tag} & echo up; sleep {tag}"
    )
    assert comes_true(lambda: len(processes_with(tag)) >= 4)
    kill(parent)
    assert comes_true(lambda: processes_with(tag) == [])


def test_the_command_on_the_host_dies_with_the_daemon(places: str) -> None:
    tag = f"42.{os.getpid()}"
    parent, _ = start(places, "host", f"echo up; exec sleep {tag}")
    assert comes_true(lambda: len(processes_with(tag)) >= 2)
    kill(parent)
    assert comes_true(lambda: processes_with(tag) == [])


def test_everything_a_held_run_started_on_the_host_dies_with_the_daemon(places: str) -> None:
    tag = f"44.{os.getpid()}"
    parent, _ = start(places, "host", f"env -i setsid sleep {tag} & sleep {tag} & echo up; wait")
    assert comes_true(lambda: len(processes_with(tag)) >= 3)
    kill(parent)
    assert comes_true(lambda: processes_with(tag) == [])


def test_what_it_started_on_the_host_is_found_by_its_marker(places: str) -> None:
    tag = f"43.{os.getpid()}"
    parent, request_id = start(places, "unheld", f"setsid sleep {tag} & sleep {tag} & echo up; wait")
    kill(parent)
    assert comes_true(lambda: len(processes_with(tag)) == 2)
    assert len(marked(request_id)) == 2
    assert kill_leftovers(f"{request_id}0") == 0
    assert len(marked(request_id)) == 2
    assert kill_leftovers(request_id) == 2
    assert comes_true(lambda: processes_with(tag) == [])


@pytest.mark.parametrize("runner", ["bubblewrap", "host"])
@pytest.mark.parametrize("what", ["waits for bwrap for ever", "runs without a daemon"])
def test_what_began_while_the_daemon_died_is_found_by_its_marker(places: str, runner: str, what: str) -> None:
    for attempt in range(90):
        tag = f"46{attempt:02}.{os.getpid()}"
        request_id = struck(places, runner, tag, milliseconds=attempt * 7 % 61)
        left = settled(tag)
        runs = any("bwrap" not in line for line in left.values())
        kill_leftovers(request_id)
        assert comes_true(lambda tag=tag: processes_with(tag) == []), left
        if left and runs is (what == "runs without a daemon"):
            return
    pytest.skip(f"in ninety kills, nothing was left that {what}")


@pytest.mark.parametrize("runner", ["bubblewrap", "host"])
def test_what_began_while_the_daemon_died_is_ended_at_once_by_its_guardian(places: str, runner: str) -> None:
    for milliseconds in range(0, 60, 2):
        tag = f"48{milliseconds:02}.{os.getpid()}"
        struck(places, runner, tag, milliseconds=milliseconds, guarded=True)
        assert comes_true(lambda tag=tag: settled(tag) == {}), settled(tag)


def struck(places: str, runner: str, tag: str, *, milliseconds: float, guarded: bool = False) -> str:
    """Start a run of a daemon that is killed meanwhile; returns its id."""
    parent = subprocess.run(
        [sys.executable, "-c", STRUCK, places, runner, tag, str(milliseconds), str(guarded)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert parent.returncode == -signal.SIGKILL
    return parent.stdout.strip()


def settled(tag: str) -> dict[int, str]:
    """Return what is left, once it is the same for a while: what it still sets up would change it."""
    before: dict[int, str] = {}
    same = 0
    while same < 5:
        time.sleep(0.02)
        now = {pid: command_line(pid) for pid in processes_with(tag)}
        same = same + 1 if now == before else 0
        before = now
    return before


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_the_kill_switch_spares_the_one_who_pulls_it() -> None:
    script = "from adapters.runners.leftovers import kill_leftovers as kill; print(kill('me'), 'alive')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        env={**os.environ, "SAYSO_RUN": "me"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0 alive\n"
