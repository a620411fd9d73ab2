"""Modes that the operator sets for one session: stricter for it and its subagents, and never milder.

Of SessionModesDesk and SessionModesStore, by the real desk over the real store.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.stores.sqlite import open_store
from core.config import Config
from core.errors import RequestError
from core.execsec.policy import effective
from core.execsec.tighten import in_force
from core.judge import Judge
from core.model.command import Placement
from core.model.outcome import Status
from core.model.request import Answer, AuditEvent, Review
from core.model.session import SessionKey
from core.model.session_modes import SessionModes
from core.model.standing import Remembered
from core.session_modes import SessionModesConsole
from tests.core_system import ALICE, CONFIG, exec_call

MAIN = "agent:main:main"
CHILD = "agent:main:main:subagent:a"
GRANDCHILD = "agent:main:main:subagent:a:subagent:b"
OTHER = "agent:main:telegram:1"
LISTED = ("git", "--version")
MISSED = ("ls",)


@pytest.fixture
async def desk(system):
    await system.credentials.mint("main", "test")
    return SessionModesConsole(system.store, system.clock)


async def judged(system, session, argv):
    return (await system.gate.consider(exec_call(*argv, session=SessionKey.parse(session))))[1]


async def effects(system, *sessions, argv=LISTED):
    return [str((await judged(system, session, argv)).effect) for session in sessions]


@pytest.mark.parametrize(
    ("modes", "listed", "missed"),
    [
        ({"security": "deny"}, "deny", "deny"),
        ({"security": "allowlist"}, "allow", "ask"),
        ({"ask": "always"}, "ask", "ask"),
        ({"ask": "on-miss"}, "allow", "ask"),
        ({"security": "deny", "ask": "always"}, "deny", "deny"),
    ],
)
async def test_it_holds_for_the_session_and_all_that_descends_from_it(system, desk, modes, listed, missed):
    await desk.tighten(MAIN, modes.get("security"), modes.get("ask"), ALICE)
    assert await effects(system, MAIN, CHILD, GRANDCHILD, OTHER) == [listed, listed, listed, "allow"]
    assert await effects(system, MAIN, CHILD, GRANDCHILD, OTHER, argv=MISSED) == [
        missed,
        missed,
        missed,
        "ask",
    ]


async def test_what_is_set_for_a_subagent_holds_for_it_and_not_for_its_parent(system, desk):
    await desk.tighten(CHILD, "deny", None, ALICE)
    assert await effects(system, MAIN, CHILD, GRANDCHILD) == ["allow", "deny", "deny"]


async def test_a_subagent_cannot_be_set_milder_than_its_parent(system, desk):
    await desk.tighten(MAIN, "deny", "always", ALICE)
    await desk.tighten(CHILD, "allowlist", "on-miss", ALICE)
    assert await effects(system, CHILD, GRANDCHILD) == ["deny", "deny"]


async def test_the_answer_says_where_it_is_stated(system, desk):
    await desk.tighten(MAIN, "deny", None, ALICE)
    row = {"argv": list(LISTED), "session": GRANDCHILD}
    answer = await system.console.explain(row)
    assert (answer["effect"], answer["source"]) == ("deny", f"sayso session tighten {MAIN}")
    await desk.clear(MAIN, ALICE)
    await desk.tighten(MAIN, None, "always", ALICE)
    answer = await system.console.explain(row)
    assert answer["effect"] == "ask"
    assert f"sayso session tighten {MAIN}" in {step["source"] for step in answer["trace"]}


async def test_modes_add_up_until_they_are_cleared(system, desk):
    await desk.tighten(MAIN, None, "always", ALICE)
    told = await desk.tighten(MAIN, "deny", None, ALICE)
    assert (
        told["text"]
        == f"From now on security is deny and ask is always for {MAIN} and its subagents, at the least."
    )
    assert [(row["security"], row["ask"]) for row in await desk.tightened()] == [("deny", "always")]
    await desk.clear(MAIN, ALICE)
    assert await desk.tightened() == []
    assert await effects(system, MAIN) == ["allow"]


async def test_what_waits_when_it_is_set_does_not_run(system, desk):
    task, observer = system.asking(exec_call(*MISSED))
    await asyncio.wait_for(observer.asked.wait(), 5)
    await desk.tighten(MAIN, "deny", None, ALICE)
    await system.console.resolve(Review(observer.seen[0][1], Answer.ALLOW_ONCE, ALICE))
    outcome = await asyncio.wait_for(task, 5)
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_what_was_allowed_for_a_time_is_asked_about_again(system, desk):
    task, observer = system.asking(exec_call(*MISSED))
    await asyncio.wait_for(observer.asked.wait(), 5)
    review = Review(observer.seen[0][1], Answer.ALLOW_FOR, ALICE, for_ms=60_000)
    await system.console.resolve(review)
    await asyncio.wait_for(task, 5)
    assert await effects(system, MAIN, argv=MISSED) == ["allow"]
    await desk.tighten(MAIN, None, "always", ALICE)
    assert await effects(system, MAIN, argv=MISSED) == ["ask"]
    await desk.tighten(MAIN, "deny", None, ALICE)
    assert await effects(system, MAIN, argv=MISSED) == ["deny"]


@pytest.mark.parametrize(
    ("session", "words"),
    [
        ("main", "is not of the form agent:<id>:main"),
        ("agent:Main:main", "names no valid agent id"),
        ("agent:mian:main", "there is no agent 'mian'; `sayso agent list` tells which there are"),
    ],
)
async def test_a_session_that_cannot_be_is_refused_and_nothing_is_set(desk, session, words):
    with pytest.raises(RequestError, match="session") as refused:
        await desk.tighten(session, "deny", None, ALICE)
    assert words in str(refused.value)
    assert refused.value.field == "session"
    assert await desk.tightened() == []


async def test_setting_nothing_and_clearing_what_was_not_set_are_refused(desk):
    with pytest.raises(RequestError, match="give security, ask or both"):
        await desk.tighten(MAIN, None, None, ALICE)
    with pytest.raises(RequestError, match=f"nothing is set for {MAIN}"):
        await desk.clear(MAIN, ALICE)


async def test_each_change_is_in_the_record_with_who_made_it(system, desk):
    await desk.tighten(MAIN, None, "always", ALICE)
    await desk.clear(MAIN, ALICE)
    events = [chained.event async for chained in system.store.events()]
    found = [(event.kind, event.actor, event.data) for event in events if event.kind.startswith("session.")]
    who = f"person:{ALICE.channel}:{ALICE.id}"
    assert found == [
        ("session.tightened", who, {"session": MAIN, "security": None, "ask": "always"}),
        ("session.cleared", who, {"session": MAIN}),
    ]


async def test_the_store_keeps_each_session_by_itself(kept):
    event = AuditEvent(1, "session.tightened", "test", None, {})
    first = await kept.tighten_session(SessionModes(MAIN, "deny", None, 1), event)
    assert first == SessionModes(MAIN, "deny", None, 1)
    assert await kept.tighten_session(SessionModes(MAIN, None, "always", 2), event) == replace(
        first, ask="always", set_at=2
    )
    await kept.tighten_session(SessionModes(OTHER, None, "on-miss", 3), event)
    assert [modes.session for modes in await kept.session_modes()] == [MAIN, OTHER]
    remembered = await kept.remembered("main", "b" * 64, 1, SessionKey.parse(CHILD).lineage)
    assert [each.security and each.security.value for each in remembered.tightenings if each.ask] == ["deny"]
    assert await kept.clear_session(MAIN, event) is True
    assert await kept.clear_session(MAIN, event) is False
    assert [modes.session for modes in await kept.session_modes()] == [OTHER]


async def test_it_outlives_the_daemon(tmp_path):
    event = AuditEvent(1, "session.tightened", "test", None, {})
    async with open_store(tmp_path / "first.db") as store:
        await store.tighten_session(SessionModes(MAIN, "deny", None, 1), event)
    async with open_store(tmp_path / "first.db") as store:
        assert await store.session_modes() == (SessionModes(MAIN, "deny", None, 1),)


_SECURITY, _ASK = ("deny", "allowlist", "full"), ("off", "on-miss", "always")
_MODES = st.builds(
    lambda security, ask: SessionModes(MAIN, security, ask, 0).tightening(),
    st.sampled_from((None, *_SECURITY)),
    st.sampled_from((None, *_ASK)),
)


@given(
    st.sampled_from(_SECURITY),
    st.sampled_from(_ASK),
    st.sampled_from((None, *_SECURITY)),
    st.lists(_MODES, max_size=4),
    st.sampled_from([LISTED, MISSED, ("sudo", "ls"), ("bash", "-c", "git --version | wc")]),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_set_no_answer_is_milder_for_it(system, security, ask, requested, modes, argv):
    exec_settings = CONFIG["tools"]["exec"] | {"security": security, "ask": ask}
    config = Config.model_validate(CONFIG | {"tools": CONFIG["tools"] | {"exec": exec_settings}})
    judge = Judge(config, system.judge.site, system.judge._resolver, system.judge._names)
    case = judge.examine(replace(exec_call(*argv), security=requested), look_up=False)
    without = judge.verdict(case, Remembered()).effect
    answers = [
        judge.verdict(case, Remembered(tightenings=tuple(modes[:n]))).effect for n in range(len(modes) + 1)
    ]
    assert answers == sorted(answers)
    assert answers[0] == without
    policy = effective(config, "main", Placement.SANDBOX, home="/", protected_paths=())
    assert in_force(policy, case.call, modes)[0] == policy
