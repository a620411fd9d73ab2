"""What may happen between any two steps of a request: locks, revocations, hang-ups, failing disks."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from msgspec import structs

from adapters.resolvers.filesystem import FilesystemResolver
from core.approvals import lifecycle
from core.approvals.courier import Courier
from core.errors import RequestError, StoreError
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.decision import Effect
from core.model.history import HistoryQuery
from core.model.outcome import Status
from core.model.request import Answer, RequestKind, Review, State
from tests.core_system import ALICE, CONFIG, MAIN, Noting, exec_call

LISTED = exec_call("git", "--version")


def once(name, store, hook, *, when="before"):
    """Do something once, around the first call of a store's method."""

    async def meddle(*_args, **_fields):
        getattr(store, when).pop(name, None)
        await hook()

    getattr(store, when)[name] = meddle


async def soon(awaitable, seconds=5):
    return await asyncio.wait_for(awaitable, seconds)


async def lock(system):
    await system.console.set_locked(locked=True, reviewer=ALICE)


async def begun(work, method, store):
    """Begin some work, and go on once the store has kept its first step: the rest may wait for a run."""
    kept = asyncio.Event()

    async def note():
        kept.set()

    once(method, store, note, when="after")
    task = asyncio.create_task(work)
    await kept.wait()
    return task


def locking(system):
    return begun(lock(system), "set_locked", system.store)


def revoking(system, agent):
    return begun(system.console.revoke_agent(agent), "revoke_agent", system.store)


async def asked(system, call=None):
    """Put one question and return its id and the asker's task."""
    task, observer = system.asking(call or exec_call("ls"))
    await soon(observer.asked.wait())
    (waiting,) = await system.console.pending()
    return waiting["id"], task


# The kill switch holds at the moment of the start.


async def test_a_lock_between_the_decision_and_the_start_lets_nothing_run(make_system, meddled):
    system = make_system(through=meddled)
    once("commit", meddled, lambda: locking(system))
    outcome = await soon(system.gate.run(LISTED, None, Noting()))
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "locked"
    assert system.orders == []


async def test_a_lock_between_a_yes_and_the_start_lets_nothing_run(make_system, meddled):
    system = make_system(through=meddled)
    request_id, task = await asked(system)
    once("remembered", meddled, lambda: locking(system), when="after")
    await system.console.resolve(Review(request_id, Answer.ALLOW_ONCE, ALICE))
    outcome = await soon(task)
    assert outcome.status is not Status.FINISHED
    assert system.orders == []


async def test_a_question_decided_before_a_lock_and_kept_after_it_is_not_put(make_system, meddled):
    system = make_system(through=meddled)
    once("commit", meddled, lambda: locking(system))
    outcome = await soon(system.gate.run(exec_call("ls"), None, Noting()))
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "locked"
    assert await system.console.pending() == []


async def test_a_client_is_not_told_yes_after_a_lock(make_system, meddled):
    system = make_system(through=meddled)
    once("commit", meddled, lambda: locking(system))
    outcome = await soon(system.gate.ask(ToolCall("read", MAIN, args={"path": "/srv/a"}), None))
    assert outcome.status is Status.DENIED


async def test_a_lock_ends_a_run_whose_start_is_just_being_recorded(make_system, meddled):
    system = make_system(through=meddled)
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    locking = []

    async def lock_meanwhile():
        locking.append(asyncio.create_task(lock(system)))
        while not any(run.why_ended for run in system.runs._all):  # noqa: ASYNC110 - nothing tells of that
            await asyncio.sleep(0.005)

    once("commit", meddled, lock_meanwhile, when="after")
    outcome = await soon(system.gate.run(LISTED, None, Noting()))
    assert outcome.status is Status.INTERRUPTED
    await soon(locking[0])
    assert len(system.runs) == 0


async def test_a_lock_holds_over_a_restart_and_nothing_approved_before_runs_after_it(system, make_system):
    request_id, task = await asked(system)
    task.cancel()
    await system.console.resolve(Review(request_id, Answer.ALLOW_ONCE, ALICE))
    await lock(system)
    again = make_system()
    await again.approvals.recover()
    outcome = await soon(again.gate.wait("main", request_id, Noting()))
    assert outcome.status is Status.WITHDRAWN
    assert again.orders == []


async def test_the_record_says_who_locked_not_that_the_agent_withdrew(system):
    request_id, task = await asked(system)
    await lock(system)
    outcome = await soon(task)
    shown = await system.console.show(request_id)
    assert shown["record"][-1]["actor"] == "operator"
    assert "alice" in outcome.reason
    assert "locked" in outcome.reason


