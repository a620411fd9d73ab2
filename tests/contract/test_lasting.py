"""What was given for a time ends by the wall clock or the steady one, whichever is first."""

from __future__ import annotations

from core.lasting import Lasting
from core.model.decision import Effect
from core.model.elevation import Elevation, Level
from core.model.principal import Sender
from core.model.request import Answer, AuditEvent, Review
from tests.core_system import ALICE, CONFIG, MAIN, exec_call

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000
LS = exec_call("ls", "-l")
ELEVATED = {**CONFIG, "tools": {**CONFIG["tools"], "elevated": {"enabled": True, "allowFrom": ["cli:0"]}}}


def set_back(clock):
    """Set the wall clock back a day, and let an hour go by."""
    clock.wall -= DAY
    clock.advance(HOUR)


async def allowed_for(system, ms):
    asked = await system.gate.ask(LS, None)
    answer = Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=ms)
    assert (await system.approvals.review(answer)).accepted


async def effect(system):
    return (await system.gate.consider(LS))[1].effect


async def test_a_permission_ends_with_its_time_though_the_wall_clock_is_set_back(system, clock):
    await allowed_for(system, 10 * MINUTE)
    clock.wall -= DAY
    assert await effect(system) is Effect.ALLOW
    clock.advance(HOUR)
    assert await effect(system) is Effect.ASK


async def test_a_permission_that_lasts_longer_holds_over_a_clock_that_is_set_back(system, clock):
    await allowed_for(system, 2 * HOUR)
    set_back(clock)
    assert await effect(system) is Effect.ALLOW


async def test_a_permission_has_no_more_than_its_time_after_a_restart_either(system, make_system, clock):
    await allowed_for(system, 10 * MINUTE)
    clock.wall -= DAY
    again = make_system()
    await again.approvals.recover()
    assert await effect(again) is Effect.ALLOW
    clock.advance(HOUR)
    assert await effect(again) is Effect.ASK


async def elevated(system, level=Level.ON, *, once=False, for_ms=10 * MINUTE):
    now = system.clock.now()
    sender = Sender("cli", "0", "root")
    kept = Elevation("e1", str(MAIN), level, sender, now, now + for_ms, once=once, break_glass=True)
    assert await system.elevations.put(kept, AuditEvent(now, "elevated.set", "test"))


async def test_an_elevation_ends_with_its_time_though_the_wall_clock_is_set_back(make_system, clock):
    system = make_system(ELEVATED)
    await elevated(system)
    clock.wall -= DAY
    assert system.elevations.standing(LS).level is Level.ON
    clock.advance(HOUR)
    assert system.elevations.standing(LS).level is Level.OFF
    assert system.elevations.all() == ()
    assert system.elevations.standing_of(str(MAIN)) is None


async def test_an_elevation_has_no_more_than_its_time_after_a_restart_either(make_system, clock):
    await elevated(make_system(ELEVATED))
    clock.wall -= DAY
    again = make_system(ELEVATED)
    await again.elevations.load()
    assert again.elevations.standing(LS).level is Level.ON
    clock.advance(HOUR)
    assert again.elevations.standing(LS).level is Level.OFF


async def test_a_directive_is_not_used_after_its_time_though_the_wall_clock_is_set_back(make_system, clock):
    system = make_system(ELEVATED)
    await elevated(system, once=True)
    set_back(clock)
    assert (await system.elevations.directed(LS)).directive is None


def test_what_was_never_begun_is_not_over(clock):
    lasting = Lasting(clock)
    lasting.begin("a", clock.now() + 5, 10)
    clock.advance(4)
    assert not lasting.over("a")
    clock.advance(1)
    assert lasting.over("a")
    assert not lasting.over("b")
    lasting.forget("a")
    assert not lasting.over("a")
