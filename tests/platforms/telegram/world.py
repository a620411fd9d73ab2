"""The people, chats and messages that the server knows."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.platforms.telegram.errors import ApiError, bad_request
from tests.platforms.telegram.text import Entity, linked

ANONYMOUS_ADMIN_ID = 1087968824


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


@dataclass(eq=False)
class User:
    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False

    def json(self) -> dict[str, Any]:
        return _present(id=self.id, is_bot=self.is_bot, first_name=self.first_name, username=self.username)


class Access(StrEnum):
    """What stands between the bot and a chat; the values are the platform's words."""

    OPEN = "open"
    NOT_STARTED = "Forbidden: bot can't initiate conversation with a user"
    BLOCKED = "Forbidden: bot was blocked by the user"
    KICKED_GROUP = "Forbidden: bot was kicked from the group chat"
    KICKED_SUPERGROUP = "Forbidden: bot was kicked from the supergroup chat"
    KICKED_CHANNEL = "Forbidden: bot was kicked from the channel chat"
    DEACTIVATED = "Forbidden: user is deactivated"


@dataclass(eq=False)
class Chat:
    id: int
    type: str
    title: str | None = None
    username: str | None = None
    user: User | None = None
    members: dict[int, str] = field(default_factory=dict)
    topics: dict[int, str] = field(default_factory=dict)
    privacy: bool = True
    access: Access = Access.OPEN
    migrated_to: Chat | None = None

    def json(self) -> dict[str, Any]:
        name = self.user.first_name if self.user else None
        forum = True if self.topics else None
        return _present(
            id=self.id,
            type=self.type,
            title=self.title,
            username=self.username,
            first_name=name,
            is_forum=forum,
        )


@dataclass(eq=False)
class Document:
    """A file as the bot sent it."""

    file_id: str
    name: str
    mime: str
    content: bytes

    def json(self) -> dict[str, Any]:
        size = len(self.content)
        unique = f"u{self.file_id}"
        return _present(
            file_id=self.file_id,
            file_unique_id=unique,
            file_name=self.name,
            mime_type=self.mime,
            file_size=size,
        )


@dataclass(eq=False)
class Message:
    """A message; `text` is a document's caption too, `edits` are the texts it had before."""

    id: int
    chat: Chat
    sender: User | None
    text: str = ""
    entities: list[Entity] = field(default_factory=list)
    markup: dict[str, Any] | None = None
    document: Document | None = None
    thread: int | None = None
    reply_to: Message | None = None
    sender_chat: Chat | None = None
    forward_origin: dict[str, Any] | None = None
    silent: bool = False
    previews: bool = True
    by_bot: bool = False
    date: int = field(default_factory=lambda: int(time.time()))
    edit_date: int | None = None
    deleted: bool = False
    edits: list[str] = field(default_factory=list)
    service: dict[str, Any] = field(default_factory=dict)

    @property
    def buttons(self) -> list[list[str]]:
        """The labels of the inline buttons, row by row."""
        return [[button["text"] for button in row] for row in (self.markup or {}).get("inline_keyboard", [])]

    @property
    def begins_reply(self) -> bool:
        """Whether a client opens the input field for an answer to it."""
        return bool((self.markup or {}).get("force_reply"))

    @property
    def links(self) -> list[Entity]:
        """What the platform makes clickable in this text although nobody asked for it."""
        return linked(self.text, self.entities)

    def button(self, text: str) -> dict[str, Any]:
        """Find the button with exactly this label."""
        for row in (self.markup or {}).get("inline_keyboard", []):
            for button in row:
                if button["text"] == text:
                    return dict(button)
        raise AssertionError(f"message {self.id} has no button {text!r}, only {self.buttons}")

    def json(self) -> dict[str, Any]:
        words = ("caption", "caption_entities") if self.document else ("text", "entities")
        entities = sorted(self.entities + self.links, key=lambda entity: entity["offset"])
        inline = self.markup if self.markup and "inline_keyboard" in self.markup else None
        replied = self.reply_to.json() if self.reply_to else {}
        replied.pop("reply_to_message", None)  # the platform goes one message back, not further
        return self.service | _present(
            **{words[0]: self.text or None, words[1]: entities},
            message_id=self.id,
            date=self.date,
            chat=self.chat.json(),
            sender_chat=self.sender_chat.json() if self.sender_chat else None,
            document=self.document.json() if self.document else None,
            message_thread_id=self.thread,
            is_topic_message=True if self.thread else None,
            edit_date=self.edit_date,
            forward_origin=self.forward_origin,
            reply_markup=inline,
            reply_to_message=replied,
            **{"from": self.sender.json() if self.sender else None},
        )


