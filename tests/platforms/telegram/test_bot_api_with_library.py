"""The server against the real python-telegram-bot."""

from __future__ import annotations

import asyncio

import pytest
from telegram import (
    BotCommandScopeChat,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
    User,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TimedOut,
)
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from tests.platforms.telegram import faults

CARD = InlineKeyboardMarkup(
    [
        [
            InlineKeyboardButton("Allow", callback_data="ap:1"),
            InlineKeyboardButton("Deny", callback_data="dn:1"),
        ]
    ]
)


async def card(update, _context):
    await update.message.reply_text("rm -rf build", reply_markup=CARD)


async def decided(update, _context):
    await update.callback_query.answer("You allowed it.")
    await update.callback_query.edit_message_text(
        f"{update.callback_query.data} by {update.effective_user.id}"
    )


@pytest.fixture
def ada(telegram_api):
    return telegram_api.new_user("Ada", username="ada_l")


@pytest.fixture
def chat(telegram_api, ada):
    return telegram_api.private_chat(ada)


@pytest.fixture
def seen():
    return []


@pytest.fixture
def watch(seen):
    async def note(update, _context):
        seen.append(update)

    return note


async def test_a_command_and_a_press_go_through_the_library_and_back(telegram_api, poll, ada, chat):
    await poll(CommandHandler("card", card), CallbackQueryHandler(decided))

    telegram_api.say(chat, ada, "/card")
    message = await telegram_api.message_when(lambda m: m.text == "rm -rf build")
    assert message.buttons == [["Allow", "Deny"]]

    press = telegram_api.press(message, "Allow", ada)
    assert (await telegram_api.answer_to(press)).text == "You allowed it."
    edited = await telegram_api.message_when(lambda m: m.text == f"ap:1 by {ada.id}")
    assert edited is message
    assert edited.buttons == []
    assert edited.edits == ["rm -rf build"]


async def test_taken_updates_are_confirmed_when_the_library_stops(telegram_api, poll, ada, chat, seen, watch):
    application = await poll(MessageHandler(filters.ALL, watch))
    telegram_api.say(chat, ada, "hello")
    await telegram_api.updates_taken()
    await application.updater.stop()
    assert [update.message.text for update in seen] == ["hello"]
    await application.updater.start_polling(timeout=5)


async def test_who_says_what_arrives_as_the_platform_would_tell_it(telegram_api, poll, ada, seen, watch):
    group = telegram_api.new_supergroup("Ops", ada, topics=("deploys",), privacy=False)
    (topic,) = group.topics
    await poll(MessageHandler(filters.ALL, watch))

    telegram_api.say(group, ada, "/go@sayso_test_bot now", thread=topic)
    telegram_api.say(group, ada, "later", edited=True)
    telegram_api.say(group, ada, "passed on", forwarded=True)
    telegram_api.say(group, None, "hidden", as_anonymous_admin=True)
    telegram_api.say(group, ada, "beep", as_bot=True)
    await telegram_api.updates_taken()

    command, edited, forwarded, hidden, bot = seen
    assert command.message.entities[0].type == MessageEntity.BOT_COMMAND
    assert (command.message.entities[0].length, command.message.message_thread_id) == (18, topic)
    assert edited.message is None
    assert edited.edited_message.text == "later"
    assert forwarded.message.forward_origin.sender_user.id == ada.id
    assert (hidden.message.from_user.id, hidden.message.sender_chat.id) == (1087968824, group.id)
    assert (bot.message.from_user.is_bot, bot.message.from_user.id) == (True, ada.id)


async def test_privacy_mode_lets_only_commands_for_this_bot_and_replies_to_it_through(telegram_api, bot, ada):
    group = telegram_api.new_group("Ops", ada)
    await bot.send_message(group.id, "a card")
    telegram_api.say(group, ada, "chatter")
    telegram_api.say(group, ada, "/go@other_bot")
    telegram_api.say(group, ada, "/go")
    telegram_api.say(group, ada, "because", reply_to=telegram_api.sent(group)[0])
    assert [update.message.text for update in await bot.get_updates()] == ["/go", "because"]


async def test_two_pollers_get_in_each_others_way(telegram_api, bot, ask):
    polled = asyncio.create_task(bot.get_updates(timeout=5), name="first poller")
    await telegram_api.called("getUpdates")
    assert (await ask("getUpdates"))[0] == 200
    with pytest.raises(Conflict):
        await polled


async def test_unconfirmed_updates_come_again_and_confirmed_ones_do_not(telegram_api, bot, ada, chat):
    for text in ("one", "two", "three"):
        telegram_api.say(chat, ada, text)
    first = await bot.get_updates(limit=2)
    assert [u.message.text for u in await bot.get_updates()] == ["one", "two", "three"]
    assert [u.message.text for u in await bot.get_updates(offset=first[-1].update_id + 1)] == ["three"]
    assert len(telegram_api.updates.pending) == 1
    assert [u.message.text for u in await bot.get_updates(offset=-1)] == ["three"]


