"""When a channel's trouble is told: what lasts or is for good, once, and its end once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.outages import PATIENCE_S, STEADY_S, observe
from core.approvals.notices import CHANNEL_FAILED, CHANNEL_RECOVERED

START_MS = 1_700_000_000_000


def row(state, words="w", channel="telegram"):
    return {"channel": channel, "state": state, "words": words}


def told(*seen):
    """Look at one channel at these times (in seconds), and list when what was told, in which state."""
    outages, tellings = {}, []
    for at, state in seen:
        outages, events = observe(outages, [row(state)], START_MS + int(at * 1000), at)
        tellings += [(at, event.kind, event.data["state"]) for event in events]
    return tellings


def test_what_is_down_is_told_at_once_and_once():
    assert told((0, "ok"), (5, "down"), (6, "down"), (5000, "down")) == [(5, CHANNEL_FAILED, "down")]


def test_a_channel_that_could_not_be_opened_is_told_at_the_first_look():
    assert told((0, "down")) == [(0, CHANNEL_FAILED, "down")]


def test_a_state_without_a_name_is_the_gravest():
    assert told((0, "odd")) == [(0, CHANNEL_FAILED, "odd")]


@pytest.mark.parametrize("longest", [1, PATIENCE_S - 0.1])
def test_a_hiccup_is_not_told_nor_its_end(longest):
    assert told((0, "ok"), (1, "degraded"), (1 + longest, "degraded"), (2 + longest, "ok"), (900, "ok")) == []


def test_connecting_at_the_start_is_not_told():
    assert told((0, "degraded"), (1, "degraded"), (30, "ok"), (900, "ok")) == []


def test_what_lasts_is_told_once_and_once_that_it_is_over():
    assert told(
        (0, "ok"),
        (10, "degraded"),
        (10 + PATIENCE_S, "degraded"),
        (11 + PATIENCE_S, "degraded"),
        (600, "ok"),
        (600 + STEADY_S - 0.1, "ok"),
        (600 + STEADY_S, "ok"),
        (900, "ok"),
    ) == [
        (10 + PATIENCE_S, CHANNEL_FAILED, "degraded"),
        (600 + STEADY_S, CHANNEL_RECOVERED, "ok"),
    ]


def test_an_outage_that_turns_out_to_be_for_good_is_told_a_second_time():
    assert told((0, "degraded"), (200, "degraded"), (300, "down"), (301, "degraded"), (302, "down")) == [
        (200, CHANNEL_FAILED, "degraded"),
        (300, CHANNEL_FAILED, "down"),
    ]


def test_a_channel_that_works_only_for_moments_is_in_trouble():
    seen = [(at, "ok" if at % 10 == 0 else "degraded") for at in range(1, 300)]
    assert told(*seen) == [(1 + PATIENCE_S, CHANNEL_FAILED, "degraded")]


def test_hiccups_that_are_apart_are_not_one_outage():
    seen = [(at, "degraded" if at % 60 == 0 else "ok") for at in range(1, 600)]
    assert told(*seen) == []


def test_it_is_told_since_when_and_why_whatever_the_wall_clock_does():
    outages, _ = observe({}, [row("degraded", "no network")], START_MS, 0)
    outages, (event,) = observe(outages, [row("degraded", "no route")], START_MS - 9_000, PATIENCE_S)
    assert event.data == {"channel": "telegram", "state": "degraded", "words": "no route", "since": START_MS}
    assert (event.at, event.actor, event.request_id) == (START_MS - 9_000, "channel:telegram", None)


def test_one_channel_does_not_stand_for_another():
    outages, first = observe({}, [row("down"), row("ok", channel="slack")], START_MS, 0)
    _, second = observe(outages, [row("down"), row("down", channel="slack")], START_MS, 1)
    assert [event.data["channel"] for event in (*first, *second)] == ["telegram", "slack"]


LOOKS = st.lists(
    st.tuples(st.floats(0.1, 300), st.sampled_from(["ok", "degraded", "down", "odd"])),
    min_size=1,
    max_size=60,
)


@given(LOOKS)
def test_tellings_alternate_and_every_recovery_follows_a_failure(looks):
    outages, at, events = {}, 0.0, []
    for later, state in looks:
        at += later
        outages, new = observe(outages, [row(state)], int(at * 1000), at)
        events += new
    grades = [(event.kind, event.data["state"].replace("odd", "down")) for event in events]
    for before, after in pairwise([(CHANNEL_RECOVERED, "ok"), *grades]):
        assert before != after
        assert CHANNEL_FAILED in (before[0], after[0])
    assert len(events) <= len(looks)


@given(LOOKS)
def test_whoever_is_down_now_was_told_of(looks):
    outages, at = {}, 0.0
    for later, state in looks:
        at += later
        outages, _ = observe(outages, [row(state)], int(at * 1000), at)
        assert state not in ("down", "odd") or outages["telegram"].told == 2
