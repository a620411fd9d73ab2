"""The disk of the state directory is full: nothing runs that could not be recorded first, and it goes on."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.daemon
CONFIG = """
agents: {main: {exec: {allowlist: [{pattern: /usr/bin/touch, argPattern: "free.*"},
                                   {pattern: /usr/bin/sleep, argPattern: ".*"}]}}}
"""
FULL = "the disk is full; make room there and ask again"


@pytest.fixture
def small_daemon(make_daemon):
    """A daemon whose state directory is a disk of 8 MB."""
    daemon = make_daemon(CONFIG)
    daemon.home.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "none", daemon.home], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted here, so the state directory cannot be a small disk")
    yield daemon
    if daemon.process is not None:
        daemon.kill()
    subprocess.run(["umount", "--lazy", daemon.home], check=True)


@contextmanager
def full(folder):
    """Take all the room that is left in a folder."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    try:
        yield
    finally:
        ballast.unlink()


def begin_in_vain(daemon):
    """Start a daemon that cannot, and return what it says."""
    return subprocess.run(
        [daemon.program, "up", "--config", daemon.example, "--config", daemon.config, "--port", "0"],
        env=daemon.env,
        cwd=daemon.root,
        capture_output=True,
        text=True,
        timeout=30,
    )


def touched(daemon):
    return {path.name for path in (daemon.root / "workspaces").rglob("*") if path.is_file()}


def fill_up(daemon):
    """Ask until what is free inside the database is used up too; return the words and the count of runs."""
    for number in range(400):
        done = daemon.sayso("exec", "--json", "--", "touch", f"free-{number}", status=None)
        if done.returncode != 0:
            return number, done
    raise AssertionError("the disk never got full")


def test_on_a_full_disk_nothing_runs_unrecorded_and_with_room_it_goes_on(small_daemon, finish):
    daemon = small_daemon.start()
    waiting = daemon.ask("--", "ls", "-l")
    (question,) = daemon.pending()
    with full(daemon.home):
        number, refused = fill_up(daemon)
        assert FULL in refused.stdout + refused.stderr
        assert f"free-{number}" not in touched(daemon)
        denied = daemon.sayso("exec", "-c", "ls > x", status=77)
        assert "not recorded" in denied.stderr
        assert FULL in denied.stderr
        approved = daemon.sayso("approve", question["id"], status=None)
        assert approved.returncode != 0
        assert FULL in approved.stdout + approved.stderr
        assert daemon.json("pending")[0]["id"] == question["id"]
    daemon.sayso("approve", question["id"])
    assert finish(waiting)[0] == 0
    assert daemon.json("exec", "--", "touch", "free-again")["status"] == "finished"
    assert touched(daemon) == {f"free-{n}" for n in range(number)} | {"free-again"}
    assert daemon.json("audit", "verify")["ok"] is True


def test_the_end_of_a_run_on_a_full_disk_is_kept_when_there_is_room(small_daemon, finish, wait_for):
    daemon = small_daemon.start()
    running = daemon.ask("--json", "--", "sleep", "2")
    wait_for(lambda: daemon.json("status")["running"] == 1 or None)
    with full(daemon.home):
        fill_up(daemon)
        wait_for(lambda: "is not recorded yet" in daemon.log.read_text())
        assert running.poll() is None
    status, out, err = finish(running)
    assert (status, json.loads(out.splitlines()[-1])["status"]) == (0, "finished"), err


def test_a_daemon_stopped_and_killed_on_a_full_disk_says_so_and_starts_with_room(
    small_daemon, finish, wait_for
):
    daemon = small_daemon.start()
    running = daemon.ask("--", "sleep", "600")
    wait_for(lambda: daemon.json("status")["running"] == 1 or None)
    with full(daemon.home):
        fill_up(daemon)
        assert daemon.stop() == 0
        assert finish(running)[0] in {69, 74}
        unable = begin_in_vain(daemon)
        assert unable.returncode == 78, unable.stderr
        assert FULL.partition(";")[0] in unable.stderr
        assert "Traceback" not in unable.stderr
    daemon.start()
    (row,) = [row for row in daemon.json("history") if "sleep" in row["command"]]
    assert row["state"] == "interrupted"
    assert daemon.json("audit", "verify")["ok"] is True


def test_a_first_start_on_a_full_disk_leaves_no_half_written_token(small_daemon):
    daemon = small_daemon
    with full(daemon.home):
        unable = begin_in_vain(daemon)
        assert unable.returncode == 78, unable.stderr
        assert "No space left" in unable.stderr
    daemon.start()
    assert daemon.json("pending") == []
    assert daemon.sayso("exec", "--", "touch", "free-1").returncode == 0
