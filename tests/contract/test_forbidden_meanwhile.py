"""What an operator forbids holds from the answer on: whatever was decided before that does not start."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.approvals.entries import AllowlistEntries, Surroundings
from core.approvals.permissions import Permissions
from core.config import Config
from core.credentials import digest
from core.errors import RequestError, StoreError
from core.judge import Judge
from core.model.allowlist import AllowlistEntry
from core.model.call import ToolCall
from core.model.outcome import Status
from core.model.request import Answer, AuditEvent, Review, State
from core.model.session import SessionKey
from tests.core_system import ALICE, MAIN, Noting, exec_call

ID = exec_call("/usr/bin/id")
LISTED = {"security": "allowlist", "ask": "on-miss", "askFallback": "allowlist"}


def config(**exec_settings):
    return {"tools": {"profile": "coding", "exec": {**LISTED, **exec_settings}}}


def once(meddled, name, hook):
    """Do something once, after the first call of a store's method."""

    async def meddle(*_args, **_fields):
        meddled.after.pop(name, None)
        await hook()

    meddled.after[name] = meddle


def put_in_force(system, **exec_settings):
    old = system.judge
    new = Config.model_validate(config(**exec_settings))
    system.judge = Judge(new, old.site, old._resolver, old._names)


async def reload(system, **exec_settings):
    put_in_force(system, **exec_settings)
    await system.store.revise()


async def soon(work):
    return await asyncio.wait_for(work, 5)


@pytest.fixture
def make(make_system, meddled):
    return lambda **exec_settings: make_system(config(**exec_settings), through=meddled)


@pytest.fixture
def entries(clock):
    return lambda system: AllowlistEntries(
        system.store, clock, Surroundings(lambda: system.judge.config, lambda _path: None)
    )


async def becomes_a_question(system, call):
    task, observer = system.asking(call)
    await soon(observer.asked.wait())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return system.orders == []


# Between a look-up and the start.


async def test_an_entry_removed_after_the_look_up_admits_nothing(make, meddled, entries):
    system = make()
    added = await entries(system).add(AllowlistEntry("/usr/bin/id"), ALICE)
    once(meddled, "remembered", lambda: entries(system).remove(added["id"], ALICE))
    assert await becomes_a_question(system, ID)


async def test_an_entry_that_stays_admits_while_another_is_removed(make, meddled, entries):
    system = make()
    await entries(system).add(AllowlistEntry("/usr/bin/id"), ALICE)
    other = await entries(system).add(AllowlistEntry("/usr/bin/ls"), ALICE)
    once(meddled, "remembered", lambda: entries(system).remove(other["id"], ALICE))
    assert (await soon(system.gate.run(ID, None, Noting()))).status is Status.FINISHED
    assert len(system.orders) == 1


async def test_a_no_for_always_reaches_a_call_that_was_allowed_and_not_started(make, meddled):
    system = make()
    elsewhere = replace(ID, session=SessionKey.parse("agent:main:telegram:5"))
    question = await system.gate.ask(ID, None)
    approved = await system.gate.ask(elsewhere, None)
    await system.approvals.review(Review(approved.request_id, Answer.ALLOW_ONCE, ALICE))

    async def deny():
        answer = Review(question.request_id, Answer.DENY_ALWAYS, ALICE)
        assert (await system.approvals.review(answer)).accepted

    once(meddled, "remembered", deny)
    outcome = await soon(system.gate.run_approved(elsewhere, approved.request_id, Noting()))
    assert outcome.status is Status.DENIED
    assert "denied exactly this always" in outcome.reason
    assert system.orders == []


@pytest.mark.parametrize("moment", ["revision", "remembered"])
async def test_a_call_under_way_is_decided_by_the_configuration_that_was_reloaded(make, meddled, moment):
    system = make(security="full", ask="off")
    once(meddled, moment, lambda: reload(system, security="deny"))
    outcome = await soon(system.gate.run(ID, None, Noting()))
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "exec.security-deny"
    assert system.orders == []


async def test_a_reload_that_forbids_nothing_costs_a_call_under_way_nothing(make, meddled):
    system = make(security="full", ask="off")
    once(meddled, "remembered", lambda: reload(system, security="full", ask="off"))
    assert (await soon(system.gate.run(ID, None, Noting()))).status is Status.FINISHED
    assert len(system.orders) == 1


async def test_a_client_is_not_told_yes_by_rules_that_were_replaced(make, meddled):
    system = make()
    call = ToolCall("read", MAIN, args={"path": "/srv/a"})
    once(meddled, "remembered", system.store.revise)
    assert (await system.gate.ask(call, None)).status is Status.ALLOWED

    async def no_files():
        put_in_force(system)
        settings = {"tools": {"profile": "minimal", "exec": LISTED}}
        old = system.judge
        system.judge = Judge(Config.model_validate(settings), old.site, old._resolver, old._names)
        await system.store.revise()

    once(meddled, "remembered", no_files)
    assert (await system.gate.ask(call, None)).status is Status.DENIED


async def test_what_is_changed_without_end_starts_nothing_and_says_so(make, meddled):
    system = make(security="full", ask="off")

    async def change(*_args, **_fields):
        await system.store.revise()

    meddled.after["remembered"] = change
    with pytest.raises(StoreError, match="ask again"):
        await soon(system.gate.run(ID, None, Noting()))
    assert system.orders == []


