"""Which places are asked for which question, and when nobody can be."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.approvals.routes import LOCAL_CHANNELS, Route, routes_for
from core.config import Config, ExecApprovals
from core.model.session import SessionKey

EVERYTHING = ("web", "terminal", "telegram", "discord", "slack")
CHAT = SessionKey.parse("agent:main:telegram:4711")
MAIN = SessionKey.main("main")
ANYBODY = ("id:1",)
SLACK = {"channel": "slack", "to": "user:U1"}
DISCORD = {"channel": "discord", "to": "channel:99"}


def asked(
    session: SessionKey = CHAT, *, channels: tuple[str, ...] = EVERYTHING, agent: str = "main", **keys: Any
) -> list[tuple[str, str]]:
    return [(route.channel, route.place) for route in routes(session, channels=channels, agent=agent, **keys)]


def routes(
    session: SessionKey = CHAT, *, channels: tuple[str, ...] = EVERYTHING, agent: str = "main", **keys: Any
) -> tuple[Route, ...]:
    settings = ExecApprovals.model_validate({"approvers": ANYBODY, **keys})
    return routes_for(settings, agent=agent, session=session, open_channels=channels)


def test_without_anything_configured_the_page_and_the_terminal_ask() -> None:
    found = routes_for(ExecApprovals(), agent="main", session=CHAT, open_channels=EVERYTHING)
    assert found == (
        Route("web", "", (), 120_000, "channels.web"),
        Route("terminal", "", (), 120_000, "channels.terminal"),
    )


def test_where_nothing_is_open_nobody_is_asked() -> None:
    assert asked(channels=(), mode="both", targets=[SLACK]) == []


def test_the_chat_of_the_session_is_asked() -> None:
    (route, *_) = routes(mode="session", targets=[SLACK])
    assert route == Route("telegram", "4711", ANYBODY, 120_000, "approvals.exec.mode")


def test_a_spawned_session_asks_in_the_chat_it_descends_from() -> None:
    assert asked(SessionKey.parse(f"{CHAT}:subagent:a"))[0] == ("telegram", "4711")


def test_a_session_without_a_chat_asks_locally() -> None:
    assert asked(MAIN) == [("web", ""), ("terminal", "")]


@pytest.mark.parametrize(
    ("mode", "chats"),
    [
        ("session", [("telegram", "4711")]),
        ("targets", [("slack", "user:U1"), ("discord", "channel:99")]),
        ("both", [("slack", "user:U1"), ("discord", "channel:99"), ("telegram", "4711")]),
    ],
)
def test_the_mode_chooses_among_the_chats(mode: str, chats: list[tuple[str, str]]) -> None:
    assert asked(mode=mode, targets=[SLACK, DISCORD]) == [*chats, ("web", "")]


def test_a_route_says_where_it_is_written() -> None:
    found = routes(mode="targets", targets=[SLACK, DISCORD])
    assert [route.source for route in found] == [
        "approvals.exec.targets[0]",
        "approvals.exec.targets[1]",
        "channels.web",
    ]


def test_a_target_may_have_approvers_and_time_of_its_own() -> None:
    own = {**SLACK, "approvers": ["slack:U7"], "timeout": 300_000}
    (first, second, local) = routes(mode="targets", targets=[own, DISCORD], timeout=60_000)
    assert (first.approvers, first.timeout_ms) == (("slack:U7",), 300_000)
    assert (second.approvers, second.timeout_ms) == (ANYBODY, 60_000)
    assert local.timeout_ms == 60_000


def test_a_chat_in_which_nobody_may_answer_is_not_asked_and_leaves_the_terminal() -> None:
    assert asked(approvers=[], mode="both", targets=[SLACK]) == [("web", ""), ("terminal", "")]


@pytest.mark.parametrize("approvers", [["discord:1"], ["telegram:nmae:Alice"], ["123456789"], ["*"]])
def test_approvers_that_cannot_be_in_the_chat_do_not_count(approvers: list[str]) -> None:
    assert asked(approvers=approvers) == [("web", ""), ("terminal", "")]


def test_a_target_that_nobody_can_answer_does_not_fall_back_to_more_people() -> None:
    target = {"channel": "telegram", "to": "4711", "approvers": ["slack:U1"]}
    assert asked(mode="both", targets=[target], channels=("telegram",)) == []


def test_the_session_s_chat_is_asked_once_where_it_is_a_target_too() -> None:
    target = {"channel": "telegram", "to": "4711", "approvers": ["telegram:5"]}
    found = routes(mode="both", targets=[target], channels=("telegram",))
    assert [(route.place, route.approvers) for route in found] == [("4711", ("telegram:5",))]


def test_a_closed_channel_is_not_asked() -> None:
    assert asked(channels=("web", "terminal"), mode="both", targets=[SLACK]) == [
        ("web", ""),
        ("terminal", ""),
    ]


def test_switched_off_approvals_leave_the_local_channels() -> None:
    assert asked(enabled=False, mode="both", targets=[SLACK]) == [("web", ""), ("terminal", "")]


@pytest.mark.parametrize("channel", LOCAL_CHANNELS)
def test_a_target_or_session_cannot_pose_as_a_local_channel(channel: str) -> None:
    session = SessionKey.parse(f"agent:main:{channel}:x")
    target = {"channel": channel, "to": "x", "approvers": ["id:1"]}
    assert asked(session, mode="both", targets=[target]) == [("web", ""), ("terminal", "")]


@pytest.mark.parametrize(
    ("prompt", "session", "terminal"),
    [
        ("auto", CHAT, False),
        ("auto", MAIN, True),
        ("always", CHAT, True),
        ("always", MAIN, True),
        ("never", CHAT, False),
        ("never", MAIN, False),
    ],
)
def test_the_terminal_is_silent_while_a_chat_is_asked(
    prompt: str, session: SessionKey, *, terminal: bool
) -> None:
    found = asked(session, localPrompt=prompt)
    assert (("terminal", "") in found) == terminal
    assert ("web", "") in found


@pytest.mark.parametrize(
    ("keys", "passes"),
    [
        ({"agentFilter": ["main"]}, True),
        ({"agentFilter": ["other", "main"]}, True),
        ({"agentFilter": ["other"]}, False),
        ({"agentFilter": ["mai", "Main", "*"]}, False),
        ({"sessionFilter": ["telegram"]}, True),
        ({"sessionFilter": ["discord"]}, False),
        ({"sessionFilter": ["discord", "telegram"]}, True),
        ({"sessionFilter": ["4711"]}, True),
        ({"sessionFilter": ["main:telegram:47"]}, True),
        ({"sessionFilter": ["4712"]}, False),
        ({"sessionFilter": ["Telegram:4711"]}, False),
        ({"sessionFilter": ["/^agent:main:.*:47/"]}, True),
        ({"sessionFilter": ["/^main/"]}, False),
        ({"sessionFilter": ["."]}, False),
        ({"agentFilter": ["main"], "sessionFilter": ["discord"]}, False),
        ({"agentFilter": ["other"], "sessionFilter": ["telegram"]}, False),
    ],
)
def test_filters_choose_whose_questions_reach_chats(keys: dict[str, Any], *, passes: bool) -> None:
    found = asked(**keys)
    assert (("telegram", "4711") in found) == passes
    assert (("terminal", "") in found) != passes


def test_a_channel_s_name_in_a_filter_means_the_channel_alone() -> None:
    named_after_one = SessionKey.parse("agent:discord-helper:telegram:1")
    assert ("telegram", "1") not in asked(named_after_one, agent="discord-helper", sessionFilter=["discord"])


def test_an_expression_takes_linear_time() -> None:
    session = SessionKey.parse("agent:main:telegram:" + "a" * 128)
    assert asked(session, sessionFilter=["/(a|a|aa)+$x/"]) == [("web", ""), ("terminal", "")]


@pytest.mark.parametrize("text", ["/(/", "/(?=x)/", "//"])
def test_an_expression_that_does_not_compile_is_refused_when_read(text: str) -> None:
    with pytest.raises(ValidationError, match="is no RE2 expression"):
        ExecApprovals.model_validate({"sessionFilter": [text]})


def test_an_expression_that_was_never_checked_matches_nothing() -> None:
    settings = ExecApprovals.model_construct(approvers=ANYBODY, session_filter=("/(/",))
    found = routes_for(settings, agent="main", session=CHAT, open_channels=("telegram",))
    assert found == ()


@pytest.mark.parametrize("to", ["U1", "user:U1", "channel:-1001234", "thread:-1001234:45", "thread:1.2"])
def test_a_target_names_a_person_a_channel_a_thread_or_an_id(to: str) -> None:
    (route, _) = routes(mode="targets", targets=[{"channel": "slack", "to": to}])
    assert route.place == to


@pytest.mark.parametrize(
    "to", ["", "user:", "usr:U1", "-1001234:45", "user: U1", "U1\n", "user:U1 ", "#general"]
)
def test_a_target_of_another_form_is_refused_when_read(to: str) -> None:
    with pytest.raises(ValidationError, match="to"):
        ExecApprovals.model_validate({"targets": [{"channel": "slack", "to": to}]})


def test_the_same_place_twice_is_refused_when_read() -> None:
    with pytest.raises(ValidationError, match=r"\[2\] is the same place as \[0\]"):
        ExecApprovals.model_validate({"targets": [SLACK, DISCORD, {**SLACK, "timeout": 5_000}]})


def test_notices_are_quiet_where_they_would_be_noisy() -> None:
    notices = Config().approvals.notices
    assert (notices.denied, notices.security, notices.channel) == (True, True, True)
    assert (notices.asked_elsewhere, notices.finished, notices.targets) == (False, False, ())


approver_lists = st.lists(
    st.sampled_from(["id:1", "slack:U1", "discord:2", "telegram:3", "name:Alice", "faulty"]), max_size=3
)
targets = st.lists(
    st.fixed_dictionaries(
        {
            "channel": st.sampled_from([*EVERYTHING, "unknown"]),
            "to": st.sampled_from(["user:1", "channel:2", "thread:3", "4711"]),
            "approvers": approver_lists,
            "timeout": st.one_of(st.none(), st.integers(1_000, 9_000)),
        }
    ),
    max_size=4,
    unique_by=lambda target: (target["channel"], target["to"]),
)
settings_as_read = st.fixed_dictionaries(
    {
        "enabled": st.booleans(),
        "mode": st.sampled_from(["session", "targets", "both"]),
        "localPrompt": st.sampled_from(["auto", "always", "never"]),
        "approvers": approver_lists,
        "targets": targets,
        "agentFilter": st.lists(st.sampled_from(["main", "other"]), max_size=2),
        "sessionFilter": st.lists(
            st.sampled_from(["telegram", "web", "main", "47", "/^agent/", "/x$/"]), max_size=3
        ),
    }
)
sessions = st.sampled_from(
    [
        CHAT,
        MAIN,
        SessionKey.parse("agent:main:slack:user_1"),
        SessionKey.parse("agent:other:web:x:subagent:y"),
    ]
)
open_lists = st.lists(st.sampled_from(EVERYTHING), unique=True)


def found_by(keys: dict[str, Any], session: SessionKey, channels: list[str]) -> tuple[Route, ...]:
    settings = ExecApprovals.model_validate(keys)
    return routes_for(settings, agent=session.agent, session=session, open_channels=channels)


@given(settings_as_read, sessions, open_lists)
def test_every_route_is_open_and_every_chat_has_an_approver(
    keys: dict[str, Any], session: SessionKey, channels: list[str]
) -> None:
    found = found_by(keys, session, channels)
    assert len({(route.channel, route.place) for route in found}) == len(found)
    for route in found:
        assert route.channel in channels
        assert (route.place == "") == (route.channel in LOCAL_CHANNELS) == (route.approvers == ())
        assert "faulty" not in route.approvers


@given(settings_as_read, sessions, open_lists, st.randoms(use_true_random=False))
def test_order_changes_nothing(
    keys: dict[str, Any], session: SessionKey, channels: list[str], chance: random.Random
) -> None:
    def comparable(found: tuple[Route, ...]) -> set[tuple[Any, ...]]:
        return {(r.channel, r.place, frozenset(r.approvers), r.timeout_ms) for r in found}

    shuffled = {
        key: _shuffled(value, chance) if isinstance(value, list) else value for key, value in keys.items()
    }
    other = found_by(shuffled, session, _shuffled(channels, chance))
    assert comparable(found_by(keys, session, channels)) == comparable(other)


@given(settings_as_read, sessions, open_lists)
def test_filters_only_take_chats_away(keys: dict[str, Any], session: SessionKey, channels: list[str]) -> None:
    unfiltered = found_by({**keys, "agentFilter": [], "sessionFilter": []}, session, channels)
    chats = {route for route in found_by(keys, session, channels) if route.channel not in LOCAL_CHANNELS}
    assert chats <= set(unfiltered)


@given(settings_as_read, sessions, open_lists)
def test_somebody_local_is_left_unless_told_otherwise(
    keys: dict[str, Any], session: SessionKey, channels: list[str]
) -> None:
    found = [route.channel for route in found_by(keys, session, channels)]
    assert ("web" in found) == ("web" in channels)
    if "terminal" in channels and keys["localPrompt"] != "never":
        assert found


def _shuffled(items: list[Any], chance: random.Random) -> list[Any]:
    return chance.sample(items, len(items))