class World:
    """Users, chats and messages, with ids like the platform's (beyond 32 bits, per-chat message ids)."""

    def __init__(self) -> None:
        self.bot = User(7_100_000_001, "Sayso", "sayso_test_bot", is_bot=True)
        self.anonymous_admin = User(ANONYMOUS_ADMIN_ID, "Group", "GroupAnonymousBot", is_bot=True)
        self.users = {user.id: user for user in (self.bot, self.anonymous_admin)}
        self.chats: dict[int, Chat] = {}
        self.messages: list[Message] = []
        self._user_ids = itertools.count(5_000_000_001)
        self._group_ids = itertools.count(4_000_001)
        self._topic_ids = itertools.count(11)
        self._shared_ids = itertools.count(1)
        self._own_ids: dict[int, itertools.count[int]] = {}

    def new_user(self, name: str, *, username: str | None = None, is_bot: bool = False) -> User:
        user = User(next(self._user_ids), name, username, is_bot=is_bot)
        self.users[user.id] = user
        return user

    def private_chat(self, user: User, *, started: bool = True) -> Chat:
        """Open (or find) the private chat with a user; a chat that was not started answers 403."""
        chat = self.chats.get(user.id)
        if chat is None:
            chat = Chat(user.id, "private", username=user.username, user=user, members={user.id: "member"})
            chat.access = Access.OPEN if started else Access.NOT_STARTED
            self.chats[chat.id] = chat
        return chat

    def new_group(self, title: str, *members: User, privacy: bool = True) -> Chat:
        return self._add(Chat(-next(self._group_ids), "group", title, privacy=privacy), members)

    def new_supergroup(
        self, title: str, *members: User, topics: tuple[str, ...] = (), privacy: bool = True
    ) -> Chat:
        chat = Chat(-1_000_000_000_000 - next(self._group_ids), "supergroup", title, privacy=privacy)
        chat.topics = {next(self._topic_ids): name for name in topics}
        return self._add(chat, members)

    def new_channel(self, title: str, *members: User, username: str | None = None) -> Chat:
        chat = Chat(-1_000_000_000_000 - next(self._group_ids), "channel", title, username)
        return self._add(chat, members)

    def _add(self, chat: Chat, members: tuple[User, ...]) -> Chat:
        bot = "administrator" if chat.type == "channel" else "member"
        chat.members = {self.bot.id: bot} | {user.id: "member" for user in members}
        self.chats[chat.id] = chat
        return chat

    def post(self, message: Message) -> Message:
        self.messages.append(message)
        return message

    def next_message_id(self, chat: Chat) -> int:
        """Count like the platform: on its own in a supergroup or channel, else over all chats."""
        if chat.type in {"private", "group"}:
            return next(self._shared_ids)
        return next(self._own_ids.setdefault(chat.id, itertools.count(1)))

    def find_chat(self, chat_id: int | str) -> Chat:
        if isinstance(chat_id, int):
            chat = self.chats.get(chat_id)
        else:
            public = [c for c in self.chats.values() if c.type != "private" and c.username]
            chat = next((c for c in public if f"@{c.username}" == chat_id), None)
        if chat is None:
            raise bad_request("chat not found")
        return chat

    def reachable_chat(self, chat_id: int | str) -> Chat:
        """Find a chat the bot may write to; say as the platform does why not."""
        chat = self.find_chat(chat_id)
        if chat.migrated_to:
            new_id = chat.migrated_to.id
            raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=new_id)
        if chat.access is not Access.OPEN:
            raise ApiError(403, chat.access.value)
        return chat

    def find_message(self, chat: Chat, message_id: int, missing: str) -> Message:
        for message in self.messages:
            if message.chat is chat and message.id == message_id and not message.deleted:
                return message
        raise bad_request(missing)