async def test_a_lock_that_cannot_be_kept_still_ends_what_runs(make_system, meddled):
    system = make_system(through=meddled)
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    task, observer = system.asking(LISTED)
    await soon(observer.started.wait())

    async def full():
        raise StoreError("the disk is full")

    once("set_locked", meddled, full)
    with pytest.raises(StoreError):
        await lock(system)
    assert (await soon(task)).status is Status.INTERRUPTED


async def test_a_lock_ends_what_runs_before_it_calls_off_the_first_question(make_system, meddled):
    system = make_system(through=meddled)
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    task, observer = system.asking(LISTED)
    await soon(observer.started.wait())
    await asked(system)

    async def run_is_over():
        assert (await soon(asyncio.shield(task))).status is Status.INTERRUPTED

    once("commit_all", meddled, run_is_over)
    await soon(lock(system))
    assert await system.console.pending() == []


async def test_a_lock_whose_questions_cannot_be_called_off_ends_what_runs(make_system, meddled):
    system = make_system(through=meddled)
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    task, observer = system.asking(LISTED)
    await soon(observer.started.wait())

    async def full(*_states):
        raise StoreError("the disk is full")

    meddled.before["in_states"] = full
    with pytest.raises(StoreError):
        await lock(system)
    assert (await soon(task)).status is Status.INTERRUPTED


async def test_what_is_asked_while_questions_are_being_called_off_is_denied_at_once(make_system, meddled):
    system = make_system(through=meddled)
    await asked(system)
    outcomes = []

    async def ask_meanwhile():
        outcomes.append(await soon(system.gate.run(exec_call("ls", "-a"), None, Noting())))
        outcomes.append(await soon(system.gate.run(LISTED, None, Noting())))

    once("commit_all", meddled, ask_meanwhile)
    await soon(lock(system))
    assert [outcome.decision["rule"] for outcome in outcomes] == ["locked", "locked"]
    assert system.orders == []


async def test_a_thousand_questions_are_called_off_in_two_transactions_and_all_askers_are_told(
    make_system, meddled
):
    plenty = {"exec": {"maxOpen": 10_000, "maxPerMinute": 10_000}}
    system = make_system({**CONFIG, "approvals": plenty}, through=meddled)
    first = await system.gate.ask(exec_call("ls"), None)
    template = await system.store.request(first.request_id)
    for number in range(999):
        binding = replace(template.binding, digest=f"{number:064d}")
        await system.approvals.ask(replace(template, id=f"{number:08d}-x", binding=binding, copies=()))
    waiting = asyncio.create_task(system.gate.wait("main", "00000998-x", Noting()))
    transactions = []

    async def note(changes):
        transactions.append(len(changes))

    meddled.before["commit_all"] = note
    locked = await soon(system.console.set_locked(locked=True, reviewer=ALICE), 30)
    assert "1000 open questions were withdrawn" in locked["text"]
    assert transactions == [500, 500]
    assert (await soon(waiting)).status is Status.WITHDRAWN
    assert await system.console.pending() == []


async def test_an_answer_while_locked_is_told_why_it_does_not_count(system, kept):
    request_id, _ = await asked(system)
    event = lifecycle.AuditEvent(1, "daemon.locked", "test")
    await kept.set_locked(locked=True, event=event)
    reviewed = await system.approvals.review(Review(request_id, Answer.ALLOW_ONCE, ALICE))
    assert not reviewed.accepted
    assert "locked" in reviewed.text.lower()
    assert (await system.approvals.review(Review(request_id, Answer.DENY, ALICE))).accepted


# A revoked agent.


async def test_revoking_an_agent_takes_back_its_questions_and_its_unused_approvals(system):
    await system.credentials.mint("main", "test")
    first, waiting = await asked(system)
    await system.console.resolve(Review(first, Answer.DENY, ALICE))
    await soon(waiting)
    approved = await system.gate.ask(exec_call("ls", "-l"), None)
    await system.console.resolve(Review(approved.request_id, Answer.ALLOW_ONCE, ALICE))
    request_id, task = await asked(system, exec_call("ls", "-a"))
    await system.console.revoke_agent("main")
    assert (await soon(task)).status is Status.WITHDRAWN
    assert (await system.store.request(approved.request_id)).state is State.WITHDRAWN
    assert not (await system.console.resolve(Review(request_id, Answer.ALLOW_ONCE, ALICE)))["accepted"]
    assert system.orders == []


async def test_revoking_an_agent_ends_its_runs_and_no_one_elses(make_system):
    system = make_system()
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    await system.credentials.mint("main", "test")
    task, observer = system.asking(LISTED)
    await soon(observer.started.wait())
    await system.credentials.mint("other", "test")
    await system.console.revoke_agent("other")
    assert len(system.runs) == 1
    await system.console.revoke_agent("main")
    assert (await soon(task)).status is Status.INTERRUPTED


