"""Holes that a review found, each with the way in."""

from __future__ import annotations

import asyncio

import pytest

from core.approvals.permissions import Permissions
from core.approvals.routes import Route
from core.model.call import ToolCall
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.request import Answer, Review, State
from tests.core_system import ALICE, MAIN, Noting, exec_call

WRITE = ToolCall("write", MAIN, args={"path": "/srv/x", "content": "y"})
ASKS_WRITE = {"tools": {"profile": "coding", "ask": {"tools": ["write"]}}}
FULL = {"tools": {"profile": "coding", "exec": {"security": "full", "ask": "off"}}}
ON_MISS = {"tools": {"profile": "coding", "exec": {"security": "full", "ask": "on-miss"}}}
LS = exec_call("ls", "-l")


async def answered(system, call, answer=Answer.ALLOW_ONCE, **fields):
    asked = await system.gate.ask(call, None)
    assert asked.status is Status.PENDING
    reviewed = await system.console.resolve(Review(asked.request_id, answer, ALICE, **fields))
    assert reviewed["accepted"], reviewed["text"]
    return asked.request_id


async def wait(system, request_id):
    return await asyncio.wait_for(system.gate.wait("main", request_id, Noting()), 5)


async def test_a_client_is_not_handed_a_yes_while_everything_is_locked(make_system):
    system = make_system(ASKS_WRITE)
    request_id = await answered(system, WRITE)
    await system.console.set_locked(locked=True, reviewer=ALICE)
    assert (await wait(system, request_id)).status is not Status.ALLOWED


async def test_a_client_is_not_handed_a_yes_whose_time_is_over(make_system, clock):
    system = make_system(ASKS_WRITE)
    request_id = await answered(system, WRITE)
    clock.advance(24 * 3_600_000)
    assert (await wait(system, request_id)).status is not Status.ALLOWED


async def test_one_yes_to_a_client_is_handed_over_once(make_system):
    system = make_system(ASKS_WRITE)
    first = await system.gate.ask(WRITE, None)
    second = await system.gate.ask(WRITE, None)
    assert first.request_id == second.request_id
    await system.console.resolve(Review(first.request_id, Answer.ALLOW_ONCE, ALICE))
    outcomes = await asyncio.gather(*(wait(system, first.request_id) for _ in range(3)))
    assert [outcome.status for outcome in outcomes].count(Status.ALLOWED) == 1
    late = await wait(system, first.request_id)
    assert late.status is Status.DENIED
    assert "taken already" in late.reason


async def test_a_clients_yes_is_decided_again_when_it_is_handed_over(make_system):
    request_id = await answered(make_system(ASKS_WRITE), WRITE)
    stricter = make_system({"tools": {"profile": "coding", "deny": ["write"]}})
    outcome = await wait(stricter, request_id)
    assert outcome.status is Status.DENIED
    assert (await stricter.store.request(request_id)).state is State.DENIED


async def test_a_yes_of_policy_ends_with_that_policy(make_system):
    asked = await make_system(FULL).gate.ask(LS, None)
    assert asked.status is Status.ALLOWED
    stricter = make_system({"tools": {"profile": "coding", "exec": {"security": "full", "ask": "always"}}})
    outcome = await stricter.gate.run_approved(LS, asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert stricter.orders == []


async def test_a_yes_of_policy_counts_while_the_policy_stands(make_system):
    system = make_system(FULL)
    asked = await system.gate.ask(LS, None)
    outcome = await asyncio.wait_for(system.gate.run_approved(LS, asked.request_id, Noting()), 5)
    assert outcome.status is Status.FINISHED


async def test_answers_asked_for_under_a_permission_end_with_it(make_system):
    system = make_system()
    given = await answered(system, LS, Answer.ALLOW_FOR, for_ms=60_000)
    banked = [(await system.gate.ask(LS, None)).request_id for _ in range(3)]
    await Permissions(system.store, system.clock).revoke(given, ALICE)
    for request_id in banked:
        running = asyncio.create_task(system.gate.run_approved(LS, request_id, Noting()))
        await asyncio.wait([running], timeout=0.3)
        running.cancel()
        await asyncio.wait([running])
    assert system.orders == []


async def test_answers_asked_for_under_a_permission_last_no_longer_than_it(make_system, clock):
    system = make_system()
    await answered(system, LS, Answer.ALLOW_FOR, for_ms=20_000)
    banked = await system.gate.ask(LS, None)
    kept = await system.store.request(banked.request_id)
    assert kept.deadline <= clock.now() + 20_000


async def test_a_permission_counts_where_an_answer_was_asked_for_first(make_system):
    system = make_system()
    await answered(system, LS, Answer.ALLOW_FOR, for_ms=60_000, max_uses=1)
    asked = await system.gate.ask(LS, None)
    outcome = await asyncio.wait_for(system.gate.run_approved(LS, asked.request_id, Noting()), 5)
    assert outcome.status is Status.FINISHED


async def test_the_fallback_never_answers_what_a_tool_rule_asks(make_system):
    exec_rules = {
        "security": "allowlist",
        "askFallback": "allowlist",
        "allowlist": [{"pattern": "/usr/bin/ls"}],
    }
    plain = make_system({"tools": {"profile": "coding", "exec": exec_rules}})
    asking = make_system({"tools": {"profile": "coding", "exec": exec_rules, "ask": {"tools": ["exec"]}}})
    case, _ = await plain.gate.consider(LS)
    assert plain.judge.fallback_allows(case, ())
    case, verdict = await asking.gate.consider(LS)
    assert verdict.effect is Effect.ASK
    assert not asking.judge.fallback_allows(case, ())
    assert verdict.always.entries == ()


@pytest.mark.parametrize("name", ["Write", "WRITE", " write "])
async def test_what_was_denied_always_stays_denied_under_another_spelling_of_the_tool(make_system, name):
    system = make_system(ASKS_WRITE)
    await answered(system, WRITE, Answer.DENY_ALWAYS)
    outcome = await system.gate.ask(ToolCall(name, MAIN, args=dict(WRITE.args)), None)
    assert outcome.decision["rule"] == "denied-always"


async def test_a_yes_for_a_time_does_not_count_as_approved_before(make_system, clock):
    system = make_system(ON_MISS)
    await answered(system, LS, Answer.ALLOW_FOR, for_ms=60_000)
    clock.advance(60_000)
    assert (await system.gate.ask(LS, None)).status is Status.PENDING


@pytest.mark.parametrize(("windows", "longest"), [((5_000, 90_000), 90_000), ((5_000,), 5_000)])
async def test_a_question_waits_as_long_as_its_most_patient_place(system, clock, windows, longest):
    routes = tuple(Route("web", str(ms), (), ms, "test") for ms in windows)
    system.approvals.routes = lambda _request: routes
    asked = await system.gate.ask(exec_call("ls", "-l"), None)
    assert (await system.store.request(asked.request_id)).deadline == clock.now() + longest