async def test_a_poll_waits_for_its_timeout_and_no_longer(telegram_api, ask):
    assert await ask("getUpdates", timeout=1) == (200, {"ok": True, "result": []})
    (first,) = telegram_api.calls_of("getUpdates")
    await ask("getMe")
    assert 1 <= telegram_api.calls[-1].at - first.at < 3


async def test_a_document_arrives_with_name_type_bytes_and_caption(telegram_api, bot, chat):
    content = b"rm -rf build\n" * 1000
    await bot.send_document(
        chat.id, document=content, filename="command.txt", caption="all of it", reply_markup=CARD
    )
    (document,) = telegram_api.documents(chat)
    assert (document.name, document.mime, document.content) == ("command.txt", "text/plain", content)
    (message,) = telegram_api.messages(chat)
    assert (message.text, message.buttons) == ("all of it", [["Allow", "Deny"]])


@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
@pytest.mark.parametrize(
    ("fault", "error", "sent"),
    [
        (faults.flood(3), RetryAfter, 0),
        (faults.server_error(500), NetworkError, 0),
        (faults.server_error(502, html=True), NetworkError, 0),
        (faults.unauthorized(), InvalidToken, 0),
        (faults.drop_before(), NetworkError, 0),
        (faults.drop_after(), NetworkError, 1),
        (faults.slow(0.8), TimedOut, 1),
    ],
    ids=["429", "500", "502", "401", "dropped-before", "dropped-after", "slow"],
)
async def test_a_fault_hits_one_request_and_the_next_one_goes_well(
    telegram_api, bot, chat, fault, error, sent
):
    telegram_api.misbehave("sendMessage", fault)
    with pytest.raises(error):
        await bot.send_message(chat.id, "once")
    assert len(telegram_api.messages(chat)) == sent
    await bot.send_message(chat.id, "again")
    assert len(telegram_api.messages(chat)) == sent + 1


async def test_editing_can_fail_as_the_platform_lets_it_fail(telegram_api, bot, ada, chat):
    message = await bot.send_message(chat.id, "text", reply_markup=CARD)
    with pytest.raises(BadRequest, match="Message is not modified"):
        await message.edit_text("text", reply_markup=CARD)
    telegram_api.misbehave("editMessageText", faults.edit_not_found())
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await message.edit_text("other")
    said = telegram_api.say(chat, ada, "mine")
    with pytest.raises(BadRequest, match="Message can't be edited"):
        await bot.edit_message_text("ours", chat.id, said.id)
    await message.delete()
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await message.edit_text("other")
    assert telegram_api.messages(chat) == [said]
    assert telegram_api.violations == []


async def test_chats_that_the_bot_cannot_reach_say_why(telegram_api, bot, ada, chat):
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(12345, "who?")
    stranger = telegram_api.private_chat(telegram_api.new_user("Eve"), started=False)
    with pytest.raises(Forbidden, match="can't initiate"):
        await bot.send_message(stranger.id, "hello")
    telegram_api.remove_bot(chat)
    with pytest.raises(Forbidden, match="blocked by the user"):
        await bot.send_message(chat.id, "hello")
    telegram_api.say(chat, ada, "/start")
    await bot.send_message(chat.id, "hello")


async def test_a_group_that_became_a_supergroup_names_its_new_id(telegram_api, bot, ada):
    group = telegram_api.new_group("Ops", ada)
    new = telegram_api.migrate(group)
    with pytest.raises(ChatMigrated) as caught:
        await bot.send_message(group.id, "hello")
    assert caught.value.new_chat_id == new.id
    await bot.send_message(new.id, "hello")
    first, second = await bot.get_updates()
    assert (first.message.migrate_to_chat_id, second.message.migrate_from_chat_id) == (new.id, group.id)


async def test_a_duplicate_batch_repeats_each_update_and_a_reordered_one_turns_two_round(
    telegram_api, bot, ada, chat
):
    telegram_api.misbehave("getUpdates", faults.duplicate())
    telegram_api.say(chat, ada, "one")
    assert [u.message.text for u in await bot.get_updates()] == ["one", "one"]
    telegram_api.misbehave("getUpdates", faults.reorder())
    assert await bot.get_updates() == ()
    telegram_api.say(chat, ada, "two")
    assert [u.message.text for u in await bot.get_updates()] == ["two", "one"]
    assert [u.message.text for u in await bot.get_updates()] == ["one", "two"]


