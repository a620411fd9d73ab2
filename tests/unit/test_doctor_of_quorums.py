"""What doctor says of people who must agree: too few can be reached, or a target can never be allowed."""

from __future__ import annotations

import pytest
import yaml

from bot.config import load
from bot.doctor import Status, _quorum

TARGET = {"channel": "telegram", "to": "-100", "approvers": ["telegram:1"]}
ANN_AND_BEA = {"Ann": ["telegram:1"], "Bea": ["telegram:2"]}


@pytest.fixture
def checks(tmp_path):
    """Read a configuration and return what doctor says of its people."""

    def read(people, exec_, **channels):
        path = tmp_path / "sayso.yaml"
        telegram = {"telegram": {"token": "1:x"}, **channels}
        sections = {"people": people, "channels": telegram, "approvals": {"exec": exec_}}
        path.write_text(yaml.safe_dump(sections), "utf-8")
        return list(_quorum(load([path], env={})))

    return read


def test_a_quorum_that_can_be_met_is_not_spoken_of(checks):
    assert checks(ANN_AND_BEA, {"required": 2, "approvers": ["telegram:1", "telegram:2"]}) == []


def test_where_one_yes_is_enough_nobody_needs_to_be_named(checks):
    assert checks({}, {}) == []


def test_too_few_people_who_can_be_reached_are_named_with_what_follows_and_what_mends_it(checks):
    (check,) = checks(ANN_AND_BEA, {"required": 2, "approvers": ["telegram:1"]})
    assert (check.name, check.status) == ("people", Status.WARN)
    assert check.detail == (
        "approvals.exec.required: 2 different people must say yes, and of those under people only Ann could, "
        "because their channel is on and an approver names them; unless sayso pair lets in others of them, "
        "what is asked there is denied"
    )
    assert check.mend.startswith("name more people under people, with ids that approvers name")


def test_without_any_people_it_says_that_nobody_could(checks):
    (check,) = checks({}, {"required": 2, "approvers": ["telegram:1"]})
    assert "2 different people must say yes, and nobody under people could" in check.detail


def test_a_target_that_can_never_be_allowed_is_named_by_its_path(checks):
    settings = {"mode": "targets", "targets": [TARGET, {**TARGET, "to": "-200", "required": 3}]}
    (check,) = checks({**ANN_AND_BEA, "Cem": ["cli:7"]}, settings)
    assert check.detail.startswith("approvals.exec.targets[1].required: 3 different people must say yes")
    assert "only Ann, Cem could" in check.detail


@pytest.mark.parametrize("off", [{"telegram": {"token": "1:x", "enabled": False}}])
def test_who_is_only_in_a_channel_that_is_off_is_not_counted(checks, off):
    (check,) = checks(ANN_AND_BEA, {"required": 2, "approvers": ["telegram:1", "telegram:2"]}, **off)
    assert "nobody under people could" in check.detail


def test_a_target_that_asks_for_no_more_than_everywhere_is_not_told_twice(checks):
    settings = {"required": 2, "mode": "targets", "targets": [{**TARGET, "required": 2}]}
    (check,) = checks({"Ann": ["telegram:1"]}, settings)
    assert check.detail.startswith("approvals.exec.required: ")


def test_a_page_that_another_can_open_as_somebody_is_told_with_what_mends_just_that(checks):
    (check,) = checks({"Ann": ["cli:0"], "Bea": ["web:operator"]}, {"required": 2})
    assert "Ann can make a login link and answer there as Bea" in check.detail
    assert check.mend == "change it under people, then run sayso reload"
