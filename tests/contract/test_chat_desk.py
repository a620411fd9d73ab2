"""The contract of ChatDesk: who may press and type what, and where, over a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adapters.stores.sqlite import open_store
from core.approvals.conversation import MOST_RECORDED, Conversation, Switches
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.service import Approvals
from core.model.allowlist import AlwaysOffer
from core.model.chat import Press, Typed, Verb
from core.model.principal import Reviewer, Sender
from core.model.request import Answer, Review, State

ALICE = Sender("telegram", "111", "Alice", "alice")
BOB = Sender("telegram", "222", "Bob", "bob")
MALLORY = Sender("telegram", "666", "Alice", "alice")
ROUTES = (
    Route("web", "", (), 120_000, "test"),
    Route("telegram", "-100", ("telegram:111",), 120_000, "test"),
    Route("telegram", "222", ("telegram:222",), 120_000, "test"),
)


class Chat:
    """A conversation over a store, with a lock that notes who threw it."""

    def __init__(self, store, clock):
        self.store, self.clock, self.locked_by = store, clock, []
        self.approvals = Approvals(Ledger(store), store, clock, lambda _request: ROUTES)
        switches = Switches(self._lock, self._status, self._claim, None, lambda: ("telegram:111",))
        self.desk = Conversation(self.approvals, store, clock, switches)

    async def _lock(self, reviewer):
        self.locked_by.append(reviewer.id)
        return "Locked."

    async def _claim(self, typed, code):
        return f"{code} from {typed.sender.id}"

    async def _status(self):
        return "1 waits"

    async def ask(self, request):
        return await self.approvals.ask(request)

    async def state(self, request):
        return (await self.store.request(request.id)).state

    async def record(self):
        return [link.event async for link in self.store.events()]

    async def security(self):
        return [event.kind for event in await self.record() if event.kind.startswith("security.")]


@pytest.fixture
async def chat(tmp_path, clock):
    async with open_store(tmp_path / "sayso.db") as store:
        yield Chat(store, clock)


def nonce_in(request, place):
    return next(copy.nonce for copy in request.copies if (copy.channel, copy.place) == ("telegram", place))


def press(request, sender=ALICE, place="-100", ref="7", verb=Verb.ALLOW_ONCE, nonce=None):
    return Press(
        sender,
        place,
        ref,
        str(verb.value if isinstance(verb, Verb) else verb),
        nonce or nonce_in(request, place),
    )


async def test_an_approver_presses_in_the_chat_that_was_asked(chat, make_request):
    request = await chat.ask(make_request())
    reply = await chat.desk.press(press(request))
    assert "Allowed once by Alice (telegram:111)" in reply.text
    assert await chat.state(request) is State.APPROVED
    assert await chat.security() == []


async def test_every_copy_carries_a_nonce_of_its_own(chat, make_request):
    request = await chat.ask(make_request())
    nonces = [copy.nonce for copy in request.copies]
    assert len(set(nonces)) == 3
    assert all(len(nonce) == 22 for nonce in nonces)


@pytest.mark.parametrize(
    "sender",
    [
        MALLORY,
        BOB,
        replace(ALICE, channel="discord"),
        replace(ALICE, id="0111"),
        replace(ALICE, id="111 "),
        replace(ALICE, id="1111"),
        replace(ALICE, id=""),
        replace(MALLORY, username="111", tag="111", address="111", phone="111"),
    ],
)
async def test_an_outsider_is_told_so_and_nothing_more_and_it_is_recorded(chat, make_request, sender):
    request = await chat.ask(make_request())
    reply = await chat.desk.press(press(request, sender))
    assert await chat.state(request) is State.WAITING
    assert len(await chat.security()) == 1
    assert request.canonical not in reply.text
    assert request.id[:8] not in reply.text


@pytest.mark.parametrize("place", ["-101", "222", "", "-100/5"])
async def test_a_button_counts_only_in_the_chat_it_was_posted_in(chat, make_request, place):
    request = await chat.ask(make_request())
    nonce = nonce_in(request, "-100")
    await chat.desk.press(press(request, place=place, nonce=nonce))
    assert await chat.state(request) is State.WAITING
    assert await chat.security() == ["security.foreign-button"]


async def test_a_button_counts_only_on_the_message_it_was_posted_with(chat, make_request):
    request = await chat.ask(make_request())
    for message in await chat.store.due("telegram", chat.clock.now(), 9):
        await chat.store.delivered(message, f"message-in-{message.place}")
    await chat.desk.press(press(request, ref="another-message"))
    assert await chat.state(request) is State.WAITING
    await chat.desk.press(press(request, ref="message-in--100"))
    assert await chat.state(request) is State.APPROVED


async def test_a_press_on_a_copy_whose_delivery_was_unclear_tells_its_ref(chat, make_request):
    request = await chat.ask(make_request())
    await chat.desk.press(press(request, ref="41"))
    refs = {kept.copy.place: kept.ref for kept in await chat.store.copies(request.id)}
    assert refs["-100"] == "41"


@pytest.mark.parametrize("nonce", ["A" * 22, "x", "'; --", "\udc80", "%" * 22])
async def test_a_guessed_nonce_means_nothing(chat, make_request, nonce):
    request = await chat.ask(make_request())
    reply = await chat.desk.press(press(request, nonce=nonce))
    assert "not kept here" in reply.text
    assert await chat.state(request) is State.WAITING


@pytest.mark.parametrize("verb", ["", "x", "oo", "O", "allow-once"])
async def test_an_unknown_verb_decides_nothing(chat, make_request, verb):
    request = await chat.ask(make_request())
    await chat.desk.press(press(request, verb=verb))
    assert await chat.state(request) is State.WAITING


async def test_the_second_press_is_told_what_stands(chat, make_request):
    request = await chat.ask(make_request())
    await chat.desk.press(press(request, verb=Verb.DENY))
    reply = await chat.desk.press(press(request))
    assert "Denied by Alice" in reply.text
    assert await chat.state(request) is State.DENIED


async def test_view_all_shows_the_whole_card_to_approvers_alone(chat, make_request):
    request = await chat.ask(make_request(canonical="/usr/bin/printf " + "x" * 9_000))
    reply = await chat.desk.press(press(request, verb=Verb.VIEW_ALL))
    for part in (request.canonical, request.cwd, "exec.allowlist-miss", request.id):
        assert part in reply.document
    assert await chat.state(request) is State.WAITING
    assert (await chat.desk.press(press(request, MALLORY, verb=Verb.VIEW_ALL))).document is None


async def test_always_is_refused_where_it_is_not_offered(chat, make_request):
    request = await chat.ask(make_request(always=AlwaysOffer(why="sudo is never remembered")))
    reply = await chat.desk.press(press(request, verb=Verb.ALLOW_ALWAYS))
    assert "sudo is never remembered" in reply.text
    assert await chat.state(request) is State.WAITING


async def test_a_hundred_presses_at_once_settle_it_once(chat, make_request):
    request = await chat.ask(make_request())
    await asyncio.gather(*(chat.desk.press(press(request)) for _ in range(100)))
    approvals = [event for event in await chat.record() if event.kind == "approval.approved"]
    assert len(approvals) == 1


def typed(text, sender=ALICE, place="-100", *, direct=False):
    return Typed(sender, place, text, direct, "sayso_bot")


async def test_an_approver_types_the_answer(chat, make_request):
    request = await chat.ask(make_request())
    reply = await chat.desk.typed(typed(f"/approve {request.id[:8]}"))
    assert "Allowed once by Alice" in reply.text


async def test_a_denial_carries_its_reason(chat, make_request):
    request = await chat.ask(make_request())
    await chat.desk.typed(typed(f"/deny {request.id[:8]} use the cache"))
    assert (await chat.store.request(request.id)).resolution.reason == "use the cache"


async def test_an_approver_may_answer_in_a_direct_conversation(chat, make_request):
    request = await chat.ask(make_request())
    await chat.desk.typed(typed(f"/approve {request.id[:8]}", place="111", direct=True))
    assert await chat.state(request) is State.APPROVED


async def test_an_approver_of_one_chat_may_not_answer_in_another(chat, make_request):
    request = await chat.ask(make_request())
    await chat.desk.typed(typed(f"/approve {request.id[:8]}", BOB))
    await chat.desk.typed(typed(f"/approve {request.id[:8]}", place="-200"))
    assert await chat.state(request) is State.WAITING


async def test_an_outsider_learns_nothing_from_ids(chat, make_request):
    request = await chat.ask(make_request())
    known = await chat.desk.typed(typed(f"/approve {request.id[:8]}", MALLORY))
    unknown = await chat.desk.typed(typed("/approve 99999999", MALLORY))
    assert known == unknown
    assert await chat.state(request) is State.WAITING
    assert await chat.security() == ["security.outsider"] * 2


async def test_pending_lists_only_what_the_sender_may_decide(chat, make_request):
    request = await chat.ask(make_request())
    assert request.id[:8] in (await chat.desk.typed(typed("/pending"))).text
    for sender in (MALLORY, BOB):
        assert request.id[:8] not in (await chat.desk.typed(typed("/pending", sender))).text


async def test_the_lock_is_for_those_in_allow_from(chat):
    await chat.desk.typed(typed("/sayso lock", BOB))
    assert chat.locked_by == []
    assert (await chat.desk.typed(typed("/sayso lock"))).text == "Locked."
    assert chat.locked_by == ["111"]


@pytest.mark.parametrize("text", ["hello", "/start", "/approve@other_bot 12345678", "approve 12345678", ""])
async def test_what_is_no_command_of_ours_gets_no_answer(chat, text):
    assert await chat.desk.typed(typed(text)) is None


async def test_a_login_still_decides_for_the_operator(chat, make_request):
    request = await chat.ask(make_request())
    review = Review(request.id, Answer.DENY, Reviewer("web", "operator", "operator"))
    assert (await chat.desk.review(review)).accepted


async def test_one_outsider_cannot_flood_the_record(chat):
    typed = Typed(MALLORY, "-100", "/approve deadbeef", direct=False)
    replies = [await chat.desk.typed(typed) for _ in range(MOST_RECORDED + 20)]
    assert len({reply.text for reply in replies}) == 1
    assert len(await chat.security()) == MOST_RECORDED
    await chat.desk.typed(Typed(BOB, "-100", "/sayso lock", direct=False))
    assert len(await chat.security()) == MOST_RECORDED + 1


async def test_who_sits_at_a_local_channel_may_type_answers_to_what_is_asked_there(chat, make_request):
    request = await chat.ask(make_request())
    line = f"/approve {request.id[:8]}"
    elsewhere = Typed(Sender("terminal", "0", "root"), "", line, direct=True)
    assert "no request with this id" in (await chat.desk.typed(elsewhere)).text
    assert await chat.state(request) is State.WAITING
    here = Typed(Sender("web", "operator", "operator"), "", line, direct=True)
    assert "Allowed once by operator" in (await chat.desk.typed(here)).text
    assert await chat.state(request) is State.APPROVED


@pytest.mark.parametrize("verb", [Verb.ALLOW_ONCE, Verb.DENY])
async def test_who_stops_being_an_approver_while_the_press_is_looked_at_decides_nothing(
    chat, make_request, verb
):
    request = await chat.ask(make_request())
    note_ref = chat.store.note_ref

    async def meanwhile(copy, ref):
        chat.approvals.routes = lambda _request: (ROUTES[0], replace(ROUTES[1], approvers=("telegram:222",)))
        await note_ref(copy, ref)

    chat.store.note_ref = meanwhile
    reply = await chat.desk.press(press(request, verb=verb))
    assert "any more" in reply.text
    assert await chat.state(request) is State.WAITING