async def test_presses_may_claim_any_data_and_lose_their_message(telegram_api, bot, ada, chat):
    await bot.send_message(chat.id, "card", reply_markup=CARD)
    (message,) = telegram_api.messages(chat)
    telegram_api.press_raw(message, "forged", ada)
    press = telegram_api.press(message, "Deny", ada, inaccessible=True)
    forged, lost = await bot.get_updates()
    assert forged.callback_query.data == "forged"
    assert lost.callback_query.message.date.year == 1970
    assert lost.callback_query.message.is_accessible is False
    press.expired = True
    with pytest.raises(BadRequest, match="too old"):
        await lost.callback_query.answer()
    with pytest.raises(AssertionError, match="no button 'Always'"):
        telegram_api.press(message, "Always", ada)


async def test_a_stopped_server_comes_back_on_its_port_with_its_world(telegram_api, bot, chat):
    await bot.send_message(chat.id, "before")
    await telegram_api.stop()
    with pytest.raises(NetworkError):
        await bot.send_message(chat.id, "meanwhile")
    await telegram_api.start()
    await bot.send_message(chat.id, "after")
    assert [m.text for m in telegram_api.messages(chat)] == ["before", "after"]


async def test_chats_members_and_menus_can_be_asked_for(telegram_api, bot, ada, chat):
    group = telegram_api.new_group("Ops", ada)
    group.members[ada.id] = "administrator"
    assert (await bot.get_chat(group.id)).title == "Ops"
    assert (await bot.get_chat(chat.id)).username == "ada_l"
    assert (await bot.get_chat_member(group.id, ada.id)).status == "administrator"
    assert (await bot.get_chat_member(group.id, telegram_api.new_user("Eve").id)).status == "left"
    await bot.set_my_commands([("approve", "allow a request"), ("deny", "refuse a request")])
    assert telegram_api.menu() == {"approve": "allow a request", "deny": "refuse a request"}
    await bot.send_chat_action(chat.id, "typing")
    assert telegram_api.methods.actions == [(chat, "typing")]


async def test_a_menu_can_belong_to_one_chat_that_is_there(telegram_api, bot, chat):
    await bot.set_my_commands([("pair", "connect")])
    await bot.set_my_commands([("deny", "refuse")], scope=BotCommandScopeChat(chat.id))
    assert (telegram_api.menu(), telegram_api.menu_of(chat)) == ({"pair": "connect"}, {"deny": "refuse"})
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.set_my_commands([("deny", "refuse")], scope=BotCommandScopeChat(chat.id + 1))


async def test_a_reply_shows_the_message_before_it_and_none_before_that(telegram_api, bot, ada):
    group = telegram_api.new_supergroup("Ops", ada)
    card = await bot.send_message(group.id, "a card")
    await bot.send_message(
        group.id, "why?", reply_markup=ForceReply(selective=True), reply_parameters=ReplyParameters(card.id)
    )
    question = telegram_api.sent(group)[1]
    assert (question.begins_reply, question.buttons) == (True, [])
    telegram_api.say(group, ada, "because", reply_to=question)
    (update,) = await bot.get_updates()
    asked = update.message.reply_to_message
    assert (asked.text, asked.from_user.id, asked.reply_to_message) == ("why?", bot.id, None)


async def test_only_somebody_who_is_there_is_mentioned(telegram_api, bot, ada, chat):
    for user in (User(ada.id, "x", is_bot=False), User(ada.id + 1_000, "x", is_bot=False)):
        mention = MessageEntity(MessageEntity.TEXT_MENTION, 0, 3, user=user)
        await bot.send_message(chat.id, "you there", entities=[mention])
    assert [len(message.entities) for message in telegram_api.sent(chat)] == [1, 0]


async def test_a_thread_is_one_of_the_chat(telegram_api, bot, ada):
    group = telegram_api.new_supergroup("Ops", ada, topics=("deploys",))
    (topic,) = group.topics
    await bot.send_message(group.id, "card", message_thread_id=topic)
    assert telegram_api.messages(group)[0].thread == topic
    with pytest.raises(BadRequest, match="thread not found"):
        await bot.send_message(group.id, "card", message_thread_id=topic + 1)


async def test_a_channel_keeps_the_bots_posts_and_others_apart(telegram_api, bot, ada):
    news = telegram_api.new_channel("News", ada, username="the_news")
    telegram_api.say(news, ada, "/pending")
    post = await bot.send_message("@the_news", "card")
    assert [m.text for m in telegram_api.sent(news)] == ["card"]
    assert post.sender_chat.id == news.id
    await post.edit_text("done")
    (update,) = await bot.get_updates()
    assert (update.channel_post.text, update.channel_post.from_user) == ("/pending", None)
    with pytest.raises(BadRequest, match="can't be edited"):
        await bot.edit_message_text("ours", news.id, update.channel_post.message_id)
