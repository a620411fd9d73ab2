"""The daemon is killed at bad moments: nothing is lost, doubled, or run unapproved."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.daemon


def processes_with(marker: str) -> list[int]:
    """Return the pids of living processes whose command line holds the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in line:
                found.append(int(entry.name))
    return found


def test_a_question_survives_kill_9_and_its_answer_reaches_wait(daemon, finish):
    asking = daemon.ask("--", "touch", "after-restart")
    (request,) = daemon.pending()
    daemon.kill()
    assert finish(asking)[0] == 69
    daemon.start()
    (again,) = daemon.pending()
    assert again["id"] == request["id"]
    daemon.sayso("approve", request["id"])
    outcome = daemon.json("wait", request["id"])
    assert outcome["status"] == "finished"
    assert outcome["exitCode"] == 0


def test_an_approved_request_whose_asker_is_gone_is_not_run(make_daemon, wait_for):
    daemon = make_daemon("approvals: {exec: {timeout: 3000}}").start()
    asking = daemon.ask("--", "touch", "nobody-came")
    (request,) = daemon.pending()
    asking.kill()
    asking.communicate()
    daemon.sayso("approve", request["id"])
    shown = wait_for(lambda: (found := daemon.json("show", request["id"]))["state"] == "expired" and found)
    assert shown["outcome"]["exitCode"] is None
    assert "run.started" not in [event["kind"] for event in shown["record"]]


def test_a_run_cut_off_by_kill_9_is_interrupted_leaves_no_process_and_is_not_repeated(
    daemon, finish, wait_for
):
    asking = daemon.ask("--", "sleep", "314.15")
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"])
    wait_for(lambda: processes_with("sleep 314.15") and True)
    wait_for(lambda: daemon.json("show", request["id"])["state"] == "running")
    daemon.kill()
    finish(asking)
    wait_for(lambda: not processes_with("sleep 314.15"))
    daemon.start()
    outcome = daemon.json("wait", request["id"], status=74)
    assert outcome["status"] == "interrupted"
    starts = [e for e in daemon.json("show", request["id"])["record"] if e["kind"] == "run.started"]
    assert len(starts) == 1
    assert not processes_with("sleep 314.15")


def test_the_record_verifies_after_every_kill(daemon):
    for _ in range(3):
        daemon.sayso("exec", "--", "git", "--version")
        daemon.kill()
        daemon.start()
    assert daemon.json("audit", "verify")["ok"] is True


def test_an_always_given_before_a_kill_holds_after_it(daemon, finish):
    asking = daemon.ask("--", "rg", "--version")
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"], "always")
    assert finish(asking)[0] == 0
    daemon.kill()
    daemon.start()
    assert (
        json.loads(daemon.sayso("exec", "--json", "--", "rg", "--version").stdout.splitlines()[-1])[
            "approval"
        ]["decision"]
        == "allowed-by-policy"
    )
