"""The Telegram channel against a Bot API on loopback, over the real library."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

import aiohttp
import pytest

from adapters.channels.telegram.adapter import TelegramChannel
from adapters.channels.telegram.reading import ANONYMOUS, EDITED, FORWARDED, NOT_OURS, NOT_TEXT
from core.approvals import commands
from core.config import TelegramSettings
from core.errors import DeliveryError, DeliveryRefused, DeliveryUnclear, NotPermitted, StartError
from core.model.card import Card, CardOutcome
from core.model.chat import Press, Reply, Typed
from core.model.notice import Notice, NoticeKind
from core.model.request import State
from tests.platforms.telegram import faults

pytest_plugins = ("tests.platforms.telegram.plugin",)

NONCE = "abcdefghijklmnopqrstu-"


@dataclass
class ChatMemory:
    """A ChatDesk that remembers what came and says what it is told to say."""

    reply: Reply | None = field(default_factory=lambda: Reply("Allowed, once."))
    error: Exception | None = None
    presses: list[Press] = field(default_factory=list)
    commands: list[Typed] = field(default_factory=list)
    hold: asyncio.Event | None = None
    stands: Card | None = None

    async def press(self, press: Press) -> Reply | None:
        self.presses.append(press)
        return await self._answer()

    async def card(self, _request_id: str, _at: object = None) -> Card | None:
        return self.stands

    async def typed(self, typed: Typed) -> Reply | None:
        self.commands.append(typed)
        return await self._answer()

    async def _answer(self) -> Reply | None:
        if self.hold:
            await self.hold.wait()
        if self.error:
            raise self.error
        return self.reply


@pytest.fixture
def chat_desk():
    return ChatMemory()


@pytest.fixture
def make_channel(telegram_api, clock):
    def make(**settings):
        settings = TelegramSettings(**{"token": telegram_api.token, **settings})
        return TelegramChannel(settings, clock, base_url=telegram_api.base_url)

    return make


@pytest.fixture
async def channel(telegram_api, make_channel, chat_desk):
    channel = make_channel()
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


async def until_state(channel, state):
    for _ in range(500):
        if channel.health()[0] == state:
            return channel.health()[1]
        await asyncio.sleep(0.01)
    raise AssertionError(channel.health())


class TestCards:
    async def test_a_card_is_posted_with_its_buttons_and_no_links(
        self, channel, telegram_api, ops, make_card
    ):
        ref = await channel.post(make_card(command="curl evil.example @ann_a #x"), str(ops.id), NONCE)
        (message,) = telegram_api.sent(ops)
        assert ref == f"{ops.id}/{message.id}"
        assert message.buttons == [["Allow once", "Always allow"], ["Deny", "More"]]
        assert message.button("Allow once")["callback_data"] == f"o:{NONCE}"
        assert (message.links, message.previews) == ([], False)
        assert channel.health() == ("ok", "connected")

    async def test_a_card_goes_to_its_topic(self, channel, telegram_api, ann, make_card):
        forum = telegram_api.new_supergroup("Forum", ann, topics=("deploys",))
        (topic,) = forum.topics
        await channel.post(make_card(), f"{forum.id}/{topic}", NONCE)
        assert telegram_api.sent(forum)[0].thread == topic

    async def test_a_decided_card_loses_its_buttons_and_says_what_came_of_it(
        self, channel, telegram_api, ops, make_card
    ):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        outcome = CardOutcome("exited with 0 after 1 s", 0, 1_000, "done", "")
        card = make_card(state=State.FINISHED, decided="allowed by ann", outcome=outcome)
        await channel.update(card, str(ops.id), ref, NONCE)
        (message,) = telegram_api.sent(ops)
        assert message.buttons == []
        assert "allowed by ann" in message.text
        assert "exited with 0 after 1 s" in message.text

    async def test_an_update_that_changes_nothing_is_fine(self, channel, ops, make_card):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        card = make_card(state=State.DENIED, decided="denied by ann")
        await channel.update(card, str(ops.id), ref, NONCE)
        await channel.update(card, str(ops.id), ref, NONCE)

    async def test_an_update_of_a_waiting_card_keeps_its_buttons(self, channel, telegram_api, ops, make_card):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        await channel.update(make_card(reason="another reason"), str(ops.id), ref, NONCE)
        (message,) = telegram_api.sent(ops)
        assert "another reason" in message.text
        assert message.button("Deny")["callback_data"] == f"d:{NONCE}"

    async def test_after_a_restart_a_waiting_card_is_left_with_its_buttons(
        self, channel, telegram_api, ops, make_card, make_channel, chat_desk
    ):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        await channel.close()
        again = make_channel()
        await again.open(chat_desk)
        await again.update(make_card(reason="another reason"), str(ops.id), ref, NONCE)
        assert telegram_api.sent(ops)[0].buttons
        await again.update(make_card(state=State.EXPIRED, decided="nobody answered"), str(ops.id), ref, NONCE)
        await again.close()
        assert telegram_api.sent(ops)[0].buttons == []
        assert "nobody answered" in telegram_api.sent(ops)[0].text

    async def test_a_removed_card_is_gone_and_removing_it_again_is_fine(
        self, channel, telegram_api, ops, make_card
    ):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        other = await channel.post(make_card(), str(ops.id), NONCE)
        await channel.remove(str(ops.id), ref)
        await channel.remove(str(ops.id), ref)
        assert [f"{ops.id}/{message.id}" for message in telegram_api.sent(ops)] == [other]

    async def test_what_is_no_message_of_ours_cannot_be_removed(self, channel, ops):
        with pytest.raises(DeliveryRefused):
            await channel.remove(str(ops.id), "not a reference")

    async def test_a_notice_asks_nothing(self, channel, telegram_api, ops):
        await channel.notify(Notice(NoticeKind.SECURITY, "@evil pressed a button", "3f2b9c1d"), str(ops.id))
        (message,) = telegram_api.sent(ops)
        assert message.text == "🚨 Security\n@evil pressed a button\n3f2b9c1d"
        assert (message.buttons, message.links) == ([], [])


class TestDelivery:
    async def test_flooding_tells_how_long_to_wait(self, channel, telegram_api, ops, make_card):
        telegram_api.misbehave("sendMessage", faults.flood(7))
        with pytest.raises(DeliveryError) as caught:
            await channel.post(make_card(), str(ops.id), NONCE)
        assert (type(caught.value), caught.value.retry_after_s) == (DeliveryError, 7)

    @pytest.mark.parametrize(
        "fault", [faults.drop_after(), faults.drop_before(), faults.server_error(html=True)]
    )
    async def test_a_lost_answer_is_unclear(self, channel, telegram_api, ops, make_card, fault):
        telegram_api.misbehave("sendMessage", fault)
        with pytest.raises(DeliveryUnclear):
            await channel.post(make_card(), str(ops.id), NONCE)

    async def test_a_lost_answer_to_an_edit_is_simply_tried_again(
        self, channel, telegram_api, ops, make_card
    ):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        card = make_card(state=State.DENIED, decided="denied by ann")
        telegram_api.misbehave("editMessageText", faults.drop_after())
        with pytest.raises(DeliveryError) as caught:
            await channel.update(card, str(ops.id), ref, NONCE)
        assert type(caught.value) is DeliveryError
        await channel.update(card, str(ops.id), ref, NONCE)

    async def test_without_a_connection_nothing_was_sent(self, channel, telegram_api, ops, make_card):
        await telegram_api.stop()
        with pytest.raises(DeliveryError) as caught:
            await channel.post(make_card(), str(ops.id), NONCE)
        assert type(caught.value) is DeliveryError
        assert "cannot be reached" in await until_state(channel, "degraded")

    async def test_a_chat_that_threw_the_bot_out_is_refused(self, channel, telegram_api, ops, make_card):
        telegram_api.remove_bot(ops)
        with pytest.raises(DeliveryRefused, match="bot was kicked"):
            await channel.post(make_card(), str(ops.id), NONCE)

    @pytest.mark.parametrize("place", ["-100999", "@ops", "nowhere"])
    async def test_a_chat_that_is_none_is_refused(self, channel, make_card, place):
        with pytest.raises(DeliveryRefused):
            await channel.post(make_card(), place, NONCE)

    async def test_a_deleted_message_is_refused(self, channel, telegram_api, ops, make_card):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        telegram_api.misbehave("editMessageText", faults.edit_not_found())
        with pytest.raises(DeliveryRefused, match="to edit not found"):
            await channel.update(make_card(state=State.DENIED), str(ops.id), ref, NONCE)
        with pytest.raises(DeliveryRefused):
            await channel.update(make_card(state=State.DENIED), str(ops.id), "rubbish", NONCE)

    async def test_a_group_that_moved_is_followed(self, channel, telegram_api, ann, make_card, chat_desk):
        group = telegram_api.new_group("Old", ann)
        ref = await channel.post(make_card(), str(group.id), NONCE)
        new = telegram_api.migrate(group)
        with pytest.raises(DeliveryRefused, match="stayed behind"):
            await channel.update(make_card(state=State.DENIED), str(group.id), ref, NONCE)
        await channel.post(make_card(), str(group.id), NONCE)
        (message,) = telegram_api.sent(new)
        await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        assert (chat_desk.presses[0].place, chat_desk.presses[0].ref) == (
            str(group.id),
            f"{new.id}/{message.id}",
        )
        assert f"put {new.id} into the configuration" in channel.health()[1]

    async def test_a_group_that_moved_unseen_is_tried_again_there(
        self, channel, telegram_api, ann, make_card
    ):
        group = telegram_api.new_group("Old", ann)
        telegram_api.updates.allow(["callback_query"])
        group.migrated_to = telegram_api.new_supergroup("New", ann)
        with pytest.raises(DeliveryError) as caught:
            await channel.post(make_card(), str(group.id), NONCE)
        assert caught.value.retry_after_s == 0
        assert (await channel.post(make_card(), str(group.id), NONCE)).startswith(f"{group.migrated_to.id}/")

    async def test_a_closed_channel_delivers_nothing(self, make_channel, ops, make_card):
        with pytest.raises(DeliveryError, match="not open"):
            await make_channel().post(make_card(), str(ops.id), NONCE)


class TestPresses:
    @pytest.fixture
    async def message(self, channel, telegram_api, ops, make_card):
        await channel.post(make_card(), str(ops.id), NONCE)
        return telegram_api.sent(ops)[0]

    async def test_a_press_reaches_the_desk_and_is_answered(self, telegram_api, message, ann, ops, chat_desk):
        answer = await telegram_api.answer_to(telegram_api.press(message, "Always allow", ann))
        assert (answer.text, answer.show_alert) == ("Allowed, once.", False)
        (press,) = chat_desk.presses
        assert (press.verb, press.nonce) == ("a", NONCE)
        assert (press.place, press.ref) == (str(ops.id), f"{ops.id}/{message.id}")
        assert (press.sender.channel, press.sender.id, press.sender.username) == (
            "telegram",
            str(ann.id),
            "ann_a",
        )

    async def test_a_press_in_a_topic_names_it(self, channel, telegram_api, ann, make_card, chat_desk):
        forum = telegram_api.new_supergroup("Forum", ann, topics=("deploys",))
        (topic,) = forum.topics
        await channel.post(make_card(), f"{forum.id}/{topic}", NONCE)
        await telegram_api.answer_to(telegram_api.press(telegram_api.sent(forum)[0], "Deny", ann))
        assert chat_desk.presses[0].place == f"{forum.id}/{topic}"

    async def test_an_old_message_can_still_be_pressed(self, telegram_api, message, ann, chat_desk):
        await telegram_api.answer_to(telegram_api.press(message, "Deny", ann, inaccessible=True))
        assert chat_desk.presses[0].ref == f"{message.chat.id}/{message.id}"

    @pytest.mark.parametrize(
        "data",
        [
            *["x:" + NONCE, "o:short", f"o:{NONCE}:b", f"o{NONCE}", f"o:{NONCE}\n", "\x00", "o:" + "é" * 22],
            *[f"f:{NONCE}", f"f:{NONCE}:", f"f:{NONCE}:0", f"f:{NONCE}:9999", f"f:{NONCE}:2592000001"],
            *[f"f:{NONCE}:99999999999", f"f:{NONCE}:900000:1", f"f:{NONCE}:0900000", f"f:{NONCE}:-900000"],
            *[
                f"f:{NONCE}:+900000",
                f"f:{NONCE}: 900000",
                f"f:{NONCE}:9e5",
                f"f:{NONCE}:9_000",
                f"f:{NONCE}:٩٠٠٠٠٠",
            ],
            *[f"{verb}:{NONCE}:900000" for verb in "oadvmlnrc"],
            f"c:{NONCE}",
        ],
    )
    async def test_made_up_buttons_never_reach_the_desk(self, telegram_api, message, ann, chat_desk, data):
        answer = await telegram_api.answer_to(telegram_api.press_raw(message, data, ann))
        assert (answer.text, chat_desk.presses) == (NOT_OURS, [])

    async def test_a_refusal_by_the_desk_is_told_in_its_words(self, telegram_api, message, ann, chat_desk):
        chat_desk.error = NotPermitted("You may not decide this.")
        answer = await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        assert answer.text == "You may not decide this."

    async def test_a_broken_desk_is_admitted_and_logged(self, telegram_api, message, ann, chat_desk, caplog):
        chat_desk.error = RuntimeError("boom")
        answer = await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        assert "nothing was decided" in answer.text.casefold()
        assert "boom" in caplog.text

    async def test_a_long_answer_goes_to_the_private_chat(self, telegram_api, message, ann, chat_desk):
        private = telegram_api.private_chat(ann)
        chat_desk.reply = Reply("word " * 100)
        answer = await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        assert "chat with me" in answer.text
        assert telegram_api.sent(private)[0].text == ("word " * 100).strip()

    async def test_a_long_answer_is_cut_where_there_is_no_private_chat(
        self, telegram_api, message, ann, chat_desk
    ):
        telegram_api.private_chat(ann, started=False)
        chat_desk.reply = Reply("word " * 100)
        answer = await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        assert answer.text.endswith("…")
        assert len(answer.text) == 200

    async def test_the_same_update_twice_counts_once(self, telegram_api, message, ann, chat_desk):
        telegram_api.misbehave("getUpdates", faults.duplicate())
        await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        await telegram_api.updates_taken()
        assert len(chat_desk.presses) == 1

    async def test_a_query_that_is_too_old_does_no_harm(self, telegram_api, message, ann, chat_desk):
        telegram_api.misbehave("answerCallbackQuery", faults.query_too_old())
        telegram_api.press(message, "Deny", ann)
        await telegram_api.called("answerCallbackQuery")
        await telegram_api.answer_to(telegram_api.press(message, "Deny", ann))
        assert len(chat_desk.presses) == 2

    async def test_a_slow_press_does_not_hold_back_the_others(self, telegram_api, message, ann, chat_desk):
        chat_desk.hold = asyncio.Event()
        first = telegram_api.press(message, "Deny", ann)
        second = telegram_api.press(message, "Allow once", ann)
        await telegram_api.until(
            lambda: telegram_api.updates.pending == [] or len(chat_desk.presses) == 2, 10
        )
        chat_desk.hold.set()
        await telegram_api.answer_to(first)
        await telegram_api.answer_to(second, seconds=10)

    async def test_a_press_before_a_crash_is_handled_after_it(
        self, channel, telegram_api, message, ann, make_channel, chat_desk
    ):
        await channel.close()
        press = telegram_api.press(message, "Deny", ann)
        again = make_channel()
        await again.open(chat_desk)
        await telegram_api.answer_to(press)
        await again.close()
        assert telegram_api.updates.pending == []
        assert len(chat_desk.presses) == 1


class TestViewAll:
    @pytest.fixture
    async def message(self, channel, telegram_api, ops, make_card):
        await channel.post(make_card(command="x" * 9_000), str(ops.id), NONCE)
        return telegram_api.sent(ops)[0]

    async def test_the_allow_buttons_come_after_the_whole_text(
        self, telegram_api, message, ann, chat_desk, make_card
    ):
        private = telegram_api.private_chat(ann)
        assert message.buttons == [["View all"], ["Deny"]]
        chat_desk.stands = make_card()
        chat_desk.reply = Reply("Here it is.", document="x" * 9_000, card=make_card())
        await telegram_api.answer_to(telegram_api.press(message, "View all", ann))
        (document,) = telegram_api.documents(private)
        assert document.content == b"x" * 9_000
        assert message.buttons == [["Allow once", "Always allow"], ["Deny", "More"]]
        assert message.button("Allow once")["callback_data"] == f"o:{NONCE}"

    async def test_without_the_whole_text_there_are_no_allow_buttons(
        self, telegram_api, message, ann, chat_desk, make_card
    ):
        telegram_api.private_chat(ann, started=False)
        chat_desk.stands = make_card()
        chat_desk.reply = Reply("Here it is.", document="x" * 9_000, card=make_card())
        answer = await telegram_api.answer_to(telegram_api.press(message, "View all", ann))
        assert "press Start" in answer.text
        assert message.buttons == [["View all"], ["Deny"]]

    async def test_who_is_shown_nothing_changes_no_buttons(self, telegram_api, message, ann, chat_desk):
        chat_desk.reply = Reply("You may not decide this.")
        await telegram_api.answer_to(telegram_api.press(message, "View all", ann))
        assert message.buttons == [["View all"], ["Deny"]]

    async def test_always_is_not_offered_after_viewing_where_it_was_not_before(
        self, channel, telegram_api, ann, make_card, chat_desk
    ):
        private = telegram_api.private_chat(ann)
        card = chat_desk.stands = make_card(command="x" * 9_000, always=(), always_why="no")
        await channel.post(card, str(ann.id), NONCE)
        message = telegram_api.sent(private)[0]
        chat_desk.reply = Reply("Here it is.", document="x", card=card)
        await telegram_api.answer_to(telegram_api.press(message, "View all", ann))
        assert message.buttons == [["Allow once"], ["Deny", "More"]]


@pytest.mark.usefixtures("channel")
class TestCommands:
    async def test_a_command_in_private_is_answered_there(self, telegram_api, ann, chat_desk):
        private = telegram_api.private_chat(ann)
        chat_desk.reply = Reply("Nothing waits.")
        telegram_api.say(private, ann, "/pending")
        message = await telegram_api.message_when(lambda m: m.text == "Nothing waits.", chat=private)
        assert message.links == []
        (typed,) = chat_desk.commands
        assert (typed.text, typed.direct, typed.place, typed.sender.id) == (
            "/pending", True, str(ann.id), str(ann.id),
        )  # fmt: skip

    async def test_a_command_in_a_group_is_answered_in_private(self, telegram_api, ops, ann, chat_desk):
        private = telegram_api.private_chat(ann)
        telegram_api.say(ops, ann, "/Approve@Sayso_Test_Bot 3f2b9c1d always")
        await telegram_api.message_when(lambda m: m.text == "Allowed, once.", chat=private)
        assert telegram_api.sent(ops) == []
        assert (chat_desk.commands[0].text, chat_desk.commands[0].direct) == (
            "/approve 3f2b9c1d always",
            False,
        )

    async def test_a_group_hears_only_that_there_is_an_answer(self, telegram_api, ops, ann, chat_desk):
        telegram_api.private_chat(ann, started=False)
        chat_desk.reply = Reply("secret words")
        telegram_api.say(ops, ann, "/pending")
        message = await telegram_api.message_when(bool, chat=ops)
        assert "press Start" in message.text
        assert "secret" not in message.text

    async def test_a_public_answer_stands_in_the_group(self, telegram_api, ops, ann, chat_desk):
        chat_desk.reply = Reply("Locked.", private=False)
        telegram_api.say(ops, ann, "/sayso lock")
        await telegram_api.message_when(lambda m: m.text == "Locked.", chat=ops)

    async def test_start_tells_who_one_is(self, telegram_api, ann, chat_desk):
        chat_desk.reply = None
        private = telegram_api.private_chat(ann)
        telegram_api.say(private, ann, "/start")
        message = await telegram_api.message_when(bool, chat=private)
        assert f"telegram:{ann.id}" in message.text

    async def test_a_very_long_answer_comes_with_the_whole_as_a_file(self, telegram_api, ann, chat_desk):
        private = telegram_api.private_chat(ann)
        chat_desk.reply = Reply("word " * 2_000)
        telegram_api.say(private, ann, "/pending")
        await telegram_api.until(lambda: telegram_api.documents(private))
        assert "characters left out" in telegram_api.sent(private)[0].text

    async def test_a_flood_does_not_lose_the_answer(self, telegram_api, ann):
        private = telegram_api.private_chat(ann)
        telegram_api.misbehave("sendMessage", faults.flood(1))
        telegram_api.say(private, ann, "/pending")
        await telegram_api.message_when(lambda m: m.text == "Allowed, once.", chat=private)

    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ({"edited": True}, EDITED),
            ({"forwarded": True}, FORWARDED),
            ({"as_anonymous_admin": True}, ANONYMOUS),
        ],
    )
    async def test_what_nobody_can_vouch_for_is_refused_in_words(
        self, telegram_api, ops, ann, chat_desk, how, words
    ):
        telegram_api.say(ops, ann, "/approve 3f2b9c1d", **how)
        await telegram_api.message_when(lambda m: m.text == words, chat=ops)
        telegram_api.say(ops, ann, "/approve 3f2b9c1d", **how)
        await telegram_api.updates_taken()
        assert (len(telegram_api.sent(ops)), chat_desk.commands) == (1, [])

    async def test_bots_channels_and_others_commands_are_ignored(self, telegram_api, ann, chat_desk):
        group = telegram_api.new_supergroup("Open", ann, privacy=False)
        news = telegram_api.new_channel("News", ann)
        telegram_api.say(group, ann, "/approve 3f2b9c1d", as_bot=True)
        telegram_api.say(news, None, "/approve 3f2b9c1d")
        telegram_api.say(group, ann, "/approve@other_test_bot 3f2b9c1d")
        telegram_api.say(group, ann, "please /approve 3f2b9c1d")
        telegram_api.say(group, ann, "approve 3f2b9c1d")
        telegram_api.say(group, ann, "/weather", edited=True)
        telegram_api.say(group, None, "/approve 3f2b9c1d")
        await telegram_api.updates_taken()
        assert (chat_desk.commands, telegram_api.sent()) == ([], [])

    async def test_everybody_is_offered_next_to_nothing(self, telegram_api):
        assert set(telegram_api.menu()) == {"pair", "sayso"}


class TestMenus:
    async def test_a_chat_that_is_asked_has_the_whole_menu_set_once(
        self, channel, telegram_api, ops, ann, make_card
    ):
        for _ in range(3):
            await channel.post(make_card(), str(ops.id), NONCE)
        await channel.notify(Notice(NoticeKind.SECURITY, "told"), str(telegram_api.private_chat(ann).id))
        await telegram_api.until(lambda: telegram_api.menu_of(ops))
        assert set(telegram_api.menu_of(ops)) == {"approve", "deny", "pending", "elevated", "elev", "sayso"}
        assert telegram_api.menu_of(telegram_api.private_chat(ann)) == {}
        await channel.close()
        assert len(telegram_api.calls_of("setMyCommands")) == 2

    async def test_a_menu_that_cannot_be_set_is_logged_and_stops_nothing(
        self, channel, telegram_api, ops, make_card, caplog
    ):
        telegram_api.misbehave("setMyCommands", faults.refuse(403, "Forbidden: no"))
        await channel.post(make_card(), str(ops.id), NONCE)
        await channel.close()
        assert "menu" in caplog.text
        assert len(telegram_api.sent(ops)) == 1


class TestMore:
    @pytest.fixture
    async def message(self, channel, telegram_api, ops, make_card, chat_desk):
        card = chat_desk.stands = make_card()
        await channel.post(card, str(ops.id), NONCE)
        chat_desk.reply = Reply("", card=card)
        return telegram_api.sent(ops)[0]

    async def test_more_and_back_change_the_buttons_without_a_word(
        self, telegram_api, message, ann, chat_desk
    ):
        first, text = message.buttons, message.text
        answer = await telegram_api.answer_to(telegram_api.press(message, "More", ann))
        assert (answer.text, answer.show_alert) == ("", False)
        assert message.buttons == [
            ["Allow 15 min", "Allow 1 h"],
            ["Deny always", "Deny with a reason"],
            ["Back"],
        ]
        await telegram_api.answer_to(telegram_api.press(message, "Back", ann))
        assert (message.buttons, message.text) == (first, text)
        assert [press.verb for press in chat_desk.presses] == ["m", "l"]

    async def test_any_arguments_are_one_of_the_further_answers_where_they_are_offered(
        self, channel, telegram_api, ops, make_card, ann, chat_desk
    ):
        card = make_card(always_any=("any `ls` command in the sandbox",))
        chat_desk.stands, chat_desk.reply = card, Reply("", card=card)
        await channel.post(card, str(ops.id), NONCE)
        message = telegram_api.sent(ops)[-1]
        assert "any `ls` command in the sandbox" in message.text
        await telegram_api.answer_to(telegram_api.press(message, "More", ann))
        assert ["Always, any arguments"] in message.buttons
        await telegram_api.answer_to(telegram_api.press(message, "Always, any arguments", ann))
        assert (chat_desk.presses[-1].verb, chat_desk.presses[-1].nonce) == ("y", NONCE)

    @pytest.mark.parametrize(
        ("label", "came"),
        [("Allow 15 min", ("f", 900_000)), ("Allow 1 h", ("f", 3_600_000)), ("Deny always", ("n", None))],
    )
    async def test_what_more_offers_reaches_the_desk(
        self, telegram_api, message, ann, chat_desk, label, came
    ):
        await telegram_api.answer_to(telegram_api.press(message, "More", ann))
        chat_desk.reply = Reply("Done.")
        answer = await telegram_api.answer_to(telegram_api.press(message, label, ann))
        press = chat_desk.presses[-1]
        assert (answer.text, press.verb, press.for_ms, press.nonce) == ("Done.", *came, NONCE)

    async def test_who_is_refused_changes_no_buttons(self, telegram_api, message, ann, chat_desk):
        before = message.buttons
        chat_desk.reply = Reply("You may not decide this.")
        answer = await telegram_api.answer_to(telegram_api.press(message, "More", ann))
        assert (answer.text, message.buttons) == ("You may not decide this.", before)

    async def test_two_who_press_more_at_once_both_get_it(self, telegram_api, message, ann, caplog):
        caplog.set_level(logging.INFO)
        presses = [telegram_api.press(message, "More", ann) for _ in range(2)]
        for press in presses:
            assert (await telegram_api.answer_to(press)).text == ""
        assert ["Back"] in message.buttons
        assert "could not be changed" not in caplog.text

    async def test_buttons_that_came_after_the_decision_are_taken_away_again(
        self, telegram_api, message, ann, chat_desk, make_card
    ):
        chat_desk.stands = make_card(state=State.DENIED, decided="denied by ann")
        await telegram_api.answer_to(telegram_api.press(message, "More", ann))
        assert message.buttons == []

    async def test_a_message_that_is_gone_does_no_harm(self, channel, telegram_api, message, ann, ops):
        await channel.remove(str(ops.id), f"{ops.id}/{message.id}")
        assert (await telegram_api.answer_to(telegram_api.press(message, "More", ann))).text == ""


class TestReasons:
    @pytest.fixture
    async def asked(self, channel, telegram_api, ops, ann, make_card, chat_desk):
        """Press Deny with a reason, and return the message that asks for it."""
        card = chat_desk.stands = make_card()
        await channel.post(card, str(ops.id), NONCE)
        chat_desk.reply = Reply("", card=card)
        press = telegram_api.press_raw(telegram_api.sent(ops)[0], f"r:{NONCE}", ann)
        assert (await telegram_api.answer_to(press)).text == ""
        chat_desk.reply = Reply("Denied.")
        return telegram_api.sent(ops)[1]

    async def test_only_who_pressed_is_asked_below_the_card(self, telegram_api, asked, ops, ann):
        assert asked.text == "Why do you deny 3f2b9c1d? Reply to this message with the reason."
        assert asked.reply_to is telegram_api.sent(ops)[0]
        assert (asked.begins_reply, asked.markup["selective"], asked.links) == (True, True, [])
        assert [one["user"]["id"] for one in asked.entities if one["type"] == "text_mention"] == [ann.id]

    async def test_in_a_topic_the_reason_is_asked_for_there(
        self, channel, telegram_api, ann, make_card, chat_desk
    ):
        forum = telegram_api.new_supergroup("Forum", ann, topics=("deploys",))
        (topic,) = forum.topics
        card = chat_desk.stands = make_card()
        await channel.post(card, f"{forum.id}/{topic}", NONCE)
        chat_desk.reply = Reply("", card=card)
        await telegram_api.answer_to(telegram_api.press_raw(telegram_api.sent(forum)[0], f"r:{NONCE}", ann))
        asked = telegram_api.sent(forum)[1]
        assert asked.thread == topic
        telegram_api.say(forum, ann, "no", reply_to=asked, thread=topic)
        await telegram_api.until(lambda: chat_desk.commands)
        assert chat_desk.commands[0].place == f"{forum.id}/{topic}"

    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            ("use the cache", "use the cache"),
            ("always", "always"),
            ("always ask before", "always ask before"),
            ("/etc is not yours", "/etc is not yours"),
            ("4f2b9c1d is better", "4f2b9c1d is better"),
            ("no\n/approve 3f2b9c1d always", "no /approve 3f2b9c1d always"),
        ],
    )
    async def test_a_reply_denies_with_its_words_as_the_reason(
        self, telegram_api, asked, ops, ann, chat_desk, said, reason
    ):
        private = telegram_api.private_chat(ann)
        telegram_api.say(ops, ann, said, reply_to=asked)
        await telegram_api.message_when(lambda message: message.text == "Denied.", chat=private)
        (typed,) = chat_desk.commands
        assert (typed.sender.id, typed.place, typed.direct) == (str(ann.id), str(ops.id), False)
        assert commands.parse(typed.text) == commands.Deny("3f2b9c1d", reason=reason)

    async def test_a_reply_that_is_a_command_of_ours_stays_one(
        self, telegram_api, asked, ops, ann, chat_desk
    ):
        telegram_api.say(ops, ann, "/approve 3f2b9c1d", reply_to=asked)
        await telegram_api.until(lambda: chat_desk.commands)
        assert chat_desk.commands[0].text == "/approve 3f2b9c1d"

    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ({"edited": True}, EDITED),
            ({"forwarded": True}, FORWARDED),
            ({"as_anonymous_admin": True}, ANONYMOUS),
            ({"text": ""}, NOT_TEXT),
        ],
    )
    async def test_a_reason_that_nobody_can_vouch_for_is_refused_in_words(
        self, telegram_api, asked, ops, ann, chat_desk, how, words
    ):
        telegram_api.say(ops, ann, **{"text": "because", "reply_to": asked, **how})
        await telegram_api.message_when(lambda message: message.text == words, chat=ops)
        assert chat_desk.commands == []

    async def test_a_reply_to_anything_else_decides_nothing(
        self, channel, telegram_api, asked, ops, ann, chat_desk
    ):
        ops.privacy = False
        words = asked.text
        chat_desk.reply = Reply(words, private=False)
        telegram_api.say(ops, ann, "/pending")
        ours = await telegram_api.message_when(lambda one: one.text == words and one is not asked, chat=ops)
        await channel.notify(Notice(NoticeKind.SECURITY, words), str(ops.id))
        bot = telegram_api.new_user("Sayso", username="other_test_bot", is_bot=True)
        others = [
            ours,
            telegram_api.sent(ops)[0],
            telegram_api.sent(ops)[-1],
            telegram_api.say(ops, ann, words),
            telegram_api.say(ops, bot, words),
        ]
        others[-1].entities = others[-2].entities = asked.entities
        for other in others:
            telegram_api.say(ops, ann, "because", reply_to=other)
        telegram_api.say(ops, ann, "/go@other_test_bot", reply_to=asked)
        telegram_api.say(ops, bot, "because", reply_to=asked)
        telegram_api.say(ops, ann, "because")
        await telegram_api.updates_taken()
        assert [typed.text for typed in chat_desk.commands] == ["/pending"]

    async def test_where_it_cannot_be_asked_the_command_is_told(
        self, channel, telegram_api, ops, ann, make_card, chat_desk
    ):
        await channel.post(make_card(), str(ops.id), NONCE)
        chat_desk.reply = Reply("", card=make_card())
        telegram_api.misbehave("sendMessage", faults.refuse(403, "Forbidden: not enough rights"))
        press = telegram_api.press_raw(telegram_api.sent(ops)[0], f"r:{NONCE}", ann)
        assert "/deny 3f2b9c1d" in (await telegram_api.answer_to(press)).text


class TestOutput:
    LONG = "a line of output\n" * 400

    @pytest.fixture
    def ended(self, make_card):
        outcome = CardOutcome("exited with 0 after 1 s", 0, 1_000, self.LONG, "")
        return make_card(state=State.FINISHED, decided="allowed by ann", outcome=outcome)

    async def test_long_output_follows_as_a_file_once(self, channel, telegram_api, ops, make_card, ended):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        for _ in range(3):
            await channel.update(ended, str(ops.id), ref, NONCE)
        await channel.close()
        card, file = telegram_api.sent(ops)
        assert "characters left out here" in card.text
        assert (file.reply_to, file.document.name) == (card, "output.txt")
        assert file.document.content.decode() == f"Output\n{self.LONG}"

    async def test_after_a_restart_it_is_not_sent_again(
        self, channel, telegram_api, ops, make_card, ended, make_channel, chat_desk
    ):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        await channel.update(ended, str(ops.id), ref, NONCE)
        await channel.close()
        again = make_channel()
        await again.open(chat_desk)
        await again.update(ended, str(ops.id), ref, NONCE)
        await again.close()
        assert len(telegram_api.documents(ops)) == 1

    async def test_it_goes_to_the_topic_of_its_card(self, channel, telegram_api, ann, make_card, ended):
        forum = telegram_api.new_supergroup("Forum", ann, topics=("deploys",))
        (topic,) = forum.topics
        ref = await channel.post(make_card(), f"{forum.id}/{topic}", NONCE)
        await channel.update(ended, f"{forum.id}/{topic}", ref, NONCE)
        await channel.close()
        assert telegram_api.sent(forum)[1].thread == topic

    async def test_short_output_makes_no_file(self, channel, telegram_api, ops, make_card):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        outcome = CardOutcome("exited with 0 after 1 s", 0, 1_000, "done", "")
        await channel.update(make_card(state=State.FINISHED, outcome=outcome), str(ops.id), ref, NONCE)
        await channel.close()
        assert telegram_api.documents() == []

    async def test_a_file_that_does_not_arrive_is_logged_and_the_delivery_stands(
        self, channel, telegram_api, ops, make_card, ended, caplog
    ):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        telegram_api.misbehave("sendDocument", faults.refuse(400, "Bad Request: no files here"))
        await channel.update(ended, str(ops.id), ref, NONCE)
        await channel.close()
        assert "exited with 0" in telegram_api.sent(ops)[0].text
        assert "No files here" in caplog.text

    async def test_where_the_edit_fails_no_file_goes_out(self, channel, telegram_api, ops, make_card, ended):
        ref = await channel.post(make_card(), str(ops.id), NONCE)
        telegram_api.misbehave("editMessageText", faults.server_error())
        with pytest.raises(DeliveryError):
            await channel.update(ended, str(ops.id), ref, NONCE)
        await channel.close()
        assert telegram_api.documents() == []


class TestConnection:
    async def test_a_wrong_token_is_a_start_error_that_does_not_quote_it(
        self, make_channel, chat_desk, caplog
    ):
        caplog.set_level(logging.DEBUG)
        channel = make_channel(token="123:WRONG-token")
        with pytest.raises(StartError, match=r"channels\.telegram\.token.*@BotFather") as caught:
            await channel.open(chat_desk)
        assert "WRONG" not in f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
        await channel.close()

    async def test_a_token_that_is_revoked_later_is_said_once(
        self, channel, telegram_api, ops, make_card, caplog
    ):
        telegram_api.revoked = True
        with pytest.raises(DeliveryError):
            await channel.post(make_card(), str(ops.id), NONCE)
        with pytest.raises(DeliveryError) as caught:
            await channel.post(make_card(), str(ops.id), NONCE)
        assert caught.value.retry_after_s
        state, words = channel.health()
        assert (state, words.split(":")[0]) == ("down", "revoked")
        assert len([line for line in caplog.messages if "revoked" in line]) == 1
        assert telegram_api.token not in caplog.text

    async def test_the_token_stays_out_of_the_log(
        self, telegram_api, make_channel, chat_desk, ops, make_card, caplog
    ):
        caplog.set_level(logging.DEBUG)
        channel = make_channel()
        await channel.open(chat_desk)
        await channel.post(make_card(), str(ops.id), NONCE)
        await telegram_api.called("getUpdates")
        await channel.close()
        assert telegram_api.token not in caplog.text

    async def test_polling_finds_out_that_the_token_is_revoked(self, channel, telegram_api):
        telegram_api.revoked = True
        await telegram_api.updates.poll({})  # a second poller ends the one that waits
        assert (await until_state(channel, "down")).startswith("revoked")

    async def test_one_false_alarm_does_not_end_the_channel(self, telegram_api, make_channel, chat_desk):
        channel = make_channel()
        telegram_api.misbehave("getUpdates", faults.unauthorized())
        await channel.open(chat_desk)
        await telegram_api.called("getUpdates", 2)
        assert not channel.health()[1].startswith("revoked")
        await channel.close()

    async def test_another_poller_is_named(self, channel, telegram_api):
        await telegram_api.updates.poll({})
        assert "another program" in await until_state(channel, "degraded")

    async def test_without_a_network_it_opens_and_connects_later(
        self, telegram_api, make_channel, chat_desk, ops, make_card
    ):
        await telegram_api.stop()
        channel = make_channel()
        await channel.open(chat_desk)
        assert channel.health()[0] == "degraded"
        await telegram_api.start()
        await until_state(channel, "ok")
        await channel.post(make_card(), str(ops.id), NONCE)
        await channel.close()
        await channel.close()
        assert channel.health()[0] == "down"

    async def test_closing_leaves_no_task_behind(self, telegram_api, make_channel, chat_desk):
        before = asyncio.all_tasks()
        channel = make_channel()
        await channel.open(chat_desk)
        await telegram_api.called("getUpdates")
        await channel.close()
        assert {task for task in asyncio.all_tasks() - before if "telegram" in task.get_name()} == set()


class TestWebhook:
    SECRET = "a-secret-of-the-test_0"

    @pytest.fixture
    async def hooked(self, telegram_api, make_channel, chat_desk, ops, make_card):
        settings = {"port": 0, "url": "https://sayso.example.org/telegram", "secret": self.SECRET}
        channel = make_channel(mode="webhook", webhook=settings)
        await channel.open(chat_desk)
        await until_state(channel, "ok")
        # The proxy that a real set-up has between Telegram and the port.
        telegram_api.updates.webhook["url"] = f"http://127.0.0.1:{channel._webhook.port}/telegram"
        await channel.post(make_card(), str(ops.id), NONCE)
        yield channel
        await channel.close()

    @pytest.mark.usefixtures("hooked")
    async def test_updates_that_are_brought_reach_the_desk_once(self, telegram_api, ops, ann, chat_desk):
        telegram_api.misbehave("webhook", faults.duplicate())
        press = telegram_api.press(telegram_api.sent(ops)[0], "Deny", ann)
        await telegram_api.answer_to(press)
        await telegram_api.updates_taken()
        assert [press.verb for press in chat_desk.presses] == ["d"]
        assert telegram_api.calls_of("getUpdates") == []

    @pytest.mark.parametrize("secret", [None, "", "a-secret-of-the-test_1", "a-secret-of-the-test_0x", "é"])
    async def test_who_does_not_know_the_secret_is_not_heard(self, hooked, chat_desk, secret):
        headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
        address = f"http://127.0.0.1:{hooked._webhook.port}/telegram"
        async with (
            aiohttp.ClientSession() as session,
            session.post(address, json={"update_id": 1}, headers=headers) as answer,
        ):
            assert answer.status == 403
        assert chat_desk.presses == []

    @pytest.mark.parametrize("body", [b"", b"[]", b"5", b"{}", b'{"update_id": "x", "message": 5}', b"\xff"])
    async def test_what_is_no_update_does_no_harm(self, hooked, body):
        address = f"http://127.0.0.1:{hooked._webhook.port}/telegram"
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.SECRET}
        async with (
            aiohttp.ClientSession() as session,
            session.post(address, data=body, headers=headers) as answer,
        ):
            assert answer.status == 400
        assert hooked.health()[0] == "ok"

    async def test_a_taken_port_is_a_start_error(self, hooked, make_channel, chat_desk):
        settings = {"port": hooked._webhook.port, "url": "https://x.example/t", "secret": self.SECRET}
        with pytest.raises(StartError, match=r"channels\.telegram\.webhook"):
            await make_channel(mode="webhook", webhook=settings).open(chat_desk)
