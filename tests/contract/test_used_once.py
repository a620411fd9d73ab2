"""What may come between a yes and its use: another waiter, a lock, a new rule, a run under the same id."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.approvals.used import REPEATED
from core.config import Config
from core.errors import UnknownRequest
from core.judge import Judge
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.outcome import Status
from core.model.request import Answer, Change, Review, State
from core.model.session import SessionKey
from tests.core_system import ALICE, MAIN, Noting, exec_call

BASH = ToolCall("Bash", MAIN, args={"command": "rm -r build"}, cwd="/usr", by_client=True)


def config(**rules):
    return {"tools": {"profile": "coding", "exec": {"security": "allowlist", "ask": "on-miss", **rules}}}


def put_in_force(system, **rules):
    old = system.judge
    new = Config.model_validate(config(**rules))
    system.judge = Judge(new, old.site, old._resolver, old._names)


def before_commit(meddled, hook):
    """Do something once, before the store keeps the next change."""

    async def meddle(*_args, **_fields):
        meddled.before.pop("commit", None)
        await hook()

    meddled.before["commit"] = meddle


@pytest.fixture
def make(make_system, meddled):
    return lambda: make_system(config(), through=meddled)


async def soon(work):
    return await asyncio.wait_for(work, 5)


async def approved(system, call=BASH):
    asked = await system.gate.ask(call, None)
    assert asked.status is Status.PENDING
    assert (await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE)))["accepted"]
    return asked.request_id


def waiting(system, request_id):
    return soon(system.gate.wait("main", request_id, Noting()))


async def test_of_two_who_wait_for_one_yes_one_gets_it(make):
    system = make()
    request_id = await approved(system)
    answers = await asyncio.gather(waiting(system, request_id), waiting(system, request_id))
    assert sorted(answer.status for answer in answers) == [Status.ALLOWED, Status.DENIED]
    refused = next(answer for answer in answers if answer.status is Status.DENIED)
    assert "taken already" in refused.reason


async def test_a_yes_that_was_called_off_as_it_was_handed_over_is_none(make, meddled):
    system = make()
    request_id = await approved(system)
    before_commit(meddled, lambda: system.approvals.call_off("everything is locked"))
    outcome = await waiting(system, request_id)
    assert outcome.status is Status.DENIED
    assert (await system.store.request(request_id)).state is State.WITHDRAWN


async def test_a_rule_that_came_as_it_was_handed_over_holds(make, meddled):
    system = make()
    request_id = await approved(system)

    async def forbid():
        put_in_force(system, deny=["* -r *"])
        await system.store.revise()

    before_commit(meddled, forbid)
    outcome = await waiting(system, request_id)
    assert (outcome.status, outcome.reason.startswith("it was allowed, but by now")) == (Status.DENIED, True)


async def test_a_change_that_does_not_matter_only_has_it_decided_again(make, meddled):
    system = make()
    request_id = await approved(system)
    before_commit(meddled, system.store.revise)
    assert (await waiting(system, request_id)).status is Status.ALLOWED


async def test_what_nobody_answered_yet_is_not_run_nor_ended_by_a_run_under_its_id(make):
    system = make()
    asked = await system.gate.ask(exec_call("ls"), None)
    for call in (exec_call("ls"), exec_call("id")):
        outcome = await soon(system.gate.run_approved(call, asked.request_id, Noting()))
        assert outcome.status is Status.PENDING
    assert (await system.store.request(asked.request_id)).state is State.WAITING
    assert system.orders == []


async def ran(system, call):
    request_id = await approved(system, call)
    outcome = await soon(system.gate.run_approved(call, request_id, Noting()))
    assert (outcome.status, outcome.notes) == (Status.FINISHED, ())
    return outcome


async def test_who_lost_the_reply_gets_it_again_and_is_told_that_nothing_ran_again(make):
    system = make()
    first = await ran(system, exec_call("ls", env=(("A", "1"),)))
    for _ in range(2):
        again = await soon(
            system.gate.run_approved(exec_call("ls", env=(("A", "1"),)), first.request_id, Noting())
        )
        assert again == replace(first, notes=(REPEATED,))
    assert len(system.orders) == 1


@pytest.mark.parametrize(
    "other",
    [
        exec_call("id"),
        exec_call("ls", "-l"),
        exec_call("ls", cwd="/usr"),
        exec_call("ls", env=(("A", "1"),)),
        exec_call("ls", stdin=b"x"),
        exec_call("ls", session=SessionKey.parse("agent:main:web:x")),
        exec_call(line="ls; ls"),
    ],
    ids=["program", "argument", "cwd", "variable", "stdin", "session", "line"],
)
async def test_a_run_that_ended_is_no_outcome_of_another_under_its_id(make, other):
    system = make()
    first = await ran(system, exec_call("ls"))
    outcome = await soon(system.gate.run_approved(other, first.request_id, Noting()))
    assert (outcome.status, outcome.exit_code, outcome.stdout) == (Status.DENIED, None, "")
    used = (
        f"the approval {first.request_id} was used already, for another command, which finished with status 0"
    )
    assert outcome.reason.startswith(used)
    assert outcome.reason.endswith("nothing ran, ask again")
    assert (await system.store.request(first.request_id)).state is State.FINISHED
    assert len(system.orders) == 1


async def test_the_same_line_in_other_words_is_the_same_command(make):
    system = make()
    first = await ran(system, exec_call("ls", "-l"))
    again = await soon(system.gate.run_approved(exec_call(line="ls  -l"), first.request_id, Noting()))
    assert (again.status, again.notes) == (Status.FINISHED, (REPEATED,))


async def test_a_run_under_an_approval_whose_run_is_under_way_waits_or_is_refused(make):
    system = make()
    system.runners[Placement.SANDBOX].hold = asyncio.Event()
    request_id = await approved(system, exec_call("ls"))
    observer = Noting()
    running = asyncio.create_task(system.gate.run_approved(exec_call("ls"), request_id, observer))
    await soon(observer.started.wait())
    same = await soon(system.gate.run_approved(exec_call("ls"), request_id, Noting()))
    other = await soon(system.gate.run_approved(exec_call("id"), request_id, Noting()))
    assert (same.status, other.status) == (Status.PENDING, Status.DENIED)
    assert "used already, for another command, which is still running" in other.reason
    system.runners[Placement.SANDBOX].hold.set()
    assert (await soon(running)).notes == ()
    assert len(system.orders) == 1


async def test_of_two_commands_at_once_under_one_approval_the_second_gets_no_outcome_of_the_first(
    make, meddled
):
    system = make()
    request_id = await approved(system, exec_call("ls"))
    first = []

    async def come_between():
        first.append(await soon(system.gate.run_approved(exec_call("ls"), request_id, Noting())))

    before_commit(meddled, come_between)
    second = await soon(system.gate.run_approved(exec_call("id"), request_id, Noting()))
    assert (first[0].status, second.status, second.stdout) == (Status.FINISHED, Status.DENIED, "")
    assert "was used already, for another command" in second.reason
    assert len(system.orders) == 1


async def test_an_answer_that_a_client_took_is_no_yes_to_a_run_here(make):
    system = make()
    request_id = await approved(system)
    assert (await waiting(system, request_id)).status is Status.ALLOWED
    outcome = await soon(
        system.gate.run_approved(exec_call(line="rm -r build", cwd="/usr"), request_id, Noting())
    )
    assert outcome.status is Status.DENIED
    assert f"the approval {request_id} was used already" in outcome.reason
    assert outcome.reason.endswith("nothing ran, ask again")
    assert system.orders == []


async def test_a_request_is_named_by_eight_characters_or_more_that_only_it_begins_with(make):
    system = make()
    request_id = (await system.gate.ask(BASH, None)).request_id
    assert (await system.gate.withdraw("main", request_id[:8])).status is Status.WITHDRAWN
    with pytest.raises(UnknownRequest, match="no request of this agent"):
        await system.gate.withdraw("main", request_id[:7])
    kept = await system.store.request(request_id)
    other = replace(kept, id=f"{request_id[:8]}-0000-4000-8000-000000000000", state=State.DENIED, copies=())
    assert await system.ledger.commit(Change(other, insert=True))
    with pytest.raises(UnknownRequest, match="several requests begin with"):
        await system.gate.withdraw("main", request_id[:8])
    assert (await system.gate.withdraw("main", request_id)).request_id == request_id


async def test_a_call_to_be_run_does_not_join_a_question_that_only_asks(make):
    system = make()
    asked = await system.gate.ask(exec_call("ls"), None)
    task, observer = system.asking(exec_call("ls"))
    await soon(observer.asked.wait())
    assert len(await system.console.pending()) == 2
    assert (await system.gate.ask(exec_call("ls"), None)).request_id == asked.request_id
    for each in await system.console.pending():
        await system.gate.withdraw("main", each["id"])
    await soon(task)


async def test_a_yes_that_is_used_after_its_time_has_expired_and_was_not_revoked(make, meddled, clock):
    system = make()
    request_id = await approved(system, exec_call("ls"))
    clock.advance(121_000)
    refused = asyncio.Event()

    async def note(*_args, **_fields):
        refused.set()

    meddled.after["commit"] = note
    running = asyncio.create_task(system.gate.run_approved(exec_call("ls"), request_id, Noting()))
    await soon(refused.wait())
    for _ in range(
        50
    ):  # so many turns of the store later it still waits for its end, and has not made one up
        await system.store.revision()
    assert (await system.store.request(request_id)).state is State.APPROVED
    keeper = asyncio.create_task(system.approvals.keep_deadlines(system.gate.fallback))
    outcome = await soon(running)
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)
    assert (outcome.status, system.orders) == (Status.EXPIRED, [])
