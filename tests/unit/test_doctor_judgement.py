"""How the doctor judges what came of the attempts, without making any."""

from __future__ import annotations

import pytest

from bot import breakout
from bot.check import Check, Status
from bot.doctor_sandbox import NAMES, judge

SAFE = dict.fromkeys(NAMES, ("refused", "Read-only file system")) | {"workspace": ("reached", "written")}


def of(checks: list[Check], key: str) -> Check:
    return next(check for check in checks if check.name == f"sandbox: {NAMES[key]}")


def test_every_attempt_has_a_line_and_every_line_an_attempt() -> None:
    assert {attempt.__name__ for attempt in breakout.ATTEMPTS} == set(NAMES)


def test_a_sandbox_that_refuses_everything_is_ok() -> None:
    checks = judge(SAFE, network=False, left=[])
    assert len(checks) == len(NAMES)
    assert {check.status for check in checks} == {Status.OK}


@pytest.mark.parametrize("key", sorted(NAMES))
def test_each_attempt_that_succeeds_is_a_failure_of_its_own(key: str) -> None:
    effect = "refused" if key == "workspace" else "reached"
    checks = judge({**SAFE, key: (effect, "the words")}, network=False, left=[])
    assert of(checks, key).status is Status.FAIL
    assert "the words" in of(checks, key).detail
    assert of(checks, key).mend
    assert [check.status for check in checks].count(Status.FAIL) == 1


@pytest.mark.parametrize("key", sorted(NAMES))
def test_an_attempt_that_was_not_made_is_a_failure(key: str) -> None:
    outcomes = {name: outcome for name, outcome in SAFE.items() if name != key}
    assert of(judge(outcomes, network=False, left=[]), key).status is Status.FAIL


def test_where_nothing_ran_nothing_is_ok() -> None:
    assert {check.status for check in judge({}, network=False, left=[])} == {Status.FAIL}


def test_network_that_was_asked_for_is_a_warning_and_nothing_else_is() -> None:
    reached = dict.fromkeys(NAMES, ("reached", "x"))
    checks = judge(reached, network=True, left=[])
    warned = {check.name for check in checks if check.status is Status.WARN}
    assert warned == {f"sandbox: {NAMES[key]}" for key in ("loopback", "route", "abstract_socket")}


def test_a_trace_on_the_host_is_a_failure() -> None:
    assert judge(SAFE, network=False, left=["/etc/sayso-breakout"])[-1].status is Status.FAIL
