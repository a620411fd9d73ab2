"""SIGTERM with everything under way: it ends soon, leaves nothing running, and loses nothing."""

from __future__ import annotations

import time

import pytest

pytestmark = pytest.mark.daemon
CONFIG = "agents: {main: {exec: {allowlist: [{pattern: /usr/bin/sleep, args: ['600']}]}}}\n"


def test_a_daemon_that_is_stopped_ends_its_runs_and_keeps_its_questions(make_daemon, finish, wait_for):
    daemon = make_daemon(CONFIG).start()
    running = daemon.ask("--", "sleep", "600")
    waiting = daemon.ask("--", "ls", "-l")
    (question,) = daemon.pending()
    wait_for(lambda: [row for row in daemon.json("history") if row["state"] == "running"] or None)
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 10
    for asker in (running, waiting):
        assert finish(asker)[0] in {69, 74, 75}
    daemon.start()
    (kept,) = daemon.pending()
    assert kept["id"] == question["id"]
    (ended,) = [row for row in daemon.json("history") if "sleep" in row["command"]]
    assert ended["state"] == "interrupted"


def test_a_revoked_agent_is_stopped_at_once_and_its_question_is_gone(make_daemon, finish, wait_for):
    daemon = make_daemon(CONFIG).start()
    running = daemon.ask("--", "sleep", "600")
    waiting = daemon.ask("--", "ls", "-l")
    daemon.pending()
    wait_for(lambda: [row for row in daemon.json("history") if row["state"] == "running"] or None)
    daemon.sayso("agent", "revoke", "main")
    assert finish(running)[0] == 74
    assert finish(waiting)[0] in {75, 77}
    assert daemon.json("pending") == []
    assert daemon.sayso("exec", "--", "git", "--version", status=None).returncode not in {0, 69}
