"""How channels are, and how the doctor judges it."""

from __future__ import annotations

import pytest

from bot.check import Status
from bot.doctor_channels import judged
from bot.health import ChannelHealth


class Plain:
    name = "terminal"


class Sensing:
    name = "telegram"

    def __init__(self, *health):
        self.health = lambda: health


def test_a_channel_that_tells_nothing_is_ok_while_it_is_open():
    health = ChannelHealth()
    health.opened(Plain())
    assert health.rows() == [{"channel": "terminal", "state": "ok", "words": "open"}]
    assert not health.troubles()


def test_what_a_channel_says_of_itself_is_told():
    health = ChannelHealth()
    health.opened(Sensing("degraded", "connecting"))
    assert health.troubles() == ["telegram is degraded: connecting"]


def test_a_channel_that_could_not_be_opened_is_down_with_its_reason():
    health = ChannelHealth()
    health.failed("telegram", "wrong token")
    assert health.rows() == [{"channel": "telegram", "state": "down", "words": "not opened: wrong token"}]


@pytest.mark.parametrize(
    ("state", "status"),
    [("ok", Status.OK), ("degraded", Status.WARN), ("down", Status.FAIL), ("odd", Status.FAIL)],
)
def test_the_doctor_judges_each_state(state, status):
    (check,) = judged([{"channel": "telegram", "state": state, "words": "w"}])
    assert (check.name, check.status, check.detail) == ("channel telegram", status, "w")
    assert bool(check.mend) is (state != "ok")
