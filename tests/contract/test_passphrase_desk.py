"""The PassphraseDesk: who is the operator, for how long, and what guessing costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache

import pytest
from argon2 import PasswordHasher

from bot.home import write_secret
from bot.passphrase import PassphraseFile
from core.config import OperatorSettings
from core.errors import NotPermitted, PassphraseNeeded, RequestError, StartError, StoreError
from core.model.principal import Reviewer
from core.model.terminal import Seat, Terminal
from core.passphrase.guard import LONGEST_ONCE_MS, PassphraseGuard
from tests.core_system import Meddled
from tests.passphrase_terminal import PASSPHRASE

ANN = Reviewer("cli", "1000", "ann")
BEA = Reviewer("cli", "1001", "bea")
HERE = Terminal(1000, 34816, 4242, 99_000, "pts/0")
MINUTE = 60_000


@cache
def kept_hash():
    """The hash of the passphrase, which is slow to make, made once."""
    return PasswordHasher().hash(PASSPHRASE)


class Desk:
    """A guard over a real file and a real record, whose settings a test may change."""

    def __init__(self, root, record, clock):
        self.settings = OperatorSettings(local="passphrase")
        self.file = PassphraseFile(root / "operator.passphrase")
        self.record, self.clock, self.alarms = record, clock, []
        write_secret(root / "operator.passphrase", kept_hash())
        self.guard = PassphraseGuard(self.file, record, clock, lambda: self.settings, kept_hash())
        self.guard.on_security.append(self.alarms.append)

    def set(self, **fields):
        self.settings = self.settings.model_copy(update=fields)

    async def unlock(self, seat, passphrase=PASSPHRASE, reviewer=ANN):
        return await self.guard.unlock(seat, passphrase, reviewer)

    async def guess(self, seat, reviewer=ANN):
        with pytest.raises(NotPermitted) as refused:
            await self.unlock(seat, "some wrong words", reviewer)
        return str(refused.value)

    async def kinds(self):
        return [link.event.kind async for link in self.record.events()]


@pytest.fixture
def desk(tmp_path, store, clock):
    return Desk(tmp_path, store, clock)


def other_than_here():
    """A terminal that differs in one thing from the one that is unlocked."""
    return [
        replace(HERE, uid=1001),
        replace(HERE, tty=34817),
        replace(HERE, session=4243),
        replace(HERE, leader_started=99_001),
    ]


async def test_nobody_is_admitted_before_the_passphrase_and_this_terminal_is_after(desk):
    with pytest.raises(PassphraseNeeded):
        desk.guard.require(Seat(HERE))
    assert desk.guard.standing(Seat(HERE)) == {"passphrase": "needed"}
    told = await desk.unlock(Seat(HERE))
    assert told == {"passphrase": "remembered", "rememberedUntil": desk.clock.now() + 15 * MINUTE}
    desk.guard.require(Seat(HERE))
    assert "operator.unlocked" in await desk.kinds()


@pytest.mark.parametrize("terminal", other_than_here(), ids=["user", "tty", "session", "start"])
async def test_whatever_differs_is_another_terminal(desk, terminal):
    await desk.unlock(Seat(HERE))
    with pytest.raises(PassphraseNeeded):
        desk.guard.require(Seat(terminal))


async def test_what_has_no_terminal_cannot_be_unlocked_by_the_right_passphrase(desk):
    await desk.unlock(Seat(HERE))
    with pytest.raises(NotPermitted, match="no terminal"):
        await desk.unlock(Seat(None))
    with pytest.raises(NotPermitted, match="no terminal"):
        desk.guard.require(Seat(None))
    assert desk.guard.standing(Seat(None)) == {"passphrase": "no-terminal"}


@pytest.mark.parametrize("hands", ["both", "steady", "wall"])
async def test_the_time_is_fixed_and_ends_by_whichever_clock_is_first(desk, hands):
    await desk.unlock(Seat(HERE))
    desk.clock.advance(15 * MINUTE - 1)
    desk.guard.require(Seat(HERE))  # being used does not make it last longer
    if hands == "steady":
        desk.clock.wall -= MINUTE
    if hands == "wall":
        desk.clock.steady -= 60  # as in a suspended machine
    desk.clock.advance(1)
    with pytest.raises(PassphraseNeeded):
        desk.guard.require(Seat(HERE))


async def test_a_shorter_time_counts_at_once_and_a_longer_one_revives_nothing(desk):
    await desk.unlock(Seat(HERE))
    desk.clock.advance(2 * MINUTE)
    desk.set(remember_for=MINUTE)
    assert not desk.guard.admits(Seat(HERE))
    desk.set(remember_for=12 * 60 * MINUTE)
    assert desk.guard.admits(Seat(HERE))
    desk.clock.advance(13 * MINUTE)
    assert not desk.guard.admits(Seat(HERE))


async def test_zero_is_for_one_connection_and_not_for_ever(desk):
    desk.set(remember_for=0)
    seat = Seat(HERE)
    assert await desk.unlock(seat) == {"passphrase": "once"}
    desk.guard.require(seat)
    assert not desk.guard.admits(Seat(HERE))
    desk.clock.advance(LONGEST_ONCE_MS)
    assert not desk.guard.admits(seat)


async def test_to_forget_ends_terminals_and_single_connections_and_is_recorded_where_it_did(desk):
    assert (await desk.guard.forget(ANN))["forgotten"] == 0
    await desk.unlock(Seat(HERE))
    desk.set(remember_for=0)
    once = Seat(HERE)
    await desk.unlock(once)
    desk.set(remember_for=15 * MINUTE)
    assert (await desk.guard.forget(ANN))["forgotten"] == 1
    assert not desk.guard.admits(Seat(HERE))
    assert not desk.guard.admits(once)
    assert (await desk.kinds()).count("operator.forgotten") == 1


async def test_what_is_forgotten_while_the_passphrase_is_checked_stays_forgotten(desk, store):
    through = Meddled(store)
    guard = PassphraseGuard(desk.file, through, desk.clock, lambda: desk.settings, desk.file.load())

    async def forget(*_events):
        guard.forget_all()

    through.before["append"] = forget
    assert await guard.unlock(Seat(HERE), PASSPHRASE, ANN) == {"passphrase": "needed"}
    assert not guard.admits(Seat(HERE))


async def test_each_wrong_guess_makes_the_next_wait_longer_up_to_a_minute_and_never_for_good(desk):
    waits = []
    for _ in range(9):
        told = await desk.guess(Seat(HERE))
        waits.append(int(told.rpartition(" in ")[2].removesuffix(" s")))
        desk.clock.advance(waits[-1] * 1000)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    await desk.unlock(Seat(HERE))
    assert "next try counts in 1 s" in await desk.guess(Seat(HERE))  # a right one begins anew


async def test_while_the_delay_runs_even_the_right_passphrase_is_refused_and_told_how_long(desk):
    await desk.guess(Seat(HERE))
    desk.clock.advance(400)
    with pytest.raises(NotPermitted, match="try again in 1 s"):
        await desk.unlock(Seat(replace(HERE, session=77)))  # another terminal of the same user
    assert not desk.guard.admits(Seat(HERE))
    await desk.unlock(Seat(replace(HERE, uid=1001)), reviewer=BEA)
    desk.clock.advance(600)
    await desk.unlock(Seat(HERE))


async def test_guesses_at_the_same_time_are_one_guess(desk):
    told = await asyncio.gather(*(desk.guess(Seat(HERE)) for _ in range(20)))
    assert sum("not the operator's passphrase" in each for each in told) == 1
    assert (await desk.kinds()).count("operator.passphrase-wrong") == 1


async def test_a_guess_counts_though_its_sender_hangs_up_before_the_answer(desk):
    guess = asyncio.create_task(desk.unlock(Seat(HERE), "some wrong words"))
    await asyncio.sleep(0)
    guess.cancel()
    with pytest.raises(asyncio.CancelledError):
        await guess
    await desk.guard.close()
    with pytest.raises(NotPermitted, match="try again in"):
        await desk.unlock(Seat(HERE))


async def test_five_wrong_ones_in_a_row_are_told_to_the_operator(desk):
    for _ in range(5):
        assert not desk.alarms
        await desk.guess(Seat(HERE))
        desk.clock.advance(MINUTE)
    (alarm,) = desk.alarms
    assert (alarm.kind, alarm.actor) == ("security.wrong-passphrase", "person:cli:1000")
    assert alarm.data == {"name": "ann", "place": "pts/0", "inARow": 5}
    assert "security.wrong-passphrase" in await desk.kinds()


async def test_what_cannot_be_recorded_unlocks_nothing_and_still_counts_as_a_guess(desk, store):
    through = Meddled(store)
    guard = PassphraseGuard(desk.file, through, desk.clock, lambda: desk.settings, desk.file.load())

    async def full(*_events):
        raise StoreError("the disk is full")

    through.before["append"] = full
    with pytest.raises(StoreError):
        await guard.unlock(Seat(HERE), PASSPHRASE, ANN)
    assert not guard.admits(Seat(HERE))
    with pytest.raises(StoreError):
        await guard.unlock(Seat(HERE), "some wrong words", ANN)
    with pytest.raises(NotPermitted, match="try again in"):
        await guard.unlock(Seat(HERE), PASSPHRASE, ANN)


async def test_changing_it_needs_the_old_one_and_every_terminal_gives_the_new_one(desk):
    await desk.unlock(Seat(HERE))
    with pytest.raises(RequestError) as missing:
        await desk.guard.change(Seat(HERE), None, "another long one", ANN)
    assert missing.value.field == "old"
    with pytest.raises(NotPermitted, match="not the operator's"):
        await desk.guard.change(Seat(HERE), "some wrong words", "another long one", ANN)
    desk.clock.advance(1_000)
    assert desk.guard.admits(Seat(HERE))
    await desk.guard.change(Seat(HERE), PASSPHRASE, "another long one", ANN)
    assert not desk.guard.admits(Seat(HERE))
    await desk.guess(Seat(HERE))
    desk.clock.advance(1_000)
    await desk.unlock(Seat(HERE), "another long one")
    assert desk.file.matches(desk.file.load(), "another long one")


async def test_without_a_terminal_it_is_not_changed_by_who_knows_it(desk):
    with pytest.raises(NotPermitted, match="no terminal"):
        await desk.guard.change(Seat(None), PASSPHRASE, "another long one", ANN)


async def test_a_file_put_in_its_place_counts_for_nothing_while_the_daemon_runs(desk):
    desk.file.keep("chosen by an agent")
    with pytest.raises(NotPermitted):
        await desk.unlock(Seat(HERE), "chosen by an agent")
    desk.clock.advance(1_000)
    with pytest.raises(NotPermitted):
        await desk.guard.change(Seat(HERE), "chosen by an agent", "another long one", ANN)
    desk.clock.advance(2_000)
    await desk.unlock(Seat(HERE))


@pytest.mark.parametrize("new", ["", "        ", "7 chars", "x" * 1_001, "lone \udcff half"])
async def test_what_is_no_passphrase_is_not_set_and_not_repeated(desk, new):
    with pytest.raises(RequestError) as refused:
        await desk.guard.change(Seat(HERE), PASSPHRASE, new, ANN)
    assert refused.value.field == "passphrase"
    assert not new.strip() or new not in str(refused.value)
    await desk.unlock(Seat(HERE))


async def test_where_none_is_asked_for_everybody_with_the_token_is_admitted_and_one_can_be_set(desk):
    desk.set(local="token")
    desk.guard.require(Seat(None))
    assert desk.guard.standing(Seat(None)) == {}
    with pytest.raises(RequestError, match="not passphrase"):
        await desk.unlock(Seat(HERE))
    with pytest.raises(NotPermitted):
        await desk.guard.change(Seat(None), "some wrong words", "another long one", ANN)
    desk.clock.advance(1_000)
    await desk.guard.change(Seat(None), PASSPHRASE, "another long one", ANN)
    assert desk.file.matches(desk.file.load(), "another long one")


async def test_a_guard_without_a_hash_admits_nobody(desk, store):
    guard = PassphraseGuard(desk.file, store, desk.clock, lambda: desk.settings, None)
    for guess in ("", PASSPHRASE):
        with pytest.raises(NotPermitted):
            await guard.unlock(Seat(HERE), guess, ANN)
        desk.clock.advance(MINUTE)
    assert not guard.admits(Seat(HERE))


async def test_a_file_that_cannot_be_written_changes_nothing(desk, tmp_path):
    (tmp_path / ".operator.passphrase.new").mkdir()
    with pytest.raises(StartError, match="cannot be written"):
        await desk.guard.change(Seat(HERE), PASSPHRASE, "another long one", ANN)
    await desk.unlock(Seat(HERE))
