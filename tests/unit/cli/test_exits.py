"""Which exit status an outcome has, and an error."""

from __future__ import annotations

import pytest

from bot.cli import exits
from bot.client import ClientError, NoToken, Refused, Unreachable
from core.model.outcome import Outcome, Status


@pytest.mark.parametrize(
    "status", [status for status in Status if status not in (Status.FINISHED, Status.ALLOWED, Status.PENDING)]
)
def test_whatever_did_not_run_and_is_not_a_yes_is_not_success(status):
    assert exits.of_outcome(Outcome(status, "").to_json()) != 0


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_a_finished_command_leaves_its_own_status(code):
    assert exits.of_outcome(Outcome(Status.FINISHED, "", exit_code=code).to_json()) == code


def test_a_finished_command_without_a_status_is_not_success():
    assert exits.of_outcome(Outcome(Status.FINISHED, "").to_json()) == exits.FAILED


def test_a_status_of_a_later_version_is_not_success():
    assert exits.of_outcome({"status": "paused"}) == exits.FAILED


def test_a_denial_because_nobody_could_be_asked_is_told_from_one_by_a_rule():
    nobody = Outcome(Status.DENIED, "", decision={"rule": "no-approval-route"}).to_json()
    by_rule = Outcome(Status.DENIED, "", decision={"rule": "exec.miss"}).to_json()
    resolved = Outcome(Status.DENIED, "", approval={"decision": "no-approval-route"}).to_json()
    assert [exits.of_outcome(o) for o in (nobody, by_rule, resolved)] == [75, 77, 75]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unreachable(""), 69),
        (NoToken(""), 78),
        (exits.BadConfiguration(""), 78),
        (Refused(-32001, ""), 77),
        (Refused(-32002, ""), 77),
        (Refused(-32602, ""), 64),
        (Refused(-32003, ""), 64),
        (Refused(-32004, ""), 64),
        (Refused(-32603, ""), 74),
        (Refused(-32007, ""), 74),
        (ClientError(""), 74),
    ],
)
def test_every_error_has_its_status(error, status):
    assert exits.of_error(error) == status