# A yes that no longer stands.


async def test_a_yes_by_fallback_holds_while_the_entry_does(make, entries, clock):
    system = make()
    keeper = asyncio.create_task(system.approvals.keep_deadlines(system.gate.fallback))
    for stays in (True, False):
        asked = (await system.gate.ask(ID, None)).request_id
        added = await entries(system).add(AllowlistEntry("/usr/bin/id"), ALICE)
        clock.advance(601_000)
        system.approvals._earlier.set()
        async with asyncio.timeout(5):
            while (await system.store.request(asked)).state is State.WAITING:  # noqa: ASYNC110 - a test's patience
                await asyncio.sleep(0.01)
        if not stays:
            await entries(system).remove(added["id"], ALICE)
        outcome = await soon(system.gate.run_approved(ID, asked, Noting()))
        assert outcome.status is (Status.FINISHED if stays else Status.DENIED)
        if stays:
            await entries(system).remove(added["id"], ALICE)
    keeper.cancel()
    assert len(system.orders) == 1


async def allowed_for(system, call=ID, **fields):
    asked = await system.gate.ask(call, None)
    answer = Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=3_600_000, **fields)
    assert (await system.approvals.review(answer)).accepted
    return asked.request_id


async def test_a_yes_by_a_permission_holds_while_policy_lets_permissions_answer(make):
    system = make()
    await allowed_for(system)
    first, second = [(await system.gate.ask(ID, None)).request_id for _ in range(2)]
    assert (await soon(system.gate.run_approved(ID, first, Noting()))).status is Status.FINISHED
    await reload(system, ask="always")
    outcome = await soon(system.gate.run_approved(ID, second, Noting()))
    assert outcome.status is Status.DENIED
    assert len(system.orders) == 1


async def test_the_last_use_of_a_permission_is_the_call_that_took_it(make):
    system = make()
    await allowed_for(system, max_uses=1)
    asked = (await system.gate.ask(ID, None)).request_id
    assert (await soon(system.gate.run_approved(ID, asked, Noting()))).status is Status.FINISHED
    assert await becomes_a_question(make(), ID)


async def test_a_revoked_permission_ends_the_yes_under_it_and_the_yes_that_left_it(make, clock):
    system = make()
    given = await allowed_for(system)
    under_it = (await system.gate.ask(ID, None)).request_id
    await Permissions(system.store, clock).revoke(given, ALICE)
    for request_id in (under_it, given):
        outcome = await soon(system.gate.run_approved(ID, request_id, Noting()))
        assert outcome.status is Status.DENIED
        assert (await system.store.request(request_id)).state is State.DENIED
    assert system.orders == []


async def test_a_permission_that_stands_starts_both(make):
    system = make()
    given = await allowed_for(system)
    under_it = (await system.gate.ask(ID, None)).request_id
    for request_id in (under_it, given):
        outcome = await soon(system.gate.run_approved(ID, request_id, Noting()))
        assert outcome.status is Status.FINISHED


# Tokens.


async def test_a_call_that_came_in_with_a_revoked_token_starts_nothing_when_a_new_one_is_made(make):
    system = make(security="full", ask="off")
    old = await system.credentials.mint("main", "test")
    await system.console.revoke_agent("main")
    new = (await system.console.add_agent("main"))["token"]
    late = await soon(system.gate.run(replace(ID, credential=digest(old)), None, Noting()))
    assert late.status is Status.DENIED
    assert late.decision["rule"] == "revoked"
    assert system.orders == []
    fresh = await soon(system.gate.run(replace(ID, credential=digest(new)), None, Noting()))
    assert fresh.status is Status.FINISHED


async def test_a_question_of_a_revoked_token_is_not_put_under_the_new_one(make):
    system = make()
    old = await system.credentials.mint("main", "test")
    await system.console.revoke_agent("main")
    await system.console.add_agent("main")
    late = await soon(system.gate.ask(replace(ID, credential=digest(old)), None))
    assert late.status is Status.DENIED
    assert await system.console.pending() == []


async def test_a_call_whose_token_is_renewed_while_it_is_decided_starts_nothing(make, meddled):
    system = make(security="full", ask="off")
    old = await system.credentials.mint("main", "test")

    async def renew():
        await system.console.revoke_agent("main")
        await system.console.add_agent("main")

    once(meddled, "remembered", renew)
    outcome = await soon(system.gate.run(replace(ID, credential=digest(old)), None, Noting()))
    assert outcome.status is Status.DENIED
    assert system.orders == []


async def test_an_older_digest_that_was_left_counts_no_more_once_a_new_token_is_made(system):
    old = await system.credentials.mint("main", "test")
    # A revocation that never came to the end of its work in memory:
    await system.store.revoke_agent("main", AuditEvent(1, "agent.revoked", "test"))
    new = await system.credentials.mint("main", "test")
    assert await system.credentials.agent(old) is None
    assert await system.credentials.agent(new) == "main"


async def test_revoking_twice_ends_what_is_left_and_revoking_nobody_is_an_error(system):
    await system.credentials.mint("main", "test")
    for _ in range(2):
        assert (await system.console.revoke_agent("main"))["revoked"]
    with pytest.raises(RequestError, match="no token"):
        await system.console.revoke_agent("nobody")
    kinds = [link.event.kind async for link in system.store.events()]
    assert kinds.count("agent.revoked") == 1
