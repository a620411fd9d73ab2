"""What the store keeps of elevation (ElevationStore), and the desks at which levels are set.

The operator's is SessionDesk, that of the chats `core.directives`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.approvals import commands
from core.directives import NOT_YOURS, REPORTED_AT, TOO_LATE, Directives
from core.elevated.senders import KNOWN_CHANNELS
from core.elevations import Elevations
from core.elevator import Elevator, Wish
from core.errors import RequestError
from core.model.call import CommandText, ToolCall
from core.model.chat import Press, Typed, Verb
from core.model.elevation import ChatBinding, Elevation, Level
from core.model.principal import Reviewer, Sender
from core.model.request import AuditEvent
from core.model.session import SessionKey
from core.session_console import SessionConsole
from tests.core_system import ALICE, MAIN

ANN = Sender("telegram", "1", "Ann", "ann")
MALLORY = Sender("telegram", "6", "Ann", "ann")
PAGE = Reviewer("web", "operator", "Ada")
EVENT = AuditEvent(5, "elevated.set", "person:telegram:1")
GROUP = SessionKey("main", "telegram", "-100")
CONFIG = {
    "tools": {
        "profile": "coding",
        "exec": {"security": "allowlist"},
        "elevated": {"enabled": True, "allowFrom": ["telegram:1"]},
    }
}


def elevation(number=1, level=Level.ON, session="agent:main:main", **fields):
    return Elevation(f"e{number}", session, level, ANN, 1_000 + number, **fields)


class Desks:
    """Both desks over a store; notes what people are told of."""

    def __init__(self, system):
        self.system, self.news = system, []
        self.elevations = system.elevations
        self.elevator = Elevator(
            self.elevations, system.store, system.clock, lambda: system.judge.config, self.news.append
        )
        self.elevator.on_end.append(system.approvals.end_session)
        self.operator = SessionConsole(self.elevator, self.elevations, system.store, system.clock, _place)
        self.chats = Directives(self.elevator, system.store, system.clock, _place, self.news.append)

    async def type(self, text, sender=ANN, place="-100"):
        command = commands.parse(text)
        return await self.chats.typed(Typed(sender, place, text, direct=False), command)

    async def press(self, token, sender=ANN):
        return await self.chats.chosen(Press(sender, "1", "7", Verb.CHOOSE, token))

    async def seen(self, *sessions):
        for session in sessions:
            await self.system.store.deepest(str(session), session.depth, self.system.clock.now())

    def level(self, session=MAIN):
        return self.elevations.standing(ToolCall("exec", session, command=CommandText(line="ls"))).level

    def kinds(self):
        return [event.kind for event in self.news]


def _place(channel, to):
    if channel == "telegram" and not to.lstrip("-").isdigit():
        raise ValueError(f"{to} is no chat of Telegram")
    return to


@pytest.fixture
async def desks(make_system):
    system = make_system(CONFIG)
    for agent in ("main", "other"):
        await system.credentials.mint(agent, "operator")
    return Desks(system)


# The store


async def test_what_was_set_outlives_the_store(open_any_store):
    kept = elevation(until=9_000, reason="why", break_glass=True)
    async with open_any_store() as store:
        assert await store.elevate(kept, EVENT)
    async with open_any_store() as store:
        assert await store.elevations() == (kept,)


async def test_one_level_takes_the_place_of_another_in_its_session_alone(store):
    await store.elevate(elevation(1), EVENT)
    await store.elevate(elevation(2, session="agent:other:main"), EVENT)
    await store.elevate(elevation(3, Level.FULL), EVENT)
    assert [one.id for one in await store.elevations()] == ["e2", "e3"]


async def test_a_directive_is_used_once_in_its_time_and_leaves_the_session_alone(store):
    await store.elevate(elevation(1), EVENT)
    await store.elevate(elevation(2, once=True, until=5_000), EVENT)
    assert not await store.use_directive("e1", 2_000)
    assert not await store.use_directive("e2", 5_000)
    assert await store.use_directive("e2", 4_999)
    assert not await store.use_directive("e2", 4_999)
    assert [one.used_at for one in await store.elevations()] == [None, 4_999]


async def test_nothing_is_elevated_while_locked_and_a_lock_ends_what_was(store):
    await store.elevate(elevation(1), EVENT)
    await store.set_locked(locked=True, event=EVENT)
    assert not await store.elevate(elevation(2), EVENT)
    assert await store.elevations() == ()
    await store.set_locked(locked=False, event=EVENT)
    assert await store.elevations() == ()


async def test_a_session_ends_with_its_chats_and_others_go_on(store):
    await store.elevate(elevation(1), EVENT)
    await store.elevate(elevation(2, session="agent:main_:main"), EVENT)
    for agent, session in (("main", "agent:main:main"), ("other", "agent:other:main")):
        await store.bind_chat(ChatBinding("telegram", "-100", session, ANN, 1), agent, EVENT)
    assert await store.end_session("agent:main:main", EVENT)
    assert not await store.end_session("agent:main:main", EVENT)
    assert [one.id for one in await store.elevations()] == ["e2"]
    assert [one.session for one in await store.chat_bindings()] == ["agent:other:main"]


async def test_a_chat_means_one_session_of_each_agent(store):
    for session in ("agent:main:main", "agent:main:web:x"):
        await store.bind_chat(ChatBinding("telegram", "-100", session, ANN, 1), "main", EVENT)
    assert [one.session for one in await store.chat_bindings()] == ["agent:main:web:x"]


async def test_sessions_are_listed_and_found_by_their_channel(store):
    for key in ("agent:main:telegram:1", "agent:main:telegram:1:subagent:x", "agent:main:main"):
        await store.deepest(key, 0, 1_000)
    assert {session.key for session in await store.sessions(10)} == {
        "agent:main:telegram:1",
        "agent:main:telegram:1:subagent:x",
        "agent:main:main",
    }
    assert await store.sessions_on("telegram") == ("agent:main:telegram:1",)
    assert await store.sessions_on("tele_ram") == ()


async def test_what_was_set_is_taken_up_by_the_next_daemon(desks):
    await desks.elevator.set(Wish(MAIN, Level.FULL), ANN)
    again = Elevations(desks.system.store, desks.system.clock, lambda: desks.system.judge.config)
    assert again.standing(ToolCall("exec", MAIN)).level is Level.OFF
    await again.load()
    assert again.standing(ToolCall("exec", MAIN)).level is Level.FULL


# The operator


async def test_the_operator_sees_every_session_and_what_is_set(desks):
    await desks.seen(MAIN, GROUP)
    await desks.elevator.set(Wish(GROUP, Level.ASK, 60_000, "a look"), ANN)
    await desks.operator.bind(str(GROUP), "telegram", "-100", ALICE)
    rows = {row["session"]: row for row in await desks.operator.sessions()}
    assert rows[str(MAIN)]["elevated"] == "off"
    row = rows[str(GROUP)]
    assert (row["elevated"], row["reason"], row["chats"]) == ("ask", "a look", [["telegram", "-100"]])
    assert row["setBy"] == "Ann (telegram:1)"


@pytest.mark.parametrize(
    ("level", "for_ms", "reason", "words"),
    [
        ("on", None, None, "break-glass: give a reason"),
        ("full", None, "disk full", "give a time and a reason"),
        ("full", 60_000, None, "give a time and a reason"),
    ],
)
async def test_break_glass_demands_its_reason(desks, level, for_ms, reason, words):
    with pytest.raises(RequestError, match=words):
        await desks.operator.elevate(str(MAIN), level, for_ms, reason, ALICE)
    assert desks.level() is Level.OFF
    assert desks.news == []


async def test_break_glass_works_and_is_announced_as_such(desks):
    answer = await desks.operator.elevate(str(MAIN), "full", 900_000, "disk full", ALICE)
    assert answer["breakGlass"]
    assert desks.level() is Level.FULL
    (event,) = desks.news
    assert (event.kind, event.data["breakGlass"], event.data["reason"]) == ("elevated.set", True, "disk full")


async def test_the_page_must_be_in_allow_from(desks):
    with pytest.raises(RequestError, match=r"web:operator is not in tools\.elevated\.allowFrom"):
        await desks.operator.elevate(str(MAIN), "on", None, "why", PAGE)
    assert (await desks.operator.elevate(str(MAIN), "off", None, None, PAGE))["level"] == "off"


@pytest.mark.parametrize(
    ("session", "words"), [("main", "not of the form"), ("agent:nobody:main", "no agent")]
)
async def test_a_session_that_cannot_be_is_refused(desks, session, words):
    with pytest.raises(RequestError, match=words):
        await desks.operator.elevate(session, "on", None, "why", ALICE)
    assert await desks.system.store.elevations() == ()


async def test_nobody_is_elevated_while_elevated_mode_is_off_or_all_is_locked(desks):
    await desks.system.console.set_locked(locked=True, reviewer=ALICE)
    with pytest.raises(RequestError, match="locked"):
        await desks.operator.elevate(str(MAIN), "on", None, "why", ALICE)
    desks.system.judge.config = type(desks.system.judge.config).model_validate({})
    with pytest.raises(RequestError, match=r"tools\.elevated\.enabled is false"):
        await desks.operator.elevate(str(MAIN), "on", None, "why", ALICE)


async def test_a_chat_is_bound_to_a_session_and_nonsense_is_not(desks):
    for channel, to, words in (("web", "x", "no chat"), ("telegram", "x", "no chat of Telegram")):
        with pytest.raises(RequestError, match=words):
            await desks.operator.bind(str(MAIN), channel, to, ALICE)
    await desks.operator.bind(str(MAIN), "telegram", "-100", ALICE)
    await desks.type("/elevated on")
    assert desks.level() is Level.ON


async def test_a_session_is_ended_with_its_level(desks):
    await desks.elevator.set(Wish(MAIN, Level.FULL), ANN)
    answer = await desks.operator.end(str(MAIN), ALICE)
    assert "ended" in answer["text"]
    assert desks.level() is Level.OFF


# Chats


async def test_a_chat_means_the_session_that_names_it(desks):
    await desks.seen(GROUP, replace(GROUP, peer="-200"), MAIN)
    reply = await desks.type("/elevated on for 30m")
    assert not reply.private
    assert str(GROUP) in reply.text
    assert desks.level(GROUP) is Level.ON
    assert desks.level(replace(GROUP, peer="-200")) is desks.level(MAIN) is Level.OFF
    desks.system.clock.advance(30 * 60_000)
    assert desks.level(GROUP) is Level.OFF


async def test_the_state_is_told_to_those_who_may(desks):
    await desks.seen(GROUP)
    await desks.type(f"/elevated full {GROUP}")
    assert "elevated full, set by Ann (telegram:1)" in (await desks.type("/elevated")).text
    assert await desks.type("/elevated", sender=MALLORY) == NOT_YOURS


async def test_of_several_agents_one_is_chosen_by_who_typed_and_once(desks):
    other = replace(GROUP, agent="other")
    await desks.seen(GROUP, other)
    reply = await desks.type("/elevated full for 1h")
    assert reply.private
    tokens = {choice.label.partition(":")[0]: choice.token for choice in reply.choices}
    assert set(tokens) == {"main", "other"}
    assert "one who typed" in (await desks.press(tokens["other"], sender=MALLORY)).text
    assert desks.level(other) is Level.OFF
    await desks.press(tokens["other"])
    assert (desks.level(other), desks.level(GROUP)) == (Level.FULL, Level.OFF)
    for token in (*tokens.values(), "x" * 22):
        assert await desks.press(token) == TOO_LATE
    assert desks.level(GROUP) is Level.OFF


async def test_a_choice_is_over_after_a_while(desks):
    await desks.seen(GROUP, replace(GROUP, agent="other"))
    reply = await desks.type("/elevated full")
    desks.system.clock.advance(5 * 60_000 + 1)
    assert await desks.press(reply.choices[0].token) == TOO_LATE


async def test_a_chat_without_a_session_says_how_to_name_one(desks):
    reply = await desks.type("/elevated on")
    assert "/sayso bind" in reply.text
    assert "main" in (await desks.type("/sayso bind agent:main:main")).text
    await desks.type("/elevated on")
    assert desks.level() is Level.ON


@pytest.mark.parametrize(
    "sender",
    [MALLORY, *(replace(ANN, channel=channel) for channel in KNOWN_CHANNELS if channel != "telegram")],
)
@pytest.mark.parametrize(
    "text", ["/elevated full", "/elevated off", "/elevated", "/sayso bind agent:main:main"]
)
async def test_whoever_is_not_listed_changes_nothing_and_is_told_so_alone(desks, sender, text):
    await desks.seen(GROUP)
    await desks.elevator.set(Wish(GROUP, Level.ON), ANN)
    before = await desks.system.store.elevations(), await desks.system.store.chat_bindings()
    reply = await desks.type(f"{text} {GROUP}" if text == "/elevated full" else text, sender=sender)
    assert reply.private
    assert (await desks.system.store.elevations(), await desks.system.store.chat_bindings()) == before
    assert "security.elevation-refused" in desks.kinds()


async def test_refusals_are_reported_after_five_and_not_answered_for_ever(desks):
    await desks.seen(GROUP)
    replies = [await desks.type("/elevated full", sender=MALLORY) for _ in range(12)]
    assert [reply is None for reply in replies] == [False] * 10 + [True] * 2
    attempts = [event for event in desks.news if event.kind == "security.elevation-attempts"]
    assert len(attempts) == 10 // REPORTED_AT
    refused = [link.event.kind async for link in desks.system.store.events()]
    assert refused.count("security.elevation-refused") == 10
    desks.system.clock.advance(10 * 60_000 + 1)
    assert await desks.type("/elevated full", sender=MALLORY) == NOT_YOURS


async def test_five_people_who_try_once_are_reported_too(desks):
    await desks.seen(GROUP)
    for number in range(REPORTED_AT):
        await desks.type("/elevated on", sender=Sender("telegram", f"6{number}"))
    assert desks.kinds().count("security.elevation-attempts") == 1


async def test_two_who_change_it_at_once_leave_one_level_that_store_and_memory_agree_on(desks):
    config = {"tools": {**CONFIG["tools"], "elevated": {"enabled": True, "allowFrom": ["id:1", "id:2"]}}}
    desks.system.judge.config = type(desks.system.judge.config).model_validate(config)
    bea = Sender("telegram", "2", "Bea")
    wishes = [(level, who) for level in Level for who in (ANN, bea)]
    await asyncio.gather(*(desks.elevator.set(Wish(MAIN, level), who) for level, who in wishes))
    (kept,) = await desks.system.store.elevations()
    assert desks.level() is kept.level
    assert len([kind for kind in desks.kinds() if kind == "elevated.set"]) == len(wishes)


async def test_a_level_that_could_not_be_kept_does_not_hold(desks):
    await desks.elevator.set(Wish(MAIN, Level.ON), ANN)

    async def broken(_elevation, _event):
        raise RequestError("the disk is full")

    desks.system.store.elevate = broken
    with pytest.raises(RequestError):
        await desks.elevator.set(Wish(MAIN, Level.FULL), ANN)
    assert desks.level() is Level.OFF


async def test_who_hangs_up_while_a_level_is_set_leaves_it_set_told_and_kept_alike(desks):
    elevate = desks.system.store.elevate
    began, may_end = asyncio.Event(), asyncio.Event()

    async def slow(*args):
        began.set()
        await may_end.wait()
        return await elevate(*args)

    desks.system.store.elevate = slow
    setting = asyncio.create_task(desks.operator.elevate(str(MAIN), "full", 900_000, "disk full", ALICE))
    await began.wait()
    setting.cancel()
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(setting, return_exceptions=True)
    await desks.elevator.close()
    (kept,) = await desks.system.store.elevations()
    assert desks.level() is kept.level is Level.FULL
    assert desks.kinds() == ["elevated.set"]


async def test_break_glass_that_stands_is_told_again_when_the_daemon_starts(desks):
    await desks.operator.elevate(str(MAIN), "full", 900_000, "disk full", ALICE)
    await desks.elevator.set(Wish(GROUP, Level.ON), ANN)
    desks.news.clear()
    desks.elevator.announce()
    assert [(event.kind, event.data["session"]) for event in desks.news] == [("elevated.set", str(MAIN))]
    desks.system.clock.advance(900_000)
    desks.news.clear()
    desks.elevator.announce()
    assert desks.news == []


async def test_full_for_a_session_that_only_names_the_chat_is_confirmed_by_a_button(desks):
    await desks.seen(GROUP)
    reply = await desks.type("/elevated full for 1h")
    assert desks.level(GROUP) is Level.OFF
    (choice,) = reply.choices
    assert str(GROUP) in choice.label
    await desks.press(choice.token)
    assert desks.level(GROUP) is Level.FULL
    await desks.type("/elevated off")
    await desks.type(f"/sayso bind {GROUP}")
    await desks.type("/elevated full for 1h")
    assert desks.level(GROUP) is Level.FULL


async def test_a_token_that_ends_takes_the_levels_of_its_agent_along(desks):
    other = SessionKey.main("other")
    await desks.elevator.set(Wish(MAIN, Level.FULL), ANN)
    await desks.elevator.set(Wish(other, Level.FULL), ANN)
    await desks.system.console.revoke_agent("main")
    await desks.system.console.add_agent("main")
    assert (desks.level(MAIN), desks.level(other)) == (Level.OFF, Level.FULL)
    assert [one.session for one in await desks.system.store.elevations()] == [str(other)]


async def test_what_is_told_of_a_session_is_what_holds_for_it(desks):
    await desks.system.store.deepest(str(MAIN), 1, 1_000)
    await desks.elevator.set(Wish(MAIN, Level.FULL), ANN)
    (row,) = await desks.operator.sessions()
    assert row["elevated"] == "off"
    assert "elevated off" in (await desks.type(f"/elevated {MAIN}")).text


async def test_a_clock_that_is_set_back_makes_no_level_last_longer(desks):
    await desks.elevator.set(Wish(MAIN, Level.FULL, 900_000), ANN)
    desks.system.clock.wall -= 3_600_000
    desks.system.clock.steady += 900
    assert desks.level() is Level.OFF


async def test_a_level_set_beside_a_revoke_does_not_hold_for_the_next_token(desks):
    async def late(_session):
        await desks.system.console.revoke_agent("main")

    desks.elevator._check_agent = late
    with pytest.raises(RequestError):
        await desks.elevator.set(Wish(MAIN, Level.FULL), ANN)
    await desks.system.console.add_agent("main")
    assert await desks.system.store.elevations() == ()
    assert desks.level() is Level.OFF


async def test_a_session_that_ends_voids_what_is_being_decided_also_where_nothing_was_set(desks):
    before = await desks.system.store.revision()
    assert "nothing was set" in await desks.elevator.end(MAIN, ANN)
    assert await desks.system.store.revision() > before
    with pytest.raises(RequestError, match="no agent 'nobody'"):
        await desks.elevator.end(SessionKey.main("nobody"), ANN)
