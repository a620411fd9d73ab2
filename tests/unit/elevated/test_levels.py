"""What each level means, and which level holds: every combination, and who can bring it about."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import Config
from core.elevated.authority import authority, trusted_anywhere
from core.elevated.levels import Asking, standing_for, treat
from core.elevated.placement import place
from core.model.call import CommandText, ToolCall
from core.model.command import Placement
from core.model.decision import Effect, Obligation
from core.model.elevation import NOT_ELEVATED, Elevation, Level, Standing
from core.model.principal import Claims, Sender
from core.model.session import SessionKey

ANN = Sender("telegram", "1", "Ann", "ann")
BEA = Sender("telegram", "2", "Ann", "ann")
MAIN = SessionKey.main("main")
CHILD = SessionKey("main", subagents=("x",))
HOST, SANDBOX = Placement.HOST, Placement.SANDBOX
OFF, ASK, ON, FULL = Level.OFF, Level.ASK, Level.ON, Level.FULL


def config(elevated=None, **more):
    settings = {"enabled": True, "allowFrom": ["telegram:1"], **(elevated or {})}
    return Config.model_validate({"tools": {"elevated": settings}, **more})


def call(session=MAIN, elevated=None, depth=0, directive=None):
    return ToolCall(
        "exec",
        session,
        Claims(depth=depth),
        CommandText(line="ls"),
        elevated=elevated,
        directive=directive,
    )


def elevation(level=ON, session=MAIN, by=ANN, **fields):
    return Elevation("e1", str(session), level, by, 1_000, **fields)


def standing(asked, kept=(), used=(), settings=None, now=2_000):
    by_session = {one.session: one for one in kept}
    return standing_for(settings or config(), asked, by_session, {one.id: one for one in used}, now)


@pytest.mark.parametrize(
    ("level", "placement", "asking"),
    [
        (OFF, SANDBOX, Asking.AS_POLICY),
        (ASK, HOST, Asking.ALWAYS),
        (ON, HOST, Asking.AS_POLICY),
        (FULL, HOST, Asking.NEVER),
    ],
)
def test_a_level_that_stands_moves_a_sandboxed_agent_and_changes_the_asking(level, placement, asking):
    found = treat(level, None, SANDBOX)
    assert (found.level, found.placement, found.asking) == (level, placement, asking)
    assert treat(level, None, HOST).placement is HOST
    assert treat(level, None, HOST).asking is asking


@pytest.mark.parametrize(("stands", "wanted"), list(product(Level, Level)))
def test_an_agent_gets_less_than_stands_and_can_only_ask_for_more(stands, wanted):
    found = treat(stands, wanted, SANDBOX)
    if wanted.rank <= stands.rank:
        assert found == treat(wanted, None, SANDBOX)
    else:
        assert (found.placement, found.asking) == (HOST, Asking.BY_AUTHORISED)


@pytest.mark.parametrize(("stands", "wanted"), list(product(Level, Level)))
def test_on_the_host_an_agent_can_only_have_itself_asked_about_more(stands, wanted):
    found = treat(stands, wanted, HOST)
    milder = {Asking.NEVER: 0, Asking.AS_POLICY: 1, Asking.ALWAYS: 2}
    assert found.placement is HOST
    assert milder[found.asking] >= min(milder[treat(stands, None, HOST).asking], 1)
    assert (found.asking is Asking.NEVER) <= (stands is FULL and wanted is FULL)


@given(st.sampled_from(Level), st.none() | st.sampled_from(Level), st.sampled_from((HOST, SANDBOX)))
def test_nothing_an_agent_asks_for_moves_it_out_without_a_person_in_allow_from(stands, wanted, configured):
    alone, asked = treat(stands, None, configured), treat(stands, wanted, configured)
    if alone.placement is SANDBOX and asked.placement is HOST:
        assert asked.asking is Asking.BY_AUTHORISED
    if asked.asking is Asking.NEVER:
        assert alone.asking is Asking.NEVER


def test_a_directive_comes_before_the_session_and_that_before_the_default():
    settings = config(agents={"defaults": {"elevatedDefault": "ask"}})
    once = replace(elevation(FULL), id="d", once=True, used_at=1_500, until=1_600)
    kept = elevation(ON)
    assert standing(call(directive="d"), [kept], [once], settings).level is FULL
    assert standing(call(), [kept], [once], settings).level is ON
    assert standing(call(), [], [once], settings).level is ASK
    assert standing(call(directive="other"), [kept], [once], settings).level is ON


def test_a_level_ends_with_its_time_to_the_millisecond():
    kept = elevation(ON, until=5_000)
    assert standing(call(), [kept], now=4_999).level is ON
    assert standing(call(), [kept], now=5_000).level is OFF


def test_what_was_set_counts_while_who_set_it_may():
    kept = elevation(FULL)
    assert standing(call(), [kept]).level is FULL
    assert standing(call(), [kept], settings=config({"allowFrom": ["telegram:2"]})).level is OFF
    assert standing(call(), [kept], settings=config({"enabled": False})).level is OFF
    own = {"main": {"tools": {"elevated": {"allowFrom": ["telegram:2"]}}}}
    assert standing(call(), [kept], settings=config(agents={"by_id": own})).level is OFF


def test_a_namesake_has_no_say():
    assert standing(call(), [elevation(FULL, by=BEA)]).level is OFF
    assert not authority(config(), "main").admits(replace(ANN, channel="slack"))


def test_break_glass_needs_no_list_but_elevated_mode():
    glass = elevation(FULL, by=Sender("cli", "0"), break_glass=True)
    assert standing(call(), [glass]).level is FULL
    assert standing(call(), [glass], settings=config({"enabled": False})).level is OFF
    assert standing(call(), [replace(glass, break_glass=False)]).level is OFF


def test_off_holds_against_the_default_whoever_set_it():
    settings = config({"allowFrom": ["telegram:9"]}, agents={"defaults": {"elevatedDefault": "on"}})
    assert standing(call(), [], settings=settings).level is ON
    assert standing(call(), [elevation(OFF)], settings=settings).level is OFF


@pytest.mark.parametrize("asked", [call(CHILD), call(MAIN, depth=1), call(CHILD, depth=3)])
def test_subagents_inherit_nothing_unless_that_is_configured(asked):
    kept = elevation(FULL)
    assert standing(asked, [kept]).level is OFF
    assert standing(asked, [kept], settings=config({"inherit": True})).level is FULL
    settings = config(agents={"defaults": {"elevatedDefault": "on"}})
    assert standing(asked, [], settings=settings).level is OFF


def test_what_is_set_for_a_subagent_is_its_own():
    assert standing(call(CHILD), [elevation(ON, CHILD)]).level is ON
    assert standing(call(MAIN), [elevation(ON, CHILD)]).level is OFF
    other = SessionKey("main", subagents=("y",))
    assert standing(call(other), [elevation(ON, CHILD)], settings=config({"inherit": True})).level is OFF


def test_another_agents_session_is_another():
    kept = elevation(FULL, SessionKey.main("other"))
    assert standing(call(), [kept]).level is OFF


@pytest.mark.parametrize(
    ("general", "own", "enabled", "allowed"),
    [
        ({"enabled": True, "allowFrom": ["telegram:1"]}, None, True, ("telegram:1",)),
        ({"enabled": True, "allowFrom": ["telegram:1"]}, {"allowFrom": ["id:2"]}, True, ("id:2",)),
        ({"enabled": True, "allowFrom": ["telegram:1"]}, {"allowFrom": []}, True, ()),
        ({"enabled": True, "allowFrom": ["telegram:1"]}, {"enabled": True}, True, ("telegram:1",)),
        ({"enabled": True, "allowFrom": ["telegram:1"]}, {"enabled": False}, False, ()),
        ({"enabled": False, "allowFrom": ["telegram:1"]}, {"enabled": True}, False, ()),
        ({}, {"enabled": True, "allowFrom": ["id:2"]}, False, ()),
    ],
)
def test_an_agents_list_replaces_the_general_one_and_off_is_off_for_all(general, own, enabled, allowed):
    agents = {"by_id": {"main": {"tools": {"elevated": own}}}} if own is not None else {}
    settings = Config.model_validate({"tools": {"elevated": general}, "agents": agents})
    who = authority(settings, "main")
    assert (who.enabled, who.allow_from) == (enabled, allowed)


def test_everybody_on_any_list_may_lock():
    own = {"by_id": {"a": {"tools": {"elevated": {"allowFrom": ["id:2"]}}}}}
    settings = config(agents=own)
    assert trusted_anywhere(settings) == ("telegram:1", "id:2")


def test_elevation_that_an_agent_asks_for_counts_once_and_is_no_fallback():
    placed = place(config(), call(elevated="on"))
    assert placed.decision.effect is Effect.ASK
    assert placed.decision.obligations == set(Obligation)
    assert placed.standing is NOT_ELEVATED


def test_an_agent_cannot_even_ask_where_elevated_mode_is_off():
    placed = place(config({"enabled": False}), call(elevated="on"))
    assert (placed.decision.effect, placed.decision.rule) == (Effect.DENY, "elevated.disabled")
    assert placed.placement is SANDBOX
    assert place(config({"enabled": False}), call(elevated="off")).decision.effect is Effect.ALLOW


def test_no_level_brings_a_node_that_is_not_there():
    settings = config(tools={"elevated": {"enabled": True}, "exec": {"host": "node"}})
    for level in Level:
        placed = place(settings, call(), Standing(level))
        assert placed.decision.effect is Effect.DENY
