"""What people do: say, press, block, move."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

from tests.platforms.telegram.methods import Methods, Press
from tests.platforms.telegram.text import part
from tests.platforms.telegram.updates import Updates
from tests.platforms.telegram.world import Access, Chat, Message, User, World


class People:
    """Acts in the world and tells the bot what the platform would tell it."""

    def __init__(self, world: World, updates: Updates, methods: Methods) -> None:
        self._world = world
        self._updates = updates
        self._methods = methods
        self._query_ids = itertools.count(4_382_000_000_000_000_001)

    def say(
        self,
        chat: Chat,
        user: User | None,
        text: str,
        *,
        edited: bool = False,
        forwarded: bool = False,
        as_anonymous_admin: bool = False,
        as_bot: bool = False,
        thread: int | None = None,
        reply_to: Message | None = None,
    ) -> Message:
        """Write a message; the bot gets it if the chat's privacy mode lets it (`edited`: only the edit)."""
        message = Message(
            self._world.next_message_id(chat), chat, user, text, thread=thread, reply_to=reply_to
        )
        if as_anonymous_admin:
            message.sender, message.sender_chat = self._world.anonymous_admin, chat
        if chat.type == "channel":
            message.sender, message.sender_chat = None, chat
        if as_bot:
            assert user, "as_bot needs a user to look like"
            message.sender = replace(user, is_bot=True)
        if forwarded:
            message.forward_origin = self._origin(user)
        if edited:
            message.edit_date = message.date + 1
        self._world.post(message)
        if chat.type == "private" and chat.access in {Access.NOT_STARTED, Access.BLOCKED}:
            chat.access = Access.OPEN
        self._tell(message)
        return message

    def edit(self, message: Message, text: str) -> None:
        """Edit what somebody said."""
        message.edits.append(message.text)
        message.text, message.edit_date = text, int(time.time())
        self._tell(message)

    def _origin(self, user: User | None) -> dict[str, Any]:
        author = user or self._world.anonymous_admin
        return {"type": "user", "date": int(time.time()) - 60, "sender_user": author.json()}

    def _tell(self, message: Message) -> None:
        if not self._bot_sees(message):
            return
        kind = "channel_post" if message.chat.type == "channel" else "message"
        self._updates.add(f"edited_{kind}" if message.edit_date else kind, message.json())

    def _bot_sees(self, message: Message) -> bool:
        """Apply privacy mode: commands that may be for this bot, and replies to it."""
        chat, bot = message.chat, self._world.bot
        if chat.access is not Access.OPEN:
            return False
        if (
            chat.type in {"private", "channel"}
            or not chat.privacy
            or chat.members.get(bot.id) == "administrator"
        ):
            return True
        if message.reply_to is not None and message.reply_to.sender is bot:
            return True
        commands = [part(message.text, e) for e in message.links if e["type"] == "bot_command"]
        return any("@" not in command or command.lower().endswith(f"@{bot.username}") for command in commands)

    def press(self, message: Message, button_text: str, user: User, *, inaccessible: bool = False) -> Press:
        """Press the button with this label."""
        button = message.button(button_text)
        assert "callback_data" in button, f"button {button_text!r} sends no callback query: {button}"
        return self.press_raw(message, button["callback_data"], user, inaccessible=inaccessible)

    def press_raw(self, message: Message, data: str, user: User, *, inaccessible: bool = False) -> Press:
        """Send a callback query with any data, as a hostile client may."""
        press = Press(str(next(self._query_ids)), user, message, data)
        self._methods.presses[press.query_id] = press
        shown = message.json()
        if message.deleted or inaccessible:
            shown = {"chat": message.chat.json(), "message_id": message.id, "date": 0}
        query = {"id": press.query_id, "from": user.json(), "message": shown, "data": data}
        self._updates.add("callback_query", query | {"chat_instance": str(message.chat.id * -7)})
        return press

    def repeat_press(self, press: Press) -> None:
        """Deliver a press again as a new update with the same query id."""
        shown = press.message.json()
        query = {"id": press.query_id, "from": press.user.json(), "message": shown, "data": press.data}
        self._updates.add("callback_query", query | {"chat_instance": str(press.message.chat.id * -7)})

    def remove_bot(self, chat: Chat) -> None:
        """Block the bot (private chat) or throw it out: writing to the chat answers 403 from now on."""
        chat.access = {
            "private": Access.BLOCKED,
            "group": Access.KICKED_GROUP,
            "supergroup": Access.KICKED_SUPERGROUP,
            "channel": Access.KICKED_CHANNEL,
        }[chat.type]

    def migrate(self, group: Chat) -> Chat:
        """Turn a group into a supergroup with another id; its messages stay behind."""
        new = self._world.new_supergroup(group.title or "", privacy=group.privacy)
        new.members = dict(group.members)
        group.migrated_to = new
        for chat, service in (
            (group, {"migrate_to_chat_id": new.id}),
            (new, {"migrate_from_chat_id": group.id}),
        ):
            sender = self._world.anonymous_admin
            message = Message(self._world.next_message_id(chat), chat, sender, service=dict(service))
            self._updates.add("message", self._world.post(message).json())
        return new
