"""What it changes in the routes that somebody was let in: one approver in one place, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.routing import Routing
from core.approvals.rehearsal import rehearsal
from core.approvals.routes import PAIRED
from core.config import Config
from core.elevated.senders import authorised
from core.model.call import ToolCall
from core.model.pairing import PairedPerson
from core.model.principal import Sender
from core.model.session import SessionKey

LOCAL = ("web", "terminal")
OPENED = (*LOCAL, "telegram", "discord")
ANN = PairedPerson("telegram", "111", "Ann", "", 0)
IN_GROUP = replace(ANN, route="-100")
GROUP = {"channel": "telegram", "to": "channel:-100"}
MAIN, ANNS = "agent:main:main", "agent:main:telegram:111"
HERS = "telegram:id:111"


def routing(*people, opened=OPENED, notices=(), **keys):
    written = {"exec": keys, "notices": {"targets": notices}}
    config = Config.model_validate({"approvals": written})
    return Routing(lambda: config, opened, lambda: people)


def question(session=MAIN):
    return replace(rehearsal(None, 0, 1), call=ToolCall("exec", SessionKey.parse(session)))


def asked(*people, session=MAIN, opened=OPENED, **keys):
    found = routing(*people, opened=opened, **keys).routes(question(session))
    return {(route.channel, route.place): route.approvers for route in found if route.channel not in LOCAL}


@pytest.mark.parametrize("mode", ["session", "targets", "both"])
def test_direct_messages_become_a_place_to_ask_in_whatever_the_mode(mode):
    assert asked(mode=mode) == {}
    assert asked(ANN, mode=mode) == {("telegram", "111"): (HERS,)}


@pytest.mark.parametrize("mode", ["targets", "both"])
def test_a_person_joins_the_approvers_of_a_target(mode):
    keys = {"mode": mode, "targets": [{**GROUP, "approvers": ["telegram:9"]}], "approvers": ["telegram:8"]}
    assert asked(IN_GROUP, **keys) == {("telegram", "-100"): ("telegram:9", HERS)}
    del keys["targets"][0]["approvers"]
    assert asked(IN_GROUP, **keys) == {("telegram", "-100"): ("telegram:8", HERS)}


def test_a_target_without_approvers_is_asked_once_somebody_is_let_in_for_it():
    keys = {"mode": "targets", "targets": [{**GROUP, "timeout": 60_000}]}
    assert asked(**keys) == {}
    (route,) = [r for r in routing(IN_GROUP, **keys).routes(question()) if r.channel == "telegram"]
    assert (route.place, route.approvers, route.timeout_ms) == ("-100", (HERS,), 60_000)


@pytest.mark.parametrize(
    "keys",
    [
        {"mode": "targets"},
        {"mode": "both", "targets": [{"channel": "telegram", "to": "channel:-1001"}]},
        {"mode": "both", "targets": [{"channel": "discord", "to": "channel:-100"}]},
        {"mode": "both", "targets": [{"channel": "telegram", "to": "thread:-100/7"}]},
        {"mode": "session", "targets": [GROUP]},
    ],
)
def test_a_target_that_is_gone_or_not_asked_lets_nobody_in(keys):
    assert asked(IN_GROUP, **keys) == {}


@pytest.mark.parametrize("to", ["user:111", "111"])
def test_a_target_that_is_the_persons_chat_already_keeps_its_approvers(to):
    targets = [{"channel": "telegram", "to": to, "approvers": ["telegram:9"]}]
    assert asked(ANN, mode="both", targets=targets) == {("telegram", "111"): ("telegram:9", HERS)}
    targets = [{"channel": "telegram", "to": to}]
    assert asked(ANN, mode="both", targets=targets) == {("telegram", "111"): (HERS,)}


def test_the_approvers_of_a_sessions_own_chat_stay_where_its_person_is_let_in():
    named = {"approvers": ["telegram:9"], "notices": [{"channel": "telegram", "to": "user:111"}]}
    assert asked(session=ANNS, **named) == {("telegram", "111"): ("telegram:9",)}
    assert asked(ANN, session=ANNS, **named) == {("telegram", "111"): ("telegram:9", HERS)}


def test_a_target_speaks_for_its_place_also_where_the_sessions_chat_has_other_approvers():
    keys = {"mode": "both", "targets": [{**GROUP, "approvers": ["telegram:9"]}], "approvers": ["telegram:8"]}
    there = {"session": "agent:main:telegram:-100", **keys}
    assert asked(**there) == {("telegram", "-100"): ("telegram:9",)}
    assert asked(IN_GROUP, **there) == {("telegram", "-100"): ("telegram:9", HERS)}


def test_letting_a_person_in_gives_nobody_else_a_say_in_their_chat():
    assert asked(ANN, session=ANNS, approvers=["telegram:9"]) == {("telegram", "111"): (HERS,)}


@pytest.mark.parametrize("peer", ["111", "0111", "-100", "nonsense"])
def test_an_agent_cannot_push_a_person_out_by_how_it_names_its_session(peer):
    found = asked(ANN, session=f"agent:main:telegram:{peer}", approvers=["telegram:9"])
    assert found == {("telegram", "111"): (HERS,)}


@pytest.mark.parametrize(
    "filters",
    [
        {"agentFilter": ["other"]},
        {"sessionFilter": ["discord"]},
        {"sessionFilter": ["/nope/"]},
        {"enabled": False},
    ],
)
def test_filters_hold_for_people_who_were_let_in_too(filters):
    keys = {"mode": "both", "targets": [GROUP], **filters}
    assert asked(ANN, IN_GROUP, **keys) == {}


def test_a_channel_that_is_not_open_asks_nobody():
    assert asked(ANN, opened=LOCAL) == {}


def test_the_terminal_is_quiet_where_a_person_was_let_in():
    assert [route.channel for route in routing().routes(question())] == ["web", "terminal"]
    assert [route.channel for route in routing(ANN).routes(question())] == ["telegram", "web"]


def test_only_the_person_who_was_let_in_may_decide_there():
    (approvers,) = asked(ANN).values()
    assert authorised(approvers, Sender("telegram", "111"))
    for near in ("0111", "1111", "11", "", "111 ", "666"):
        assert not authorised(approvers, Sender("telegram", near, "Ann", "111", "111", "111", "111"))
    assert not authorised(approvers, Sender("discord", "111"))


def test_the_answer_follows_who_is_let_in():
    people = [()]
    config = Config()
    made = Routing(lambda: config, OPENED, lambda: people[0])
    assert ("telegram", "111") not in made.named()
    people[0] = (ANN,)
    assert ("telegram", "111") in made.named()
    assert [route.source for route in made.routes(question())] == [PAIRED, "channels.web"]
    people[0] = ()
    assert [route.channel for route in made.routes(question())] == ["web", "terminal"]


@pytest.mark.parametrize(
    ("people", "keys", "undecided"),
    [
        ((), {}, ("telegram", "discord")),
        ((ANN,), {}, ("discord",)),
        ((IN_GROUP,), {}, ("telegram", "discord")),
        ((ANN,), {"enabled": False}, ("telegram", "discord")),
        ((), {"approvers": ["telegram:1"]}, ("telegram", "discord")),
        ((), {"approvers": ["telegram:1"], "targets": [GROUP]}, ("discord",)),
        ((), {"mode": "targets", "targets": [GROUP]}, ("telegram", "discord")),
        ((), {"mode": "targets", "targets": [GROUP], "approvers": ["discord:1"]}, ("telegram", "discord")),
        ((), {"mode": "targets", "targets": [{**GROUP, "approvers": ["id:1"]}]}, ("discord",)),
        ((IN_GROUP,), {"mode": "targets", "targets": [GROUP]}, ("discord",)),
    ],
)
def test_chats_in_which_nobody_can_decide_are_listed(people, keys, undecided):
    assert routing(*people, **keys).undecided() == undecided


PLACES = ("user:111", "111", "channel:-100", "-100", "user:222", "thread:-100/7", "thread:-100/1")
APPROVERS = st.lists(st.sampled_from(["telegram:111", "telegram:9", "id:8", "discord:7"]), unique=True)
TARGETS = st.lists(
    st.fixed_dictionaries(
        {"channel": st.just("telegram"), "to": st.sampled_from(PLACES), "approvers": APPROVERS},
        optional={"timeout": st.just(60_000)},
    ),
    max_size=4,
    unique_by=lambda target: target["to"],
)
SETTINGS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["session", "targets", "both"]),
        "enabled": st.sampled_from([True, True, False]),
        "approvers": APPROVERS,
        "targets": TARGETS,
        "notices": st.sampled_from([(), ({"channel": "telegram", "to": "user:111"},)]),
        "agentFilter": st.sampled_from([(), ("main",), ("other",)]),
        "localPrompt": st.just("always"),
    }
)
SESSIONS = st.sampled_from(
    [MAIN, ANNS, "agent:main:telegram:-100", "agent:main:telegram:222", f"{ANNS}:subagent:a"]
)
PEOPLE = st.builds(
    PairedPerson,
    st.just("telegram"),
    st.sampled_from(["111", "222", "333"]),
    st.just("X"),
    st.sampled_from(["", "-100", "111", "-100/7"]),
    st.just(0),
)


@given(SETTINGS, SESSIONS, st.lists(PEOPLE, max_size=3, unique=True), PEOPLE)
def test_letting_somebody_in_adds_them_in_one_place_and_changes_nothing_else(settings, session, others, new):
    others = [one for one in others if (one.id, one.route) != (new.id, new.route)]
    before = routing(*others, **settings).routes(question(session))
    after = routing(*others, new, **settings).routes(question(session))
    hers = (new.channel, new.route or new.id)
    added = [
        route for route in after if (route.channel, route.place) not in {(r.channel, r.place) for r in before}
    ]
    grown = {(route.channel, route.place): route for route in after}
    for route in before:
        now = grown[route.channel, route.place]
        more = (f"telegram:id:{new.id}",) if (route.channel, route.place) == hers else ()
        allowed = {route.approvers, (*route.approvers, *more)}
        assert now.approvers in allowed
        assert replace(now, approvers=()) == replace(route, approvers=())
    assert [(route.channel, route.place, route.approvers) for route in added] in (
        [],
        [(*hers, (f"telegram:id:{new.id}",))],
    )
    asks = settings["enabled"] and settings["agentFilter"] != ("other",)
    theirs = {"user:111": "111", "channel:-100": "-100", "thread:-100/7": "-100/7", "thread:-100/1": "-100"}
    there = {theirs.get(target["to"], target["to"]) for target in settings["targets"]}
    if asks and (not new.route or (settings["mode"] != "session" and new.route in there)):
        assert f"telegram:id:{new.id}" in grown[hers].approvers
    else:
        assert after == before
