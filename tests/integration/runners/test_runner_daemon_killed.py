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
