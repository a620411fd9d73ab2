"""A client that asks before it runs a command itself, against the daemon as a process: `sayso check Bash`."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.conftest import SAYSO

pytestmark = pytest.mark.daemon


def args(command):
    return ("--args", json.dumps({"command": command, "description": "x", "timeout": 5_000}))


def check(daemon, command, *more, status=0, **options):
    done = daemon.sayso("check", "Bash", "--json", *args(command), *more, status=status, **options)
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_entries_count_where_they_say_and_the_cwd_is_the_clients(daemon):
    inside = daemon.root / "inside"
    inside.mkdir()
    daemon.sayso("allowlist", "add", "/usr/bin/touch")
    asked = check(daemon, "touch x", "--no-wait", status=None, cwd=inside)
    assert (asked["status"], asked["placement"]) == ("pending", "client")
    daemon.sayso("allowlist", "add", "/usr/bin/touch", "--placement", "client")
    answer = check(daemon, "touch x", cwd=inside)
    assert (answer["status"], answer["placement"], answer["cwd"]) == ("allowed", "client", str(inside))
    assert list(inside.iterdir()) == []  # Sayso runs nothing of it
    assert daemon.json("exec", "--", "touch", "y")["placement"] == "sandbox"
    for asked in (args("touch x"), ("-c", "touch x")):
        told = daemon.json("explain", "--tool", "Bash", *asked, "--cwd", str(inside))
        assert (told["effect"], told["placement"]) == ("allow", "client")
    assert daemon.json("explain", "-c", "touch x")["placement"] == "sandbox"


def test_a_yes_is_handed_over_once_and_also_after_a_restart(daemon):
    asking = subprocess.Popen(
        [SAYSO, "check", "Bash", *args("rm -r build")],
        env=daemon.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=daemon.root,
    )
    (request,) = daemon.pending()
    assert request["placement"] == "client"
    asking.kill()
    asking.communicate()
    daemon.kill()
    daemon.start()
    daemon.sayso("approve", request["id"])
    assert daemon.json("wait", request["id"])["status"] == "allowed"
    again = daemon.json("wait", request["id"], status=77)
    assert "taken already" in again["reason"]
    shown = daemon.json("show", request["id"])
    assert shown["state"] == "used"


def test_a_run_under_an_approval_that_was_used_says_so_also_after_a_restart(daemon):
    asked = daemon.json("exec", "--no-wait", "--ask", "always", "--", "git", "--version")
    daemon.sayso("approve", asked["id"])
    used = daemon.json("wait", asked["id"])
    assert used["stdout"].startswith("git version")
    words = ("exec", "--approval", asked["id"], "--")
    for _ in range(2):
        same = daemon.json(*words, "git", "--version")
        assert (same["status"], same["stdout"]) == ("finished", used["stdout"])
        assert any("used already" in note for note in same["notes"])
        other = daemon.json(*words, "uname", status=77)
        assert (other["status"], other["stdout"]) == ("denied", "")
        assert "was used already, for another command, which finished with status 0" in other["reason"]
        daemon.kill()
        daemon.start()
    answered = check(daemon, "touch x", "--no-wait", status=None)
    daemon.sayso("approve", answered["id"])
    assert daemon.json("wait", answered["id"])["status"] == "allowed"
    taken = daemon.json("exec", "--approval", answered["id"], "-c", "touch x", status=77)
    assert "was used already" in taken["reason"]
    assert [row["state"] for row in daemon.json("history")].count("finished") == 1


def test_a_clients_command_is_never_lifted_out_of_anything(make_daemon):
    daemon = make_daemon("tools: {elevated: {enabled: true, allowFrom: ['web:operator']}}\n").start()
    daemon.sayso("elevated", "agent:main:main", "full", "--for", "15m", "--reason", "the disk is full")
    assert daemon.json("exec", "--", "true", "first")["placement"] == "host"
    assert check(daemon, "touch first", "--no-wait", status=None)["status"] == "pending"


def test_words_that_lead_to_our_own_state_are_denied(daemon):
    daemon.sayso("allowlist", "add", "**", "--placement", "client")
    for line in (f"cat {daemon.home}/operator.token", "cat home/operator.token", "sayso approve 12345678"):
        assert check(daemon, line, status=77)["decision"]["effect"] == "deny"
    assert check(daemon, f"cat {daemon.root}/overlay.yaml", status=77)["decision"]["effect"] == "deny"
