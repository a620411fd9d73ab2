"""SIGTERM with everything under way: it ends soon, leaves nothing running, and loses nothing."""

from __future__ import annotations

import signal
import socket
import subprocess
import time

import pytest

from bot.client import Client

pytestmark = pytest.mark.daemon
LONGEST_S = 5.0
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


def begin(daemon, *flags):
    """Start a daemon without waiting for anything it says."""
    command = [daemon.program, "up", "--config", daemon.example, "--config", daemon.config, "--port", "0"]
    return subprocess.Popen(
        [*command, *flags],
        env=daemon.env,
        cwd=daemon.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def terminated(process):
    """Send SIGTERM, and return the status and how long it took."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=25)
    return process.returncode, time.monotonic() - began


def states(daemon):
    return {row["command"]: row["state"] for row in daemon.json("history")}


def why(daemon, command):
    """Tell why a run was cut off, from its record."""
    (row,) = [row for row in daemon.json("history") if row["command"].endswith(command)]
    return daemon.json("show", row["id"])["record"][-1]["data"]["reason"]


def test_runs_questions_and_listeners_together_end_within_five_seconds(make_daemon, finish, wait_for):
    daemon = make_daemon(CONFIG).start()
    askers = [daemon.ask("--", "sleep", "600") for _ in range(4)]
    askers += [daemon.ask("--", "ls", f"-{flag}") for flag in "alt"]
    questions = {question["id"] for question in daemon.pending(3)}
    wait_for(lambda: daemon.json("status")["running"] == 4 or None)
    token = (daemon.home / "operator.token").read_text().strip()
    with Client(str(daemon.home / "sayso.sock"), token, "operator") as listener:
        listener.call("events.subscribe")
        began = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began < LONGEST_S
    for asker in askers:
        assert finish(asker)[0] in {69, 74, 75}
    daemon.start()
    assert {question["id"] for question in daemon.pending(3)} == questions
    assert [row["state"] for row in daemon.json("history")] == ["interrupted"] * 4
    assert why_all(daemon) == {"the daemon was stopped while it ran"}


def why_all(daemon):
    rows = daemon.json("history")
    return {daemon.json("show", row["id"])["record"][-1]["data"]["reason"] for row in rows}


def test_a_second_and_a_third_sigterm_change_nothing_about_the_order(make_daemon, finish, wait_for):
    daemon = make_daemon(CONFIG).start()
    asker = daemon.ask("--", "sleep", "600")
    wait_for(lambda: daemon.json("status")["running"] == 1 or None)
    process = daemon.process
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    began = time.monotonic()
    assert daemon.stop() in {0, -signal.SIGTERM}  # the last may come when all is closed and the loop is gone
    assert time.monotonic() - began < LONGEST_S
    assert finish(asker)[0] in {69, 74}
    daemon.start()
    assert why_all(daemon) == {"the daemon was stopped while it ran"}
    assert daemon.json("audit", "verify")["ok"] is True


@pytest.mark.parametrize("after_s", [0.3, 0.6, 0.9, 1.2, 1.6])
def test_sigterm_at_any_moment_of_a_start_ends_it_and_the_next_start_is_whole(make_daemon, after_s):
    daemon = make_daemon()
    process = begin(daemon)
    time.sleep(after_s)
    status, took = terminated(process)
    assert status in {0, -signal.SIGTERM}
    assert took < LONGEST_S
    daemon.start()
    assert daemon.json("audit", "verify")["ok"] is True
    assert daemon.sayso("exec", "--", "git", "--version", status=None).returncode in {0, 77}
    assert daemon.stop() == 0


def test_sigterm_while_a_chat_does_not_answer_ends_the_start(make_daemon):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        token = "123456789:" + "A" * 35
        daemon = make_daemon(
            f"channels: {{telegram: {{token: '{token}', apiUrl: 'http://127.0.0.1:{port}'}}}}\n"
            "approvals: {exec: {approvers: ['telegram:1'], mode: targets, "
            "targets: [{channel: telegram, to: 'user:1'}]}}\n"
        )
        process = begin(daemon)
        silent.settimeout(20)
        connection, _ = silent.accept()
        status, took = terminated(process)
        connection.close()
    assert status == 0
    assert took < LONGEST_S
