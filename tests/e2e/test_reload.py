"""A daemon reads its configuration again; a bad one changes nothing."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from tests.e2e.conftest import wait_for

pytestmark = pytest.mark.daemon

HEAD = "sandboxing: {{workspaceRoot: {root}/workspaces}}\n"


def write(daemon, text):
    daemon.config.write_text(HEAD.format(root=daemon.root) + text)


DENY_DATE = "tools: {exec: {deny: [date]}}\n"


def waiting_in(daemon):
    return json.loads(daemon.sayso("pending", "--json").stdout or "[]")


def runs_date(daemon, finish):
    """Ask for `date`; answer yes where people are asked, and tell whether it ran."""
    asking = daemon.ask("--", "date")
    waiting = wait_for(lambda: asking.poll() is not None or waiting_in(daemon) or None)
    if waiting is not True:
        daemon.sayso("approve", waiting[0]["id"])
    return finish(asking)[0] == 0


def test_a_new_rule_holds_at_once_and_goes_again(daemon, finish):
    assert runs_date(daemon, finish)
    write(daemon, DENY_DATE)
    told = daemon.json("reload")
    assert told["ok"]
    assert [change["key"] for change in told["atOnce"]] == ["tools.exec.deny"]
    assert not runs_date(daemon, finish)
    write(daemon, "")
    assert "in force" in daemon.sayso("reload").stdout
    assert runs_date(daemon, finish)


def test_a_question_that_waits_is_decided_again_before_it_starts(daemon, finish):
    asking = daemon.ask("--", "date")
    (request,) = daemon.pending()
    write(daemon, DENY_DATE)
    daemon.sayso("reload")
    daemon.sayso("approve", request["id"])
    status, _, err = finish(asking)
    assert status == 77
    assert "deny rule" in err
    assert "denied by" not in err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tools: {exec: {sekurity: full}}\n", "sekurity"),
        ("tools: [\n", "overlay.yaml"),
        ("tools: {profile: godmode}\n", "godmode"),
        ("approvals: {exec: {mode: both, targets: [{channel: telegram, to: 'user:x'}]}}\n", "targets[0]"),
    ],
    ids=["unknown-key", "no-yaml", "unknown-profile", "no-place"],
)
def test_a_bad_configuration_changes_nothing_and_names_the_fault(daemon, finish, text, named):
    write(daemon, DENY_DATE + text if not text.startswith("tools") else text)
    told = daemon.json("reload", status=78)
    assert not told["ok"]
    assert named in " ".join(told["problems"])
    assert runs_date(daemon, finish)
    assert "config.refused" in daemon.sayso("audit", "tail").stdout


def test_what_waits_for_a_restart_is_told_and_does_not_hold_by_halves(daemon):
    write(daemon, "channels: {web: {port: 1}}\noperator: {local: 'off'}\n")
    told = daemon.json("reload")
    later = {change["key"] for change in told["atRestart"]}
    assert "operator.local" in later
    assert daemon.json("status")["running"] == 0


def test_a_trial_of_held_runs_that_failed_is_made_again_though_nothing_holds_at_once(make_daemon):
    daemon = make_daemon()
    second = daemon.root / "second-name.yaml"
    os.link(daemon.config, second)
    daemon.start()
    assert not daemon.json("status")["host"]["held"]
    told = daemon.json("reload")
    assert told["host"].startswith(f"runs on the host are still not held: {daemon.config} has 2 names")
    second.unlink()
    assert not daemon.json("status")["host"]["held"]
    write(daemon, "channels: {web: {port: 1}}\n")  # waits for a restart
    told = daemon.sayso("reload").stdout
    assert "runs on the host are held from now on" in told
    assert daemon.json("status")["host"]["held"]
    assert daemon.json("reload")["host"] is None


def test_sighup_reads_it_again_too(daemon, finish):
    write(daemon, DENY_DATE)
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "read again" in daemon.log.read_text())
    assert not runs_date(daemon, finish)
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "read again: it is the same" in daemon.log.read_text())
    before = daemon.log.read_text()
    write(daemon, "tools: {\n")
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "reload refused, what was in force stays: " in daemon.log.read_text())
    assert "read again" not in daemon.log.read_text().removeprefix(before)
    assert daemon.stop() == 0


def test_a_configuration_that_came_by_a_pipe_stays_in_force(make_daemon, tmp_path):
    daemon = make_daemon()
    piped = tmp_path / "piped.yaml"
    os.mkfifo(piped)
    giving = threading.Thread(target=piped.write_text, args=(DENY_DATE,))
    giving.start()
    daemon.start("--config", str(piped))
    giving.join()
    assert daemon.sayso("exec", "--", "date", status=77)
    refused = daemon.sayso("reload", status=None)
    assert refused.returncode != 0
    assert f"{piped}: this part of the configuration came by a pipe" in refused.stdout + refused.stderr
    assert daemon.sayso("exec", "--", "date", status=77)
