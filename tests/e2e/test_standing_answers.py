"""Answers that stand: for exactly one command, over restarts, until they are revoked or all is locked."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.daemon

TOUCH = ("--", "touch", "here")


def decided(daemon, finish, *answer, asked=TOUCH):
    """Ask, decide on the command line, and return the full id and what the agent was told."""
    asking = daemon.ask(*asked)
    (request,) = daemon.pending()
    daemon.sayso(answer[0], request["id"], *answer[1:])
    status, _, err = finish(asking)
    assert status == (0 if answer[0] == "approve" else 77), err
    return request["id"], err


def asks_again(daemon, finish, *asked):
    """Tell whether it is put to people, and deny it."""
    asking = daemon.ask(*asked)
    (request,) = daemon.pending()
    daemon.sayso("deny", request["id"])
    return finish(asking)[0] == 77


def at_once(daemon, *asked, status=0):
    """Ask and come back without anybody's answer: what became of it, and by which decision."""
    outcome = daemon.json("exec", *asked, status=status)
    return outcome["status"], outcome["approval"]["decision"]


BY_PERMISSION = ("finished", "allowed-by-permission")
BY_POLICY = ("denied", "denied-by-policy")


def test_what_was_allowed_for_a_time_runs_again_without_a_question(daemon, finish):
    given, _ = decided(daemon, finish, "approve", "for", "30m", "--reason", "release day")
    assert at_once(daemon, *TOUCH) == BY_PERMISSION
    (row,) = daemon.json("permissions")
    assert (row["id"], row["effect"], row["agent"], row["uses"]) == (given, "allow", "main", 1)
    assert row["command"] == "/usr/bin/touch here"
    assert row["expiresAt"] - row["givenAt"] == 30 * 60_000
    shown = daemon.sayso("permissions").stdout
    assert re.search(rf"{given[:8]} +allow +main +.*(29|30) min left +1 +/usr/bin/touch here", shown), shown
    assert daemon.json("show", given)["outcome"]["approval"]["reason"] == "release day"


@pytest.mark.parametrize(
    "asked",
    [
        ("--", "touch", "here", "there"),
        ("--", "touch", "./here"),
        ("--env", "CI=1", *TOUCH),
        ("--cwd", "/usr", *TOUCH),
        ("--session", "agent:main:web:somebody", *TOUCH),
        ("--stdin", *TOUCH),
        ("-c", "touch here && touch here"),
        ("-c", "touch here; id"),
    ],
    ids=["argv", "spelling", "env", "cwd", "session", "stdin", "twice", "more"],
)
def test_what_is_not_exactly_that_is_put_to_people(daemon, finish, asked):
    decided(daemon, finish, "approve", "for", "1h")
    assert asks_again(daemon, finish, *asked)
    assert [row["uses"] for row in daemon.json("permissions")] == [0]


def test_another_agent_is_not_meant(daemon, finish):
    decided(daemon, finish, "approve", "for", "1h")
    daemon.sayso("agent", "add", "other", "--save")
    assert asks_again(daemon, finish, "--agent", "other", *TOUCH)


def test_after_its_last_use_it_is_put_to_people_again(daemon, finish):
    decided(daemon, finish, "approve", "for", "1h", "--max-uses", "1")
    assert at_once(daemon, *TOUCH) == BY_PERMISSION
    assert asks_again(daemon, finish, *TOUCH)
    assert daemon.json("permissions") == []


def test_a_time_is_not_taken_where_a_yes_counts_once(make_daemon, finish):
    daemon = make_daemon("tools: {exec: {ask: always}}").start()
    asking = daemon.ask(*TOUCH)
    (request,) = daemon.pending()
    refused = daemon.sayso("approve", request["id"], "for", "30m", status=1)
    assert "A time is not offered here, because a yes counts once" in refused.stdout
    assert [one["id"] for one in daemon.pending()] == [request["id"]]
    daemon.sayso("approve", request["id"])
    assert finish(asking)[0] == 0
    assert daemon.json("permissions") == []


def test_what_was_revoked_is_put_to_people_again(daemon, finish):
    given, _ = decided(daemon, finish, "approve", "for", "1h")
    for wrong, told in (("0" * 8, "begins with '00000000'"), (given[:7], "at least 8 characters")):
        assert told in daemon.sayso("permissions", "revoke", wrong, status=None).stderr
    assert at_once(daemon, *TOUCH) == BY_PERMISSION
    assert "Revoked" in daemon.sayso("permissions", "revoke", given[:8]).stdout
    assert daemon.json("permissions") == []
    assert asks_again(daemon, finish, *TOUCH)
    assert "sayso permissions list shows" in daemon.sayso("permissions", "revoke", given, status=None).stderr
    assert "permission.revoked" in [event["kind"] for event in daemon.json("show", given)["record"]]


def test_denied_always_is_denied_at_once_and_says_who_when_and_how_to_end_it(daemon, finish):
    given, told = decided(daemon, finish, "deny", "always", "--reason", "never on this machine")
    assert "never on this machine" in told
    again = daemon.sayso("exec", *TOUCH, status=77).stderr
    assert re.search(r"denied exactly this always, on 2\d{3}-\d\d-\d\d .* UTC: never on this machine", again)
    assert f"sayso permissions ({given[:8]})" in again
    assert at_once(daemon, *TOUCH, status=77) == BY_POLICY
    assert at_once(daemon, "-c", "id && touch here", status=77) == BY_POLICY
    assert asks_again(daemon, finish, "--", "touch", "there")
    daemon.sayso("agent", "add", "other", "--save")
    assert asks_again(daemon, finish, "--agent", "other", *TOUCH)
    daemon.sayso("permissions", "revoke", given)
    assert asks_again(daemon, finish, *TOUCH)


def test_a_restart_keeps_both_and_a_lock_ends_what_was_allowed(daemon, finish):
    allowed, _ = decided(daemon, finish, "approve", "for", "1h")
    denied, _ = decided(daemon, finish, "deny", "always", asked=("--", "touch", "there"))
    daemon.kill()
    daemon.start()
    assert [row["id"] for row in daemon.json("permissions")] == [allowed, denied]
    assert at_once(daemon, *TOUCH) == BY_PERMISSION
    assert at_once(daemon, "--", "touch", "there", status=77) == BY_POLICY
    daemon.sayso("lock")
    assert at_once(daemon, *TOUCH, status=77)[0] == "denied"
    daemon.sayso("unlock")
    assert [row["id"] for row in daemon.json("permissions")] == [denied]
    assert asks_again(daemon, finish, *TOUCH)
    assert at_once(daemon, "--", "touch", "there", status=77) == BY_POLICY