async def test_an_agent_revoked_between_the_decision_and_the_start_runs_nothing(make_system, meddled):
    system = make_system(through=meddled)
    await system.credentials.mint("main", "test")
    once("commit", meddled, lambda: revoking(system, "main"))
    outcome = await soon(system.gate.run(LISTED, None, Noting()))
    assert outcome.status is Status.DENIED
    assert "revoked" in outcome.reason
    assert system.orders == []


async def test_an_agent_that_has_a_new_token_may_ask_again(system):
    await system.credentials.mint("main", "test")
    await system.console.revoke_agent("main")
    assert (await system.gate.run(LISTED, None, Noting())).status is Status.DENIED
    await system.credentials.mint("main", "test")
    assert (await system.gate.run(LISTED, None, Noting())).status is Status.FINISHED


# Hang-ups, double presses, faults.


@pytest.mark.parametrize("steps", range(12))
async def test_an_asker_that_hangs_up_at_any_step_leaves_no_run_without_an_end(make_system, meddled, steps):
    system = make_system(through=meddled)
    task = asyncio.create_task(system.gate.run(LISTED, None, Noting()))
    for _ in range(steps):
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await soon(asyncio.gather(*(run.task for run in system.runs._all)))
    await system.runs.close("the test ended")
    rows = await system.console.history(HistoryQuery(10))
    assert {row["state"] for row in rows} <= {"finished"}
    assert len(system.orders) == len(rows)


async def test_a_run_cancelled_twice_while_the_disk_is_full_still_gets_its_end(make_system, meddled):
    system = make_system(through=meddled)
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    task, observer = system.asking(LISTED)
    await soon(observer.started.wait())
    (row,) = await system.console.history(HistoryQuery(1))

    failed = asyncio.Event()

    async def full():
        failed.set()
        raise StoreError("the disk is full")

    once("commit", meddled, full)
    assert (await system.console.cancel(row["id"], ALICE))["accepted"]
    await soon(failed.wait())
    await system.console.cancel(row["id"], ALICE)
    assert (await soon(task)).status is Status.INTERRUPTED


async def test_stopping_does_not_wait_for_ever_for_a_disk_that_stays_full(make_system, meddled):
    system = make_system(through=meddled)
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    task, observer = system.asking(LISTED)
    await soon(observer.started.wait())

    async def full(*_args, **_fields):
        raise StoreError("the disk is full")

    meddled.before["commit"] = full
    await soon(system.runs.close("the test ended", patience_s=0.2))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_start_that_cannot_be_recorded_is_an_error_for_the_asker_and_runs_nothing(
    make_system, meddled
):
    system = make_system(through=meddled)

    async def broken():
        raise ZeroDivisionError("a bug")

    once("commit", meddled, broken)
    with pytest.raises(ZeroDivisionError):
        await soon(system.gate.run(LISTED, None, Noting()))
    assert system.orders == []
    assert len(system.runs) == 0


async def test_a_yes_in_the_last_moment_still_finds_its_asker(system, clock):
    request_id, task = await asked(system)
    task.cancel()
    clock.advance(119_999)
    assert (await system.console.resolve(Review(request_id, Answer.ALLOW_ONCE, ALICE)))["accepted"]
    clock.advance(2)
    assert (await soon(system.gate.wait("main", request_id, Noting()))).status is Status.FINISHED


async def test_a_yes_is_not_good_for_ever(system, clock):
    request_id, task = await asked(system)
    task.cancel()
    await system.console.resolve(Review(request_id, Answer.ALLOW_ONCE, ALICE))
    clock.advance(121_000)
    waiting = asyncio.create_task(system.gate.wait("main", request_id, Noting()))
    keeper = asyncio.create_task(system.approvals.keep_deadlines(system.gate.fallback))
    outcome = await soon(waiting)
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)
    assert outcome.status is Status.EXPIRED
    assert system.orders == []


async def test_a_withdrawal_and_an_answer_at_once_end_in_one_of_both(system):
    for number in range(10):
        asked_for = await system.gate.ask(exec_call("ls", str(number)), None)
        await asyncio.gather(
            system.gate.withdraw("main", asked_for.request_id),
            system.approvals.review(Review(asked_for.request_id, Answer.ALLOW_ONCE, ALICE)),
        )
        found = await system.store.request(asked_for.request_id)
        assert found.state in {State.WITHDRAWN, State.APPROVED}
        events = [link.event.kind for link in await system.store.events_about(found.id)]
        assert events[-1] == f"approval.{found.state.value}"


