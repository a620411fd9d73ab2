"""Replies that let their sender choose, on Telegram: buttons below them, and what presses of them do."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from adapters.channels.telegram.adapter import TelegramChannel
from adapters.channels.telegram.reading import NOT_OURS, TOO_OLD
from core.config import TelegramSettings
from core.model.chat import Choice, Press, Reply, Typed
from tests.platforms.telegram import faults

TOKENS = ("abcdefghijklmnopqrstu-", "ABCDEFGHIJKLMNOPQRSTU_")
LONG = "agent:main:telegram:-1004001:subagent:" + "x" * 40
CHOICES = (Choice("main: agent:main:main", TOKENS[0]), Choice(f"main: {LONG}", TOKENS[1]))
WHICH = Reply("Several sessions belong to this chat. Elevated on for which one?", choices=CHOICES)


@dataclass
class ChoiceDesk:
    """A ChatDesk that asks which, and says what it is told to say to presses."""

    asks: Reply = WHICH
    says: Reply = field(default_factory=lambda: Reply("agent:main:main: elevated on.", private=False))
    presses: list[Press] = field(default_factory=list)

    async def typed(self, _typed: Typed) -> Reply | None:
        return self.asks

    async def press(self, press: Press) -> Reply:
        self.presses.append(press)
        return self.says

    async def card(self, _request_id, _at=None):
        return None


@pytest.fixture
def chat_desk():
    return ChoiceDesk()


@pytest.fixture
async def channel(telegram_api, chat_desk, clock):
    settings = TelegramSettings(token=telegram_api.token)
    channel = TelegramChannel(settings, clock, base_url=telegram_api.base_url)
    await channel.open(chat_desk)
    await telegram_api.called("getUpdates")
    yield channel
    await channel.close()


@pytest.fixture
def ann(telegram_api):
    return telegram_api.new_user("Ann", username="ann_a")


@pytest.fixture
def ops(telegram_api, ann):
    return telegram_api.new_supergroup("Ops", ann)


@pytest.fixture
async def asked(channel, telegram_api, ops, ann):  # noqa: ARG001 - the channel listens
    """The private message in which Ann is asked which session she meant in the group."""
    private = telegram_api.private_chat(ann)
    telegram_api.say(ops, ann, "/elevated on")
    return await telegram_api.message_when(lambda message: message.buttons, chat=private)


async def pressed(telegram_api, message, label, user):
    return await telegram_api.answer_to(telegram_api.press(message, label, user))


async def test_each_choice_is_a_numbered_button_and_stands_whole_in_the_message(asked, telegram_api, ops):
    first, second = (row[0] for row in asked.buttons)
    assert first == "1 · main: agent:main:main"
    assert (second[:5], second[-1], len(second)) == ("2 · m", "…", 48)
    assert asked.button(first)["callback_data"] == f"c:{TOKENS[0]}"
    assert asked.text.splitlines() == [WHICH.text, "1. main: agent:main:main", f"2. main: {LONG}"]
    assert telegram_api.sent(ops) == []


async def test_a_choice_is_answered_in_its_place_and_where_the_command_was(
    asked, telegram_api, ops, ann, chat_desk
):
    answer = await pressed(telegram_api, asked, asked.buttons[0][0], ann)
    (press,) = chat_desk.presses
    assert (press.verb, press.nonce, press.sender.id) == ("c", TOKENS[0], str(ann.id))
    assert answer.text == asked.text == chat_desk.says.text
    assert asked.buttons == []
    (told,) = telegram_api.sent(ops)
    assert (told.text, told.reply_to.text) == (chat_desk.says.text, "/elevated on")


async def test_an_answer_for_one_alone_is_not_told_in_the_group(asked, telegram_api, ops, ann, chat_desk):
    chat_desk.says = Reply("You are not among the people who may elevate here, so nothing was changed.")
    await pressed(telegram_api, asked, asked.buttons[0][0], ann)
    assert asked.text == chat_desk.says.text
    assert telegram_api.sent(ops) == []


async def test_who_may_not_choose_is_told_so_and_the_choice_stays(asked, telegram_api, ops, chat_desk):
    chat_desk.says = Reply("This choice is for the one who typed the command.", still_open=True)
    text, buttons = asked.text, asked.buttons
    answer = await pressed(telegram_api, asked, buttons[0][0], telegram_api.new_user("Ann"))
    assert answer.text == chat_desk.says.text
    assert (asked.text, asked.buttons) == (text, buttons)
    assert telegram_api.sent(ops) == []


async def test_a_choice_on_a_message_that_does_not_offer_it_reaches_nobody(
    asked, telegram_api, ops, ann, chat_desk, channel, make_card
):
    await channel.post(make_card(), str(ops.id), "n" * 22)
    (card,) = telegram_api.sent(ops)
    buttons = card.buttons
    for data in (f"c:{TOKENS[0]}", f"c:{'z' * 22}"):
        answer = await telegram_api.answer_to(telegram_api.press_raw(card, data, ann))
        assert answer.text == NOT_OURS
    foreign = await telegram_api.answer_to(telegram_api.press_raw(asked, f"c:{'z' * 22}", ann))
    assert (foreign.text, chat_desk.presses) == (NOT_OURS, [])
    assert (card.buttons, len(asked.buttons)) == (buttons, 2)


async def test_a_message_too_old_to_be_looked_into_is_too_old_to_choose(asked, telegram_api, ann, chat_desk):
    press = telegram_api.press(asked, asked.buttons[0][0], ann, inaccessible=True)
    assert ((await telegram_api.answer_to(press)).text, chat_desk.presses) == (TOO_OLD, [])


async def test_after_a_choice_was_made_its_button_is_none_of_ours(asked, telegram_api, ann, chat_desk):
    data = asked.button(asked.buttons[0][0])["callback_data"]
    await telegram_api.answer_to(telegram_api.press_raw(asked, data, ann))
    again = await telegram_api.answer_to(telegram_api.press_raw(asked, data, ann))
    assert (again.text, len(chat_desk.presses)) == (NOT_OURS, 1)


async def test_a_long_answer_stands_whole_in_the_message_and_is_cut_in_the_toast(
    asked, telegram_api, ann, chat_desk
):
    chat_desk.says = Reply("word " * 60 + "END")
    answer = await pressed(telegram_api, asked, asked.buttons[0][0], ann)
    assert (len(answer.text), answer.text[-1], asked.text[-3:]) == (200, "…", "END")
    assert len(telegram_api.sent(telegram_api.private_chat(ann))) == 1


async def test_a_choice_that_cannot_be_taken_away_is_answered_all_the_same(
    asked, telegram_api, ann, ops, chat_desk
):
    telegram_api.misbehave("editMessageText", faults.server_error())
    answer = await pressed(telegram_api, asked, asked.buttons[0][0], ann)
    assert answer.text == chat_desk.says.text
    assert [message.text for message in telegram_api.sent(ops)] == [chat_desk.says.text]


async def test_where_there_is_no_private_chat_the_group_hears_that_alone(channel, telegram_api, ops, ann):  # noqa: ARG001 - the channel listens
    telegram_api.private_chat(ann, started=False)
    telegram_api.say(ops, ann, "/elevated on")
    told = await telegram_api.message_when(lambda message: message.by_bot, chat=ops)
    assert "open a chat with me" in told.text
    assert (told.buttons, "agent:" in told.text) == ([], False)


async def test_in_private_a_choice_is_below_its_command_and_told_once(channel, telegram_api, ann, chat_desk):  # noqa: ARG001 - the channel listens
    private = telegram_api.private_chat(ann)
    telegram_api.say(private, ann, "/elev on")
    asked = await telegram_api.message_when(lambda message: message.buttons, chat=private)
    assert asked.reply_to.text == "/elev on"
    await pressed(telegram_api, asked, asked.buttons[0][0], ann)
    assert [message.text for message in telegram_api.sent(private)] == [chat_desk.says.text]
