"""What answers leave standing: permissions for a time, and deny rules. StandingStore and PermissionDesk."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.approvals import lifecycle
from core.approvals.permissions import Permissions
from core.errors import UnknownRequest
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.request import Answer, AuditEvent, Review
from core.model.session import SessionKey
from core.model.standing import LONGEST_MS, MOST_USES, SHORTEST_MS
from tests.core_system import ALICE, Noting, exec_call

HALF_AN_HOUR = 30 * 60_000
ASK_ALWAYS = {"tools": {"profile": "coding", "exec": {"security": "allowlist", "ask": "always"}}}


async def answered(system, call, answer, **fields):
    """Put a call to people, answer it, and return the id and what the asker gets."""
    asked = await system.gate.ask(call, None)
    assert asked.status is Status.PENDING, asked.reason
    reviewed = await system.console.resolve(Review(asked.request_id, answer, ALICE, **fields))
    assert reviewed["accepted"], reviewed["text"]
    return asked.request_id


async def allowed_for(system, call, ms=HALF_AN_HOUR, **fields):
    return await answered(system, call, Answer.ALLOW_FOR, for_ms=ms, **fields)


async def run(system, call):
    return await asyncio.wait_for(system.gate.run(call, None, Noting()), 5)


async def effect(system, call):
    _, verdict = await system.gate.consider(call)
    return verdict.effect


@pytest.fixture
def permissions(system):
    return Permissions(system.store, system.clock)


LS = exec_call("ls", "-l")


async def test_what_was_allowed_for_a_time_runs_again_without_a_question(system):
    await allowed_for(system, LS)
    outcome = await run(system, LS)
    assert outcome.status is Status.FINISHED
    assert outcome.approval["decision"] == "allowed-by-permission"
    assert "alice" in outcome.reason
    assert outcome.decision["rule"] == "standing-permission"


@pytest.mark.parametrize(
    "other",
    [
        exec_call("ls"),
        exec_call("ls", "-la"),
        exec_call("ls", "-l", cwd="/"),
        exec_call("ls", "-l", env=(("CI", "1"),)),
        exec_call("ls", "-l", stdin=b"x"),
        exec_call("ls", "-l", session=SessionKey.parse("agent:main:telegram:5")),
        exec_call("ls", "-l", session=SessionKey.main("other")),
    ],
    ids=["argv", "option", "cwd", "env", "stdin", "session", "agent"],
)
async def test_what_differs_in_anything_asks_again(system, other):
    await allowed_for(system, LS)
    assert await effect(system, LS) is Effect.ALLOW
    assert await effect(system, other) is Effect.ASK


async def test_the_time_ends_to_the_millisecond(system, clock):
    await allowed_for(system, LS, SHORTEST_MS)
    clock.advance(SHORTEST_MS - 1)
    assert await effect(system, LS) is Effect.ALLOW
    clock.advance(1)
    assert await effect(system, LS) is Effect.ASK


async def test_uses_are_counted_and_then_it_asks_again(system):
    await allowed_for(system, LS, max_uses=2)
    for _ in range(2):
        assert (await run(system, LS)).status is Status.FINISHED
    assert await effect(system, LS) is Effect.ASK


async def test_two_at_once_do_not_share_the_last_use(system):
    await allowed_for(system, LS, max_uses=1)
    outcomes = await asyncio.gather(system.gate.ask(LS, None), system.gate.ask(LS, None))
    assert sorted(outcome.status for outcome in outcomes) == [Status.ALLOWED, Status.PENDING]


@pytest.mark.parametrize("ms", [None, 0, -1, SHORTEST_MS - 1, LONGEST_MS + 1])
async def test_a_time_out_of_bounds_decides_nothing(system, ms):
    asked = await system.gate.ask(LS, None)
    reviewed = await system.console.resolve(Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=ms))
    assert not reviewed["accepted"]
    assert reviewed["state"] == "waiting"


@pytest.mark.parametrize("uses", [0, -1, MOST_USES + 1])
async def test_a_number_of_uses_out_of_bounds_decides_nothing(system, uses):
    asked = await system.gate.ask(LS, None)
    review = Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=HALF_AN_HOUR, max_uses=uses)
    assert not (await system.console.resolve(review))["accepted"]


@pytest.mark.parametrize(
    "call", [exec_call("sudo", "ls"), exec_call(line="echo $HOME")], ids=["sudo", "variable"]
)
async def test_what_is_never_remembered_cannot_be_allowed_for_a_time(system, call):
    asked = await system.gate.ask(call, None)
    review = Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=HALF_AN_HOUR)
    reviewed = await system.console.resolve(review)
    assert not reviewed["accepted"]
    assert "counts once" in reviewed["text"]


async def test_where_every_command_is_asked_about_no_time_is_offered_and_none_counts(make_system):
    await allowed_for(make_system(), LS)
    strict = make_system(ASK_ALWAYS)
    assert await effect(strict, LS) is Effect.ASK
    asked = await strict.gate.ask(LS, None)
    card = await strict.approvals.card(asked.request_id)
    assert card.durations == ()


async def test_a_permission_never_lifts_a_denial(make_system):
    await allowed_for(make_system(), LS)
    for tools in ({"deny": ["exec"]}, {"exec": {"security": "deny"}}, {"exec": {"deny": ["ls *"]}}):
        exec_settings = {"security": "allowlist", **tools.get("exec", {})}
        system = make_system({"tools": {"profile": "coding", **tools, "exec": exec_settings}})
        assert await effect(system, LS) is Effect.DENY


async def test_a_permission_revoked_before_the_start_lets_nothing_run(make_system, meddled):
    system = make_system(through=meddled)
    request_id = await allowed_for(system, LS)
    desk = Permissions(system.store, system.clock)

    async def revoke(*_args):
        meddled.after.pop("remembered")
        await desk.revoke(request_id, ALICE)

    meddled.after["remembered"] = revoke
    asking, observer = system.asking(LS)
    await asyncio.wait_for(observer.asked.wait(), 5)  # as the answer to the revocation says
    asking.cancel()
    assert system.orders == []


async def test_a_lock_ends_permissions_for_good(system, permissions):
    await allowed_for(system, LS)
    await system.console.set_locked(locked=True, reviewer=ALICE)
    await system.console.set_locked(locked=False, reviewer=ALICE)
    assert await permissions.standing() == []
    assert await effect(system, LS) is Effect.ASK


async def test_a_revoked_agent_starts_anew_without_its_permissions(system, permissions):
    await system.console.add_agent("main")
    await allowed_for(system, LS)
    await system.console.revoke_agent("main")
    await system.console.add_agent("main")
    assert await permissions.standing() == []


async def test_permissions_and_deny_rules_outlive_a_restart(system, make_system):
    await allowed_for(system, LS)
    await answered(system, exec_call("rm", "x"), Answer.DENY_ALWAYS, reason="not here")
    again = make_system()
    assert await effect(again, LS) is Effect.ALLOW
    assert await effect(again, exec_call("rm", "x")) is Effect.DENY


@pytest.mark.parametrize(
    "call",
    [
        exec_call("rm", "-rf", "build"),
        exec_call(line="rm -rf build"),
        exec_call(line="rm   '-rf'  \"build\""),
        exec_call("/usr/bin/rm", "-rf", "build"),
        exec_call(line="true && rm -rf build"),
        exec_call(line="nice -n 5 rm -rf build"),
        exec_call("rm", "-rf", "build", cwd="/"),
        exec_call("rm", "-rf", "build", session=SessionKey.parse("agent:main:telegram:5")),
    ],
    ids=["same", "line", "quotes", "path", "in-a-line", "wrapped", "elsewhere", "another-session"],
)
async def test_what_was_denied_always_is_denied_however_it_is_written(system, call):
    await answered(system, exec_call("rm", "-rf", "build"), Answer.DENY_ALWAYS, reason="keep it")
    outcome = await system.gate.ask(call, None)
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "denied-always"
    assert "alice" in outcome.reason
    assert "keep it" in outcome.reason


@pytest.mark.parametrize(
    "call",
    [
        exec_call("rm", "-rf", "build2"),
        exec_call("rm", "build"),
        exec_call("rm", "-rf", "build", session=SessionKey.main("other")),
    ],
    ids=["argument", "options", "agent"],
)
async def test_a_deny_rule_is_of_this_command_and_this_agent_alone(system, call):
    await answered(system, exec_call("rm", "-rf", "build"), Answer.DENY_ALWAYS)
    assert await effect(system, call) is Effect.ASK


async def test_denied_always_wins_over_a_permission_and_over_what_always_left(system):
    first = await system.gate.ask(LS, None)
    await system.console.resolve(Review(first.request_id, Answer.ALLOW_ALWAYS, ALICE))
    assert await effect(system, LS) is Effect.ALLOW
    other = exec_call("ls", "-l", session=SessionKey.parse("agent:main:telegram:5"), env=(("LD_X", "1"),))
    await answered(system, other, Answer.DENY_ALWAYS)
    assert await effect(system, LS) is Effect.DENY


async def test_denied_always_while_another_yes_waits_to_start_stops_that_start(system):
    asked = await system.gate.ask(LS, None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    await answered(system, exec_call("ls", "-l", cwd="/"), Answer.DENY_ALWAYS)
    outcome = await system.gate.run_approved(LS, asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_the_desk_lists_what_stands_and_ends_it(system, permissions):
    allowed = await allowed_for(system, LS, max_uses=3)
    denied = await answered(system, exec_call("rm", "x"), Answer.DENY_ALWAYS, reason="no")
    await run(system, LS)
    rows = {row["id"]: row for row in await permissions.standing()}
    assert (rows[allowed]["effect"], rows[allowed]["uses"], rows[allowed]["maxUses"]) == ("allow", 1, 3)
    assert rows[allowed]["expiresAt"] == rows[allowed]["givenAt"] + HALF_AN_HOUR
    assert (rows[denied]["effect"], rows[denied]["reason"]) == ("deny", "no")
    await permissions.revoke(allowed[:8], ALICE)
    await permissions.revoke(denied, ALICE)
    assert await permissions.standing() == []
    assert await effect(system, LS) is Effect.ASK
    assert await effect(system, exec_call("rm", "x")) is Effect.ASK
    kinds = [link.event.kind async for link in system.store.events()]
    assert kinds[-2:] == ["permission.revoked", "deny-rule.revoked"]


@pytest.mark.parametrize("answer_id", ["", "1234567", "00000000", "x" * 200])
async def test_an_id_that_names_nothing_ends_nothing(system, permissions, answer_id):
    await allowed_for(system, LS)
    with pytest.raises(UnknownRequest):
        await permissions.revoke(answer_id, ALICE)
    assert len(await permissions.standing()) == 1


async def test_what_has_ended_cannot_be_ended_again(system, permissions, clock):
    request_id = await allowed_for(system, LS)
    await permissions.revoke(request_id, ALICE)
    with pytest.raises(UnknownRequest):
        await permissions.revoke(request_id, ALICE)
    event = AuditEvent(clock.now(), "permission.revoked", "x")
    assert not await system.store.end_permission(request_id, event)
    assert not await system.store.revoke_deny_rule(request_id, event)


async def test_a_permission_kept_for_one_binding_admits_no_other_by_its_id(system):
    """The store itself refuses a request that names a permission of another binding."""
    request_id = await allowed_for(system, LS)
    asked = await system.gate.ask(exec_call("ls", "/"), None)
    other = await system.store.request(asked.request_id)
    forged = replace(other, id="f" * 32, permission=request_id, copies=())
    assert not await system.store.commit(lifecycle.allowed(forged, system.clock.now()))
    itself = replace(forged, binding=(await system.store.request(request_id)).binding)
    assert await system.store.commit(lifecycle.allowed(itself, system.clock.now()))
