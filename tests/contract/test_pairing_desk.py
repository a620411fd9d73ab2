"""The contracts of PairingDesk and PairingStore: who is let in, by whom, and how long, over a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.approvals.invitations import (
    KEPT_MS,
    MOST_KEPT,
    MOST_WAITING,
    OPEN_MS,
)
from core.approvals.notices import security_notice
from core.approvals.pairing import (
    CLAIMED,
    LOCKED,
    MOST_TRIES,
    NOT_IN_PUBLIC,
    REFUSED,
    SENT_TWICE,
    TOO_MANY,
    TRIES_WINDOW_S,
    Pairing,
)
from core.approvals.tries import MOST_SENDERS
from core.config import ExecApprovals, NoticeSettings
from core.errors import RequestError, StoreError
from core.model.chat import Typed
from core.model.pairing import PairedPerson
from core.model.principal import Reviewer, Sender
from core.model.request import AuditEvent

OPERATOR = Reviewer("cli", "0", "root")
ANN = Sender("telegram", "111", "Ann", "ann")
TWIN = Sender("telegram", "666", "Ann", "ann_")
SETTINGS = {
    "mode": "both",
    "approvers": ["telegram:9"],
    "targets": [
        {"channel": "telegram", "to": "channel:-100"},
        {"channel": "discord", "to": "channel:5"},
    ],
}


def place(_channel, to):
    if to.startswith("@"):
        raise ValueError(f"{to!r} is a name")
    return to.split(":", 1)[-1]


class FailingStore:
    """A store in front of another, some of whose methods fail while they are named."""

    def __init__(self, store):
        self._store, self.failing, self.held, self.reached = store, set(), None, asyncio.Event()

    def __getattr__(self, name):
        if name in self.failing:
            return self._fail
        return self._held_put if name == "put_paired" and self.held else getattr(self._store, name)

    async def _fail(self, *_args, **_kwargs):
        raise StoreError("the disk is full; nothing was kept")

    async def _held_put(self, *args):
        self.reached.set()
        await self.held.wait()
        await self._store.put_paired(*args)


class Doorway:
    """The desk, and people who send codes."""

    def __init__(self, store, clock, settings):
        self.store, self.clock = FailingStore(store), clock
        self.opened, self.heard, self.nudged = ["telegram", "discord", "web"], [], []
        self.settings = ExecApprovals.model_validate(settings)
        self.desk = self.again()

    def again(self):
        """Make the desk anew, as after a restart."""
        desk = Pairing(self.store, self.clock, lambda: self.settings, place, self.opened)
        desk.on_security.append(self.heard.append)
        desk.on_post.append(lambda: self.nudged.append(True))
        return desk

    async def invite(self, route=None, channel="telegram"):
        made = await self.desk.invite(channel, route)
        return made["id"], made["code"]

    async def send(self, code, who=ANN, *, direct=True):
        return await self.desk.claim(Typed(who, who.id if direct else "-100", f"/pair {code}", direct), code)

    async def state(self, invitation):
        return (await self.desk.invitation(invitation))["state"]

    async def confirm(self, invitation, *, accepted=True):
        return await self.desk.confirm(invitation, OPERATOR, accepted=accepted)

    async def let_in(self, who=ANN, route=None):
        invitation, code = await self.invite(route)
        assert await self.send(code, who) == CLAIMED
        await self.confirm(invitation)

    async def told(self):
        due = await self.store.due("telegram", self.clock.now(), 99)
        return [(message.place, message.notice.text) for message in due]

    async def record(self):
        return [link.event async for link in self.store.events()]

    async def kinds(self):
        return [event.kind for event in await self.record()]


@pytest.fixture
def doorway(store, clock):
    return Doorway(store, clock, SETTINGS)


async def test_a_code_a_claim_and_a_yes_let_a_person_in(doorway):
    invitation, code = await doorway.invite()
    assert len(code) == 16
    assert int(code, 16) >= 0
    assert await doorway.state(invitation) == "open"
    assert await doorway.send(code) == CLAIMED
    told = await doorway.desk.invitation(invitation)
    assert told["person"] == {"channel": "telegram", "id": "111", "name": "Ann", "username": "ann"}
    assert doorway.desk.paired == ()
    assert (await doorway.confirm(invitation))["accepted"]
    assert await doorway.state(invitation) == "confirmed"
    (person,) = doorway.desk.paired
    assert person == PairedPerson("telegram", "111", "Ann", "", doorway.clock.now())
    assert await doorway.store.paired() == (person,)
    (event,) = [event for event in await doorway.record() if event.kind == "person.paired"]
    assert event.actor == "person:cli:0"
    assert event.data == {"channel": "telegram", "id": "111", "name": "Ann", "route": ""}
    assert [where for where, _ in await doorway.told()] == ["111"]
    assert "let you in" in (await doorway.told())[0][1]
    assert doorway.nudged == [True]


async def test_nobody_is_let_in_by_a_claim_alone(doorway):
    invitation, code = await doorway.invite()
    with pytest.raises(RequestError, match="nobody has sent the code"):
        await doorway.confirm(invitation)
    await doorway.send(code)
    assert await doorway.store.paired() == ()


async def test_a_no_turns_the_person_away_and_ends_the_code(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code)
    assert not (await doorway.confirm(invitation, accepted=False))["accepted"]
    assert await doorway.store.paired() == ()
    assert "did not let you in" in (await doorway.told())[0][1]
    assert await doorway.send(code) == REFUSED
    with pytest.raises(RequestError, match="withdrawn"):
        await doorway.confirm(invitation)


async def test_a_code_that_nobody_sent_can_be_withdrawn(doorway):
    invitation, code = await doorway.invite()
    await doorway.confirm(invitation, accepted=False)
    assert await doorway.state(invitation) == "refused"
    assert await doorway.send(code) == REFUSED
    assert await doorway.told() == []


async def test_a_code_counts_once(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code)
    await doorway.confirm(invitation)
    assert await doorway.send(code, TWIN) == REFUSED
    with pytest.raises(RequestError, match="let in already"):
        await doorway.confirm(invitation)
    with pytest.raises(RequestError, match="let in already"):
        await doorway.confirm(invitation, accepted=False)
    assert len(await doorway.store.paired()) == 1
    assert (await doorway.kinds()).count("person.paired") == 1


async def test_the_same_person_may_send_the_code_again(doorway):
    invitation, code = await doorway.invite()
    assert [await doorway.send(code), await doorway.send(code.upper())] == [CLAIMED, CLAIMED]
    assert await doorway.state(invitation) == "claimed"
    assert doorway.heard == []


async def test_a_code_that_two_people_send_lets_nobody_in(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code)
    assert await doorway.send(code, TWIN) == SENT_TWICE
    assert await doorway.state(invitation) == "void"
    with pytest.raises(RequestError, match="others know the code"):
        await doorway.confirm(invitation)
    assert await doorway.store.paired() == ()
    assert await doorway.told() == [("111", SENT_TWICE)]
    assert [event.kind for event in doorway.heard] == ["security.code-shown"]


async def test_of_a_hundred_who_send_the_code_at_once_nobody_is_let_in_unseen(doorway):
    invitation, code = await doorway.invite()
    crowd = [replace(TWIN, id=str(number)) for number in range(1, 101)]
    answers = await asyncio.gather(*(doorway.send(code, who) for who in crowd))
    assert answers.count(CLAIMED) == 1
    assert await doorway.state(invitation) == "void"


@pytest.mark.parametrize("sent_before", [False, True])
async def test_a_code_that_was_shown_in_a_group_counts_no_more(doorway, sent_before):
    invitation, code = await doorway.invite()
    if sent_before:
        await doorway.send(code)
    assert await doorway.send(code, direct=False) == NOT_IN_PUBLIC
    assert await doorway.send(code) == REFUSED
    assert await doorway.state(invitation) == "void"
    assert (await doorway.kinds())[:1] == ["security.code-shown"]


async def test_a_code_shown_by_somebody_who_may_try_no_more_is_ended_too(doorway):
    invitation, code = await doorway.invite()
    for _ in range(MOST_TRIES):
        await doorway.send("0" * 16)
    await doorway.send(code, direct=False)
    assert await doorway.state(invitation) == "void"


async def test_a_code_counts_in_its_channel_alone(doorway):
    invitation, code = await doorway.invite()
    assert await doorway.send(code, replace(ANN, channel="discord")) == REFUSED
    assert await doorway.state(invitation) == "open"
    await doorway.send(code, replace(ANN, channel="discord"), direct=False)
    assert await doorway.state(invitation) == "void"


@pytest.mark.parametrize("wrong", ["", "0" * 16, "é" * 8, "x" * 10_000])
async def test_a_wrong_code_is_refused_and_recorded_without_the_code(doorway, wrong):
    await doorway.invite()
    assert await doorway.send(wrong) == REFUSED
    (event,) = doorway.heard
    assert event.kind == "security.wrong-code"
    assert event.actor == "person:telegram:111"
    assert event.data == {"name": "Ann", "place": "111"}
    assert "pairing code that does not count" in security_notice(event, NoticeSettings()).text
    assert await doorway.kinds() == ["security.wrong-code"]


async def test_a_near_miss_is_no_code(doorway):
    invitation, code = await doorway.invite()
    near = code[:-1] + ("0" if code[-1] != "0" else "1")
    for miss in (near, code[:-1], code + "0", f" {code}"):
        assert await doorway.send(miss) == REFUSED
    assert await doorway.state(invitation) == "open"


async def test_after_so_many_wrong_codes_the_right_one_counts_no_more_for_an_hour(doorway):
    for _ in range(MOST_TRIES):
        assert await doorway.send("0" * 16) == REFUSED
    invitation, code = await doorway.invite()
    assert await doorway.send(code) == TOO_MANY
    assert await doorway.send("0" * 16) == TOO_MANY
    assert await doorway.state(invitation) == "open"
    assert len(await doorway.record()) == MOST_TRIES
    assert await doorway.send(code, replace(ANN, id="112")) == CLAIMED
    doorway.clock.advance(int(TRIES_WINDOW_S * 1000) - 1)
    assert await doorway.send("0" * 16) == TOO_MANY
    doorway.clock.advance(1)
    assert await doorway.send("0" * 16) == REFUSED


async def test_many_wrong_codes_at_once_are_counted_too(doorway):
    answers = await asyncio.gather(*(doorway.send("0" * 16) for _ in range(50)))
    assert answers.count(REFUSED) == MOST_TRIES
    assert len(await doorway.record()) == MOST_TRIES


async def test_a_clock_that_is_set_gives_no_tries_back(doorway):
    for _ in range(MOST_TRIES):
        await doorway.send("0" * 16)
    doorway.clock.wall += 10**10
    assert await doorway.send("0" * 16) == TOO_MANY
    doorway.clock.wall -= 10**11
    assert await doorway.send("0" * 16) == TOO_MANY


async def test_a_crowd_fills_neither_memory_nor_the_record(doorway):
    crowd = [replace(TWIN, id=str(number)) for number in range(MOST_SENDERS + 50)]
    for who in crowd:
        await doorway.send("0" * 16, who)
    assert len(await doorway.record()) == MOST_SENDERS
    assert await doorway.send("0" * 16, replace(ANN, id="new")) == TOO_MANY
    doorway.clock.advance(int(TRIES_WINDOW_S * 1000))
    assert await doorway.send("0" * 16, replace(ANN, id="new")) == REFUSED


async def test_a_code_expires(doorway):
    invitation, code = await doorway.invite()
    doorway.clock.advance(OPEN_MS - 1)
    assert await doorway.state(invitation) == "open"
    doorway.clock.advance(1)
    assert await doorway.state(invitation) == "expired"
    assert await doorway.send(code) == REFUSED


@pytest.mark.parametrize("jump", ["the wall clock is set back", "the machine slept"])
async def test_no_jump_of_a_clock_makes_a_code_live_longer(doorway, jump):
    invitation, code = await doorway.invite()
    if jump == "the machine slept":
        doorway.clock.wall += OPEN_MS
    else:
        doorway.clock.wall -= 10**9
        doorway.clock.steady += OPEN_MS / 1000
    assert await doorway.state(invitation) == "expired"
    assert await doorway.send(code) == REFUSED


async def test_the_operator_has_the_same_time_again_and_no_more(doorway):
    invitation, code = await doorway.invite()
    doorway.clock.advance(OPEN_MS - 1)
    await doorway.send(code)
    doorway.clock.advance(OPEN_MS - 1)
    assert await doorway.state(invitation) == "claimed"
    doorway.clock.advance(1)
    with pytest.raises(RequestError, match="expired"):
        await doorway.confirm(invitation)
    assert await doorway.store.paired() == ()


async def test_so_many_codes_wait_at_most_and_those_that_are_over_leave_room(doorway):
    ids = [(await doorway.invite())[0] for _ in range(MOST_WAITING)]
    with pytest.raises(RequestError, match="out already"):
        await doorway.invite()
    await doorway.confirm(ids[0], accepted=False)
    await doorway.invite()


async def test_what_is_over_is_forgotten_at_last(doorway):
    first, _ = await doorway.invite()
    for _ in range(2 * MOST_KEPT):
        invitation, _ = await doorway.invite()
        await doorway.confirm(invitation, accepted=False)
    assert await doorway.state(first) == "open"
    assert len(doorway.desk._invitations._kept) <= MOST_KEPT
    doorway.clock.advance(OPEN_MS + KEPT_MS)
    await doorway.invite()
    with pytest.raises(RequestError, match="over long ago"):
        await doorway.state(first)
    assert len(doorway.desk._invitations._kept) == 1


async def test_a_restart_ends_every_code_and_nobody_who_was_let_in(doorway):
    await doorway.let_in()
    invitation, code = await doorway.invite()
    doorway.desk = doorway.again()
    await doorway.desk.load()
    assert await doorway.send(code, TWIN) == REFUSED
    with pytest.raises(RequestError, match="started again"):
        await doorway.confirm(invitation)
    assert [person.id for person in doorway.desk.paired] == ["111"]


async def test_while_locked_nobody_is_let_in(doorway, clock):
    invitation, code = await doorway.invite()
    second, claimed = await doorway.invite()
    await doorway.send(claimed, TWIN)
    await doorway.store.set_locked(locked=True, event=AuditEvent(clock.now(), "daemon.locked", "x"))
    assert await doorway.send(code) == LOCKED
    assert await doorway.send("0" * 16) == REFUSED
    assert await doorway.state(invitation) == "open"
    with pytest.raises(RequestError, match="sayso unlock"):
        await doorway.confirm(second)
    with pytest.raises(RequestError, match="sayso unlock"):
        await doorway.invite()
    assert await doorway.store.paired() == ()
    await doorway.store.set_locked(locked=False, event=AuditEvent(clock.now(), "daemon.unlocked", "x"))
    await doorway.confirm(second)
    assert len(await doorway.store.paired()) == 1


async def test_while_locked_rights_can_be_taken_back(doorway, clock):
    await doorway.let_in()
    await doorway.store.set_locked(locked=True, event=AuditEvent(clock.now(), "daemon.locked", "x"))
    await doorway.desk.unpair("telegram", "111", "", OPERATOR)
    assert doorway.desk.paired == ()


async def test_what_could_not_be_kept_does_not_count_and_can_be_tried_again(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code)
    doorway.store.failing.add("put_paired")
    with pytest.raises(StoreError):
        await doorway.confirm(invitation)
    assert doorway.desk.paired == ()
    assert await doorway.state(invitation) == "claimed"
    doorway.store.failing.clear()
    assert (await doorway.confirm(invitation))["accepted"]


async def test_a_message_that_could_not_be_kept_undoes_nothing(doorway):
    doorway.store.failing.add("post")
    await doorway.let_in()
    assert [person.id for person in doorway.desk.paired] == ["111"]


async def test_a_wrong_code_is_counted_although_it_could_not_be_recorded(doorway):
    doorway.store.failing.add("append")
    for _ in range(MOST_TRIES):
        with pytest.raises(StoreError):
            await doorway.send("0" * 16)
    assert await doorway.send("0" * 16) == TOO_MANY


async def test_two_who_confirm_at_once_let_one_person_in_once(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code)
    answers = await asyncio.gather(
        *(doorway.confirm(invitation, accepted=accepted) for accepted in (True, True, False)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [dict, RequestError, RequestError]
    assert (await doorway.kinds()).count("person.paired") == 1


async def test_an_operator_who_hangs_up_meanwhile_leaves_nothing_half_done(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code)
    doorway.store.held = asyncio.Event()
    confirming = asyncio.create_task(doorway.confirm(invitation))
    await asyncio.wait_for(doorway.store.reached.wait(), 30)
    confirming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await confirming
    doorway.store.held.set()
    await doorway.desk.close()
    assert doorway.desk.paired == await doorway.store.paired() != ()


async def test_a_person_is_let_in_for_a_target_by_any_of_its_names(doorway):
    await doorway.let_in(route="channel:-100")
    await doorway.let_in(TWIN, route="-100")
    assert [(person.id, person.route) for person in doorway.desk.paired] == [("111", "-100"), ("666", "-100")]
    await doorway.desk.unpair("telegram", "111", "channel:-100", OPERATOR)
    assert [person.id for person in doorway.desk.paired] == ["666"]


@pytest.mark.parametrize(
    ("channel", "route", "told", "field"),
    [
        ("telegram", "channel:-200", r"no target of telegram .*there: channel:-100", "route"),
        ("telegram", "channel:5", "no target", "route"),
        ("telegram", "@group", "is a name", "route"),
        ("telegram", "", "no target", "route"),
        ("slack", None, "not open", "channel"),
        ("web", None, "needs no pairing", "channel"),
        ("", None, "not open", "channel"),
    ],
)
async def test_what_is_no_channel_or_no_target_gets_no_code(doorway, channel, route, told, field):
    with pytest.raises(RequestError, match=told) as refused:
        await doorway.desk.invite(channel, route)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("change", "told"), [({"mode": "session"}, "mode is session"), ({"enabled": False}, "enabled is false")]
)
async def test_a_code_that_would_change_nothing_is_not_handed_out(store, clock, change, told):
    doorway = Doorway(store, clock, {**SETTINGS, **change})
    with pytest.raises(RequestError, match=told):
        await doorway.desk.invite("telegram", "channel:-100")


async def test_letting_somebody_in_again_replaces_them(doorway):
    await doorway.let_in()
    doorway.clock.advance(1_000)
    await doorway.let_in(replace(ANN, name="Ann B."))
    (person,) = await doorway.desk.people()
    assert (person["name"], person["pairedAt"]) == ("Ann B.", doorway.clock.now())
    assert len(await doorway.store.paired()) == 1


async def test_rights_are_taken_back_for_one_place_at_a_time(doorway):
    await doorway.let_in()
    await doorway.let_in(route="-100")
    for wrong in (("telegram", "112", ""), ("discord", "111", ""), ("telegram", "111", "-200")):
        with pytest.raises(RequestError, match="people list"):
            await doorway.desk.unpair(*wrong, OPERATOR)
    assert "may not decide" in (await doorway.desk.unpair("telegram", "111", "", OPERATOR))["text"]
    assert [person.route for person in doorway.desk.paired] == ["-100"]
    assert [person.route for person in await doorway.store.paired()] == ["-100"]
    with pytest.raises(RequestError, match="people list"):
        await doorway.desk.unpair("telegram", "111", "", OPERATOR)
    assert (await doorway.kinds()).count("person.unpaired") == 1


async def test_rights_that_could_not_be_taken_back_for_good_are_not_said_to_be(doorway):
    await doorway.let_in()
    doorway.store.failing.add("unpair")
    with pytest.raises(StoreError):
        await doorway.desk.unpair("telegram", "111", "", OPERATOR)
    assert doorway.desk.paired == await doorway.store.paired() != ()


async def test_a_name_is_untrusted_text(doorway):
    invitation, code = await doorway.invite()
    await doorway.send(code, replace(ANN, name="Ann\u202e\x1b[2J\n" + "x" * 5_000, username="a\u200bb"))
    person = (await doorway.desk.invitation(invitation))["person"]
    assert len(person["name"]) < 200
    assert all(character.isprintable() for character in person["name"] + person["username"])
    await doorway.confirm(invitation)
    assert all(character.isprintable() for character in doorway.desk.paired[0].name)


async def test_the_code_is_kept_nowhere(doorway, tmp_path):
    invitation, code = await doorway.invite()
    assert code not in repr(doorway.desk._invitations.get(invitation))
    await doorway.send(code, direct=False)
    _, second = await doorway.invite()
    await doorway.send(second)
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"security.code-shown" in files
    assert code.encode() not in files
    assert second.encode() not in files


async def test_the_pairing_store_keeps_people_by_channel_id_and_route(open_any_store):
    event = AuditEvent(1, "person.paired", "x")
    people = [
        PairedPerson("telegram", "1", "Ann", "", 3),
        PairedPerson("telegram", "1", "Ann", "-100", 2),
        PairedPerson("discord", "1", "Ann", "", 1),
    ]
    async with open_any_store() as store:
        for person in people:
            await store.put_paired(person, event)
        await store.put_paired(replace(people[0], name="Anna"), event)
    async with open_any_store() as store:
        assert await store.paired() == (people[2], people[1], replace(people[0], name="Anna"))
        assert await store.unpair(people[0], AuditEvent(2, "person.unpaired", "x"))
        assert not await store.unpair(people[0], AuditEvent(3, "person.unpaired", "x"))
        assert await store.paired() == (people[2], people[1])
        kinds = [link.event.kind async for link in store.events()]
        assert kinds == ["person.paired"] * 4 + ["person.unpaired"]
