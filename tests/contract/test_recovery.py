"""What the daemon does first with what an earlier one left, and what a failing disk kept from being done."""

from __future__ import annotations

import asyncio

import pytest

from core.approvals.recovery import recover
from core.credentials import Credentials
from core.errors import StoreError
from core.model.outcome import Status
from core.model.request import Answer, AuditEvent, Review, State
from tests.core_system import ALICE, Noting, exec_call
from tests.lifecycle.mortal import Fused


async def approved(system, *argv):
    """Let a question be put and allowed; nobody has come for it yet."""
    asked = await system.gate.ask(exec_call(*argv), None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    return asked.request_id


async def restarted(make_system):
    system = make_system()
    await recover(system.store, system.ledger, system.approvals, system.clock, lambda _id: 0)
    return system


async def run_approved(system, request_id, *argv):
    return await asyncio.wait_for(system.gate.run_approved(exec_call(*argv), request_id, Noting()), 5)


async def killed_while_locking(system):
    """The lock is kept, and then there is no daemon any more to take the questions back."""
    await system.store.set_locked(locked=True, event=AuditEvent(1, "daemon.locked", "test"))


async def test_what_a_killed_lock_left_open_is_taken_back_at_the_next_start(system, make_system):
    waiting = (await system.gate.ask(exec_call("ls"), None)).request_id
    request_id = await approved(system, "ls", "-l")
    await killed_while_locking(system)
    again = await restarted(make_system)
    for left in (waiting, request_id):
        assert (await again.store.request(left)).state is State.WITHDRAWN
    await again.console.set_locked(locked=False, reviewer=ALICE)
    assert (await run_approved(again, request_id, "ls", "-l")).status is Status.WITHDRAWN
    assert again.orders == []


async def test_what_a_killed_revocation_left_open_is_taken_back_at_the_next_start(system, make_system):
    await system.credentials.mint("main", "test")
    request_id = await approved(system, "ls")
    await system.store.revoke_agent("main", AuditEvent(1, "agent.revoked", "test"))
    again = await restarted(make_system)
    assert (await again.store.request(request_id)).state is State.WITHDRAWN
    await again.console.add_agent("main")
    assert (await run_approved(again, request_id, "ls")).status is Status.WITHDRAWN
    assert again.orders == []


async def test_what_is_open_waits_on_over_a_restart_where_nothing_is_locked_or_revoked(system, make_system):
    await system.credentials.mint("other", "test")
    await system.credentials.revoke("other", "test")
    waiting = (await system.gate.ask(exec_call("ls"), None)).request_id
    request_id = await approved(system, "ls", "-l")
    again = await restarted(make_system)
    assert (await again.store.request(waiting)).state is State.WAITING
    assert (await run_approved(again, request_id, "ls", "-l")).status is Status.FINISHED


def failing_commits(meddled):
    async def full(*_args, **_fields):
        raise StoreError("the disk is full")

    meddled.before["commit"] = meddled.before["commit_all"] = full


async def test_an_unlock_revives_nothing_that_the_lock_could_not_take_back(make_system, meddled):
    system = make_system(through=meddled)
    request_id = await approved(system, "ls")
    failing_commits(meddled)
    with pytest.raises(StoreError):
        await system.console.set_locked(locked=True, reviewer=ALICE)
    with pytest.raises(StoreError):
        await system.console.set_locked(locked=False, reviewer=ALICE)
    assert await system.store.locked()
    meddled.before.clear()
    await system.console.set_locked(locked=False, reviewer=ALICE)
    assert not await system.store.locked()
    assert (await run_approved(system, request_id, "ls")).status is Status.WITHDRAWN
    assert system.orders == []


async def test_a_new_token_revives_nothing_that_the_revocation_could_not_take_back(make_system, meddled):
    system = make_system(through=meddled)
    await system.credentials.mint("main", "test")
    request_id = await approved(system, "ls")
    failing_commits(meddled)
    with pytest.raises(StoreError):
        await system.console.revoke_agent("main")
    meddled.before.clear()
    await system.console.add_agent("main")
    assert (await run_approved(system, request_id, "ls")).status is Status.WITHDRAWN
    assert system.orders == []


async def test_a_question_and_a_call_with_the_same_command_each_have_their_twin(system):
    """Neither hides the other: the same asked again joins the one of its own kind."""
    call = exec_call("ls")
    asker, first = system.asking(call)
    await asyncio.wait_for(first.asked.wait(), 5)
    only_asked = (await system.gate.ask(call, None)).request_id
    _, observer = system.asking(call)
    await asyncio.wait_for(observer.asked.wait(), 5)
    assert observer.seen == first.seen
    assert (await system.gate.ask(call, None)).request_id == only_asked
    assert len(await system.console.pending()) == 2
    assert not asker.done()


async def test_a_daemon_killed_within_its_first_start_leaves_no_agent_whose_token_nobody_has(kept, clock):
    for after in (False, True):
        fused = Fused(kept)
        fused.fuse, fused.after = 0, after
        saved = []
        minting = asyncio.create_task(Credentials(fused, clock, None).mint("main", "daemon", saved.append))
        await asyncio.wait_for(fused.burnt.wait(), 5)
        minting.cancel()
        again = Credentials(kept, clock, None)
        await again.load()
        assert len(saved) == 1
        assert await again.agent(saved[0]) == ("main" if after else None)
        assert bool(await kept.agents()) is after