# The keeper of deadlines outlives what fails.


async def _keeping(system, fallback, until):
    keeper = asyncio.create_task(system.approvals.keep_deadlines(fallback))
    try:
        async with asyncio.timeout(10):
            while not await until():  # noqa: ASYNC110 - the clock is moved on in between
                await asyncio.sleep(0.02)
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


async def test_deadlines_are_kept_after_the_store_failed(make_system, meddled, clock):
    system = make_system(through=meddled)
    asked_for = await system.gate.ask(exec_call("ls"), None)
    clock.advance(200_000)

    async def broken():
        raise StoreError("the disk reported an error")

    once("request", meddled, broken)

    async def expired():
        clock.advance(500)
        return (await system.store.store.request(asked_for.request_id)).state is State.EXPIRED

    await _keeping(system, system.gate.fallback, expired)


async def test_a_fallback_that_fails_or_hangs_is_a_no_and_delays_nobody(system, clock):
    first = await system.gate.ask(exec_call("ls", "-a"), None)
    second = await system.gate.ask(exec_call("ls", "-b"), None)
    clock.advance(200_000)

    async def fallback(request):
        if request.id == first.request_id:
            raise ZeroDivisionError("a bug")
        return False

    async def both_expired():
        found = [await system.store.request(asked_for.request_id) for asked_for in (first, second)]
        return {request.state for request in found} == {State.EXPIRED}

    await _keeping(system, fallback, both_expired)


class HangingResolver(FilesystemResolver):
    """A resolver over a file system that does not answer until it is told to."""

    def __init__(self):
        super().__init__()
        self.answer = threading.Event()

    def real_directory(self, path):
        self.answer.wait(20)
        return super().real_directory(path)


async def test_a_file_system_that_hangs_is_a_refusal_in_time(make_system):
    hanging = HangingResolver()
    system = make_system(resolver=hanging)
    system.gate._decider.looking_deadline_s = 0.1
    try:
        with pytest.raises(RequestError, match="in time"):
            await soon(system.gate.run(exec_call("git", "--version", cwd="/srv"), None, Noting()))
    finally:
        hanging.answer.set()
    assert system.orders == []


async def test_the_fallback_never_overrides_another_layer_that_asks(make_system):
    tools = {**CONFIG["tools"], "exec": {**CONFIG["tools"]["exec"], "ask_fallback": "allowlist"}}
    system = make_system({**CONFIG, "tools": tools})
    case, _ = await system.gate.consider(LISTED)
    assert system.judge.fallback_allows(case, ())
    asks = replace(case, tool=structs.replace(case.tool, effect=Effect.ASK))
    assert not system.judge.fallback_allows(asks, ())


async def test_no_state_but_a_final_one_is_kept_while_locked(kept, new_request):
    request = new_request()
    await kept.set_locked(locked=True, event=lifecycle.AuditEvent(1, "daemon.locked", "test"))
    assert not await kept.commit(lifecycle.asked(request, 1))
    assert not await kept.commit(lifecycle.allowed(request, 1))
    assert not await kept.commit(lifecycle.allowed(replace(request, kind=RequestKind.ASK), 1))
    assert await kept.commit(lifecycle.refused(request, 1))
    await kept.set_locked(locked=False, event=lifecycle.AuditEvent(1, "daemon.unlocked", "test"))
    assert await kept.commit(lifecycle.asked(replace(request, id="f" * 32), 1))


class ListChannel:
    """A channel that notes what it is told."""

    name = "web"
    keeps_copies = True

    def __init__(self):
        self.posted = asyncio.Event()

    async def post(self, _card, _place, _nonce):
        self.posted.set()
        return "1"

    async def update(self, _card, _place, _ref, _nonce):
        """Nothing to note."""


@pytest.mark.parametrize("method", ["due", "next_due", "request", "delivered"])
async def test_messages_are_delivered_after_the_store_failed(make_system, meddled, clock, method):
    system = make_system(through=meddled)
    channel = ListChannel()

    failed = asyncio.Event()

    async def broken():
        failed.set()
        raise StoreError("the disk reported an error")

    courier = Courier(channel, meddled, system.approvals, clock)
    system.ledger.on_commit.append(courier.wake)
    once(method, meddled, broken)
    serving = asyncio.create_task(courier.run())
    if method in ("due", "next_due"):  # which it asks before there is anything
        await soon(failed.wait())
    await system.gate.ask(exec_call("ls"), None)
    await soon(channel.posted.wait())
    await soon(failed.wait())
    assert not serving.done()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
