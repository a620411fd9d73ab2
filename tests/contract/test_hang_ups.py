"""Whoever hangs up in the middle leaves nothing half-done: acts of the operator, and questions being put."""

from __future__ import annotations

import asyncio

import pytest

from bot.config import load
from bot.live import Live
from core.acts import Acts
from core.approvals.quorum import People
from core.approvals.rules import Rules
from core.errors import StoreError
from core.model.elevation import Elevation, Level
from core.model.principal import Sender
from core.model.request import Answer, AuditEvent, Review, State
from core.registrar import Registrar
from tests.core_system import ALICE, CONFIG, MAIN, exec_call

ROOT = Sender("cli", "0", "root")


async def hang_up_during(meddled, method, work, close):
    """Begin some work, hang up in the moment a store's method has done its part, and wait for the rest."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def hold(*_args, **_fields):
        meddled.after.pop(method, None)
        reached.set()
        await go_on.wait()

    meddled.after[method] = hold
    task = asyncio.create_task(work)
    await asyncio.wait_for(reached.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    go_on.set()
    await asyncio.wait_for(close(), 5)


@pytest.fixture
def system(make_system, meddled):
    return make_system(through=meddled)


async def test_a_revocation_ends_the_token_and_the_questions_though_the_operator_hangs_up(system, meddled):
    old = await system.credentials.mint("main", "test")
    asked = await system.gate.ask(exec_call("ls"), None)
    cut_off = []
    system.console.on_revoked.append(cut_off.append)
    await hang_up_during(meddled, "revoke_agent", system.console.revoke_agent("main"), system.console.close)
    assert await system.credentials.agent(old) is None
    assert (await system.store.request(asked.request_id)).state is State.WITHDRAWN
    assert cut_off == ["main"]


async def test_a_token_that_is_kept_counts_though_the_operator_hangs_up(system, meddled):
    await hang_up_during(meddled, "put_agent", system.console.add_agent("main"), system.console.close)
    assert system.credentials.alive("main")
    await system.console.revoke_agent("main")
    assert not system.credentials.alive("main")


@pytest.mark.parametrize("moment", ["set_locked", "in_states", "commit_all"])
async def test_a_lock_takes_every_question_back_though_the_operator_hangs_up(system, meddled, moment):
    for number in range(5):
        await system.gate.ask(exec_call("touch", str(number)), None)
    lock = system.console.set_locked(locked=True, reviewer=ALICE)
    await hang_up_during(meddled, moment, lock, system.console.close)
    assert await system.store.locked()
    assert await system.store.count(State.WAITING) == 0


async def test_a_level_that_is_kept_holds_though_the_operator_hangs_up(make_system, meddled):
    system = make_system(
        {**CONFIG, "tools": {**CONFIG["tools"], "elevated": {"enabled": True}}}, through=meddled
    )
    now = system.clock.now()
    elevation = Elevation("e1", str(MAIN), Level.OFF, ROOT, now, now + 60_000, break_glass=True)
    event = AuditEvent(now, "elevated.set", "test")
    await hang_up_during(meddled, "elevate", system.elevations.put(elevation, event), system.elevations.close)
    assert system.elevations.all() == (elevation,)


async def test_a_plugin_that_is_recorded_is_registered_though_the_operator_hangs_up(system, meddled):
    registrar = Registrar(lambda: system.judge.config, meddled, system.clock)
    await hang_up_during(meddled, "append", registrar.register("mail", ["send_mail"], ALICE), registrar.close)
    assert registrar.plugins() == {"mail": ("send_mail",)}


# A reload.


@pytest.fixture
def configured(tmp_path):
    """Give a configuration file, and what reads it."""
    path = tmp_path / "config.yaml"
    path.write_text("tools: {exec: {security: full}}\n")
    return path, lambda: load([path], env={})


@pytest.fixture
def live(configured, system, meddled, clock):
    _, read = configured
    return Live(read(), read, lambda _loaded: system.judge, meddled, clock)


async def test_a_reload_that_is_recorded_is_in_force_though_the_operator_hangs_up(live, configured, meddled):
    configured[0].write_text("tools: {exec: {security: deny}}\n")
    before = await meddled.revision()
    await hang_up_during(meddled, "append", live.reload("test"), live.close)
    assert live.config().exec.security == "deny"
    assert await meddled.revision() > before


async def test_a_reload_that_cannot_be_recorded_is_not_in_force(live, configured, meddled):
    configured[0].write_text("tools: {exec: {security: deny}}\n")

    async def full(*_events):
        raise StoreError("the disk is full")

    meddled.before["append"] = full
    with pytest.raises(StoreError):
        await live.reload("test")
    assert live.config().exec.security == "full"


# Questions.


@pytest.mark.parametrize("turns", range(0, 12, 2))
async def test_identical_questions_are_put_once_though_the_first_asker_hangs_up(system, turns):
    for number in range(3):
        call = exec_call("touch", f"{turns}-{number}")
        first = asyncio.create_task(system.gate.ask(call, None))
        for _ in range(turns):
            await asyncio.sleep(0.0003)
        first.cancel()
        second = await system.gate.ask(call, None)
        await asyncio.gather(first, return_exceptions=True)
        await system.approvals.close()
        waiting = [
            request.id
            for request in await system.store.in_states(State.WAITING)
            if request.call.command == call.command
        ]
        assert waiting == [second.request_id]


async def test_a_question_whose_asker_hung_up_as_it_was_kept_counts_as_open(make_system):
    limits = {"exec": {"maxOpen": 3, "maxPerMinute": 100}}
    system = make_system({**CONFIG, "approvals": limits})
    for number in range(6):
        asking = asyncio.create_task(system.gate.ask(exec_call("touch", str(number)), None))
        if number < 3:

            def hang_up(_change, asking=asking):
                asking.cancel()

            system.ledger.on_commit.append(hang_up)
            await asyncio.gather(asking, return_exceptions=True)
            await system.approvals.close()
            system.ledger.on_commit.remove(hang_up)
        else:
            assert (await asking).decision["rule"] == "approvals.too-many-open"
    assert await system.store.count(State.WAITING) == 3


async def test_a_question_that_could_not_be_kept_does_not_count_as_open(make_system, meddled):
    limits = {"exec": {"maxOpen": 1, "maxPerMinute": 100}}
    system = make_system({**CONFIG, "approvals": limits}, through=meddled)

    async def full(*_args):
        meddled.before.pop("commit")
        raise StoreError("the disk is full")

    meddled.before["commit"] = full
    with pytest.raises(StoreError):
        await system.gate.ask(exec_call("touch", "a"), None)
    assert (await system.gate.ask(exec_call("touch", "b"), None)).status == "pending"


# The helper itself.


async def test_an_act_gives_its_result_or_its_fault_to_whoever_waits():
    async def give(value):
        await asyncio.sleep(0)
        if isinstance(value, Exception):
            raise value
        return value

    acts = Acts("test")
    assert await acts.whole(give(7)) == 7
    with pytest.raises(KeyError):
        await acts.whole(give(KeyError("x")))


async def test_closing_waits_for_acts_that_nobody_waits_for_any_more():
    acts, done, may_end = Acts("test"), [], asyncio.Event()

    async def work():
        await may_end.wait()
        done.append(True)
        raise KeyError("nobody is there to hear of it")

    task = asyncio.create_task(acts.whole(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    closing = asyncio.create_task(acts.close())
    await asyncio.sleep(0)
    assert not closing.done()
    may_end.set()
    await closing
    assert done == [True]


async def test_an_answer_given_while_a_question_is_taken_back_is_kept_with_it(make_system):
    system = make_system({**CONFIG, "approvals": {"exec": {"maxPerMinute": 100}}})
    system.approvals._rules = lambda: Rules(People.named({"Ann": ("cli:0",), "Bea": ("cli:1",)}), required=2)
    for turns in range(20):
        asked = await system.gate.ask(exec_call("touch", str(turns)), None)

        async def review(request_id=asked.request_id, turns=turns):
            for _ in range(turns % 7):
                await asyncio.sleep(0)
            return await system.approvals.review(Review(request_id, Answer.ALLOW_ONCE, ALICE))

        if turns % 2:
            back = system.gate.withdraw("main", asked.request_id)
        else:
            back = system.approvals.call_off("locked")
        reviewed, _ = await asyncio.gather(review(), back)
        kept = await system.store.request(asked.request_id)
        assert kept.state is State.WITHDRAWN
        assert len(kept.reviews) == reviewed.accepted
