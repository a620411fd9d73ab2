"""The main job through the command line: ask, decide, approve, run, record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.daemon


def test_an_allowlisted_command_runs_at_once_in_the_sandbox(daemon):
    done = daemon.sayso("exec", "--", "git", "--version")
    assert done.stdout.startswith("git version")
    outcome = daemon.json("exec", "--", "git", "--version")
    assert outcome["status"] == "finished"
    assert (outcome["placement"], outcome["sandbox"]) == ("sandbox", "bubblewrap")


def test_the_same_program_with_other_arguments_waits(daemon, finish):
    asking = daemon.ask("--", "git", "status")
    (request,) = daemon.pending()
    assert request["command"] == "/usr/bin/git status"
    daemon.sayso("deny", request["id"], "--reason", "not now")
    status, _, err = finish(asking)
    assert status == 77
    assert "not now" in err


def test_a_redirection_to_a_file_is_refused_with_its_rule_and_where_it_is_written(daemon):
    done = daemon.sayso("exec", "-c", "echo hi > /etc/motd", status=77)
    assert "exec.redirection" in done.stderr
    outcome = daemon.json("exec", "-c", "echo hi > /etc/motd", status=77)
    assert outcome["status"] == "denied"
    assert outcome["decision"]["rule"] == "exec.redirection"
    assert outcome["decision"]["source"]


def test_an_approved_command_runs_once_and_its_asker_gets_the_outcome(daemon, finish):
    asking = daemon.ask("--json", "--", "touch", "made-by-the-run")
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"][:8])
    status, out, err = finish(asking)
    assert status == 0, err
    outcome = json.loads(out.splitlines()[-1])
    assert outcome["approval"]["decision"] == "allow-once"
    shown = daemon.json("show", request["id"])
    kinds = [event["kind"] for event in shown["record"]]
    assert kinds == [
        "request.created", "approval.requested", "approval.approved", "run.started", "run.finished",
    ]  # fmt: skip


def test_always_saves_what_was_said_and_the_next_call_runs_at_once(daemon, finish):
    asking = daemon.ask("--", "rg", "--version")
    (request,) = daemon.pending()
    assert request["always"], request
    daemon.sayso("approve", request["id"], "always")
    assert finish(asking)[0] == 0
    assert daemon.sayso("exec", "--", "rg", "--version").returncode == 0
    # The near misses: other arguments, and another program, still ask.
    for near in (("rg", "--type-list"), ("sha256sum", "--version")):
        other = daemon.ask("--", *near)
        daemon.sayso("deny", daemon.pending()[0]["id"])
        assert finish(other)[0] == 77


def test_the_exit_status_is_the_commands_own(daemon, finish):
    asking = daemon.ask("--", "ls", "/there-is-no-such-file")
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"])
    status, _, err = finish(asking)
    assert status == 2
    assert "there-is-no-such-file" in err


def test_an_answer_after_the_answer_is_told_what_stands(daemon, finish):
    asking = daemon.ask("--", "ls")
    (request,) = daemon.pending()
    daemon.sayso("deny", request["id"])
    late = daemon.sayso("approve", request["id"], status=None)
    assert late.returncode != 0
    assert "Denied" in late.stdout + late.stderr
    assert finish(asking)[0] == 77


def test_two_identical_questions_are_one_question_and_one_run(daemon, finish):
    first = daemon.ask("--json", "--", "mkdir", "only-once")
    daemon.pending()
    second = daemon.ask("--json", "--", "mkdir", "only-once")
    # mkdir fails the second time: had it run twice, one of the two would say so.
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"])
    outcomes = [json.loads(finish(asker)[1].splitlines()[-1]) for asker in (first, second)]
    assert [outcome["exitCode"] for outcome in outcomes] == [0, 0]
    assert outcomes[0]["id"] == outcomes[1]["id"]


def test_a_question_nobody_answers_expires(make_daemon, finish):
    daemon = make_daemon("approvals: {exec: {timeout: 1000}}").start()
    status, _, err = finish(daemon.ask("--", "ls"))
    assert status == 75
    assert "nobody answered" in err.lower()


def test_the_run_cannot_write_outside_its_workspace(daemon, finish):
    asking = daemon.ask("--", "touch", "/etc/made-by-the-run")
    (request,) = daemon.pending()
    daemon.sayso("approve", request["id"])
    assert finish(asking)[0] != 0
    assert not Path("/etc/made-by-the-run").exists()


def test_the_record_verifies(daemon):
    daemon.sayso("exec", "--", "git", "--version")
    verdict = daemon.json("audit", "verify")
    assert verdict["ok"] is True
    assert verdict["events"] >= 5


def test_history_and_show_and_agents_and_tools_answer(daemon):
    daemon.sayso("exec", "--", "git", "--version")
    (past,) = daemon.json("history")
    assert past["state"] == "finished"
    assert daemon.json("show", past["id"])["outcome"]["exitCode"] == 0
    assert [agent["id"] for agent in daemon.json("agent", "list")] == ["main"]
    assert "exec" in daemon.json("tools")["allowed"]
    explained = daemon.json("explain", "-c", "git --version")
    assert explained["effect"] == "allow"
    assert explained["canonical"] == "/usr/bin/git --version"


def test_a_locked_daemon_runs_nothing_until_it_is_unlocked(daemon, finish):
    waiting = daemon.ask("--", "ls")
    daemon.pending()
    daemon.sayso("lock")
    assert finish(waiting)[0] == 75
    assert "locked" in daemon.sayso("exec", "--", "git", "--version", status=77).stderr
    daemon.sayso("unlock")
    daemon.sayso("exec", "--", "git", "--version")


def test_sigterm_stops_in_order_and_leaves_no_socket(daemon):
    assert daemon.stop() == 0
    assert not (daemon.home / "sayso.sock").exists()
    assert daemon.sayso("exec", "--", "git", "--version", status=69).stderr
