"""How far an answer may go differs per place: cards offer only that, and nothing else is taken there."""

from __future__ import annotations

import pytest

from adapters.stores.sqlite import open_store
from core.approvals.conversation import Conversation, Switches
from core.approvals.courier import Courier
from core.approvals.ledger import Ledger
from core.approvals.routes import Route
from core.approvals.rules import Rules
from core.approvals.service import Approvals
from core.approvals.terms import Terms
from core.model.chat import Press, Typed, Verb
from core.model.principal import Reviewer, Sender
from core.model.request import Answer, Review, State

ALICE = Sender("telegram", "111", "Alice")
BOB = Sender("telegram", "222", "Bob")
MINUTES = 60_000
NARROW = Terms(
    15 * MINUTES, False, "approvals.exec.targets[0].maxDuration", "approvals.exec.targets[0].allowAlways"
)
GROUP = Route("telegram", "-100", ("id:111", "id:222"), 120_000, "test", terms=NARROW)
OWN = Route("telegram", "111", ("id:111",), 120_000, "test")
PAGE = Route("web", "", (), 120_000, "test")


class Chat:
    """Notes the cards that it is given."""

    name, keeps_copies = "telegram", True

    def __init__(self):
        self.cards = {}

    async def post(self, card, place, _nonce):
        self.cards[place] = card
        return f"message in {place}"


class Desk:
    def __init__(self, store, clock):
        self.store, self.clock, self.rules = store, clock, Rules()
        self.approvals = Approvals(
            Ledger(store), store, clock, lambda _request: (GROUP, OWN, PAGE), (), lambda: self.rules
        )
        self.chat = Conversation(self.approvals, store, clock, Switches(None, None, None, None))

    async def pressed(self, request, place, verb, for_ms=None, who=ALICE):
        nonce = next(copy.nonce for copy in request.copies if copy.place == place)
        return await self.chat.press(Press(who, place, "1", verb.value, nonce, for_ms))

    async def typed(self, text, place, who=ALICE):
        return await self.chat.typed(Typed(who, place, text, direct=place == who.id))

    async def state(self, request):
        return (await self.store.request(request.id)).state


@pytest.fixture
async def desk(tmp_path, clock):
    async with open_store(tmp_path / "sayso.db") as store:
        yield Desk(store, clock)


async def test_each_copy_offers_what_its_place_allows(desk, make_request):
    await desk.approvals.ask(make_request())
    chat = Chat()
    courier = Courier(chat, desk.store, desk.approvals, desk.clock)
    for message in await desk.store.due("telegram", desk.clock.now(), 9):
        await courier._send(message)
    assert not chat.cards["-100"].offers_always
    assert "targets[0].allowAlways is false" in chat.cards["-100"].always_why
    assert chat.cards["-100"].durations == (15 * MINUTES,)
    assert chat.cards["111"].offers_always
    assert len(chat.cards["111"].durations) == 3


@pytest.mark.parametrize(
    ("verb", "for_ms", "why"),
    [
        (Verb.ALLOW_ALWAYS, None, "Always is not offered here: approvals.exec.targets[0].allowAlways"),
        (Verb.ALLOW_FOR, 15 * MINUTES + 1, "at most 15 min here (approvals.exec.targets[0].maxDuration)"),
        (Verb.ALLOW_FOR, 60 * MINUTES, "at most 15 min here"),
    ],
)
async def test_a_decision_that_is_not_offered_in_a_place_is_refused_there_and_says_why(
    desk, make_request, verb, for_ms, why
):
    request = await desk.approvals.ask(make_request())
    assert why in (await desk.pressed(request, "-100", verb, for_ms)).text
    assert await desk.state(request) is State.WAITING
    assert "Allowed" in (await desk.pressed(request, "111", verb, for_ms)).text
    assert await desk.state(request) is State.APPROVED


async def test_what_the_place_offers_is_taken_there(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.pressed(request, "-100", Verb.ALLOW_FOR, 15 * MINUTES, BOB)
    assert await desk.state(request) is State.APPROVED


@pytest.mark.parametrize("words", ["always", "for 1h"])
async def test_a_command_is_bound_like_the_buttons_of_its_place(desk, make_request, words):
    request = await desk.approvals.ask(make_request())
    reply = await desk.typed(f"/approve {request.id} {words}", "-100")
    assert "here" in reply.text
    assert await desk.state(request) is State.WAITING


@pytest.mark.parametrize("words", ["always", "for 1h"])
async def test_a_command_to_the_bot_alone_goes_no_further_than_where_its_sender_was_asked(
    desk, make_request, words
):
    request = await desk.approvals.ask(make_request())
    await desk.typed(f"/approve {request.id} {words}", "222", BOB)
    assert await desk.state(request) is State.WAITING
    await desk.typed(f"/approve {request.id} {words}", "111", ALICE)
    assert await desk.state(request) is State.APPROVED


@pytest.mark.parametrize(
    "who",
    [
        Reviewer("web", "operator", "operator"),
        Reviewer("cli", "0", "root"),
        Reviewer("terminal", "0", "root"),
    ],
)
async def test_page_terminal_and_command_line_follow_the_general_setting(desk, make_request, who):
    request = await desk.approvals.ask(make_request())
    desk.rules = Rules(terms=Terms(10 * MINUTES, allow_always=False))
    card = await desk.approvals.card(request.id)
    assert (card.offers_always, card.durations) == (False, (10 * MINUTES,))
    for answer, ms in ((Answer.ALLOW_ALWAYS, None), (Answer.ALLOW_FOR, 11 * MINUTES)):
        refused = await desk.approvals.review(Review(request.id, answer, who, for_ms=ms))
        assert not refused.accepted
        assert "approvals.exec." in refused.text
    assert (
        await desk.approvals.review(Review(request.id, Answer.ALLOW_FOR, who, for_ms=10 * MINUTES))
    ).accepted


async def test_no_time_at_all_is_offered_where_the_longest_is_none(desk, make_request):
    request = await desk.approvals.ask(make_request())
    desk.rules = Rules(terms=Terms(0))
    assert (await desk.approvals.card(request.id)).durations == ()
    review = Review(request.id, Answer.ALLOW_FOR, Reviewer("cli", "0", "root"), for_ms=10_000)
    assert "maxDuration is 0" in (await desk.approvals.review(review)).text


async def test_deny_always_is_offered_everywhere(desk, make_request):
    request = await desk.approvals.ask(make_request())
    await desk.pressed(request, "-100", Verb.DENY_ALWAYS)
    assert await desk.state(request) is State.DENIED
