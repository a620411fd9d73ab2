"""What the methods do to the world."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.platforms.telegram import rules
from tests.platforms.telegram.description import TYPES
from tests.platforms.telegram.errors import bad_request
from tests.platforms.telegram.text import Entity
from tests.platforms.telegram.updates import Signal, Updates
from tests.platforms.telegram.world import Chat, Document, Message, User, World

Values = dict[str, Any]

_REQUIRED_FLAG = {"types": ["Boolean"], "required": True}
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a"
    " current content and reply markup of the message"
)
_RIGHTS = [n for n, f in TYPES["ChatMemberAdministrator"]["fields"].items() if f == _REQUIRED_FLAG]
_GIFTS = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")


@dataclass(eq=False)
class CallbackAnswer:
    """What the bot answered to a press."""

    query_id: str
    text: str
    show_alert: bool
    user: User


@dataclass(eq=False)
class Press:
    """A press on a button, or a claim of one."""

    query_id: str
    user: User
    message: Message
    data: str
    expired: bool = False


class Methods:
    """The implemented methods, by name in `table`."""

    def __init__(self, world: World, updates: Updates, changed: Signal) -> None:
        self._world = world
        self._updates = updates
        self._changed = changed
        self._file_ids = itertools.count(1)
        self.presses: dict[str, Press] = {}
        self.answers: list[CallbackAnswer] = []
        self.actions: list[tuple[Chat, str]] = []
        self.menus: dict[tuple[str, str], dict[str, str]] = {}
        self.table: dict[str, Callable[[Values], Any]] = {
            "answerCallbackQuery": self._answer_callback_query,
            "deleteMessage": self._delete_message,
            "deleteWebhook": self._delete_webhook,
            "editMessageReplyMarkup": self._edit_message_reply_markup,
            "editMessageText": self._edit_message_text,
            "getChat": self._get_chat,
            "getChatMember": self._get_chat_member,
            "getMe": self._get_me,
            "getUpdates": self._updates.poll,
            "getWebhookInfo": self._get_webhook_info,
            "sendChatAction": self._send_chat_action,
            "sendDocument": self._send_document,
            "sendMessage": self._send_message,
            "setMyCommands": self._set_my_commands,
            "setWebhook": self._set_webhook,
        }

    # -- the bot and its chats

    def _get_me(self, _values: Values) -> Any:
        flags = ("can_join_groups", "supports_inline_queries", "can_connect_to_business", "has_main_web_app")
        sees_all = {"can_read_all_group_messages": False}
        return self._world.bot.json() | sees_all | {name: name == "can_join_groups" for name in flags}

    def _get_chat(self, values: Values) -> Any:
        chat = self._world.find_chat(values["chat_id"])
        gifts = dict.fromkeys(_GIFTS, True)
        return chat.json() | {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}

    def _get_chat_member(self, values: Values) -> Any:
        chat = self._world.reachable_chat(values["chat_id"])
        user = self._world.users.get(values["user_id"])
        if user is None:
            raise bad_request("PARTICIPANT_ID_INVALID")
        status = chat.members.get(user.id, "left")
        member: dict[str, Any] = {"status": status, "user": user.json()}
        if status == "creator":
            member["is_anonymous"] = False
        return member | (dict.fromkeys(_RIGHTS, False) if status == "administrator" else {})

    def _set_my_commands(self, values: Values) -> bool:
        rules.commands(values["commands"])
        wanted = values.get("scope", {"type": "default"})
        if "chat_id" in wanted:
            self._world.reachable_chat(wanted["chat_id"])
        scope = json.dumps(wanted, sort_keys=True)
        menu = {command["command"]: command["description"] for command in values["commands"]}
        self.menus[scope, values.get("language_code", "")] = menu
        return True

    # -- updates

    def _set_webhook(self, values: Values) -> bool:
        rules.secret_token(values.get("secret_token"))
        self._updates.allow(values.get("allowed_updates"))
        self._drop_pending(values)
        self._updates.webhook = values if values["url"] else {}
        self._updates.changed.fire()
        return True

    def _delete_webhook(self, values: Values) -> bool:
        self._drop_pending(values)
        self._updates.webhook = {}
        return True

    def _drop_pending(self, values: Values) -> None:
        if values.get("drop_pending_updates"):
            self._updates.pending.clear()

    def _get_webhook_info(self, _values: Values) -> Any:
        url, waiting = self._updates.webhook.get("url", ""), len(self._updates.pending)
        return {"url": url, "has_custom_certificate": False, "pending_update_count": waiting}

    # -- messages

    def _send_message(self, values: Values) -> Any:
        text, entities = rules.text_of(values)
        return self._post(values, text, entities)

    def _send_document(self, values: Values) -> Any:
        file = rules.upload(values["document"])
        caption, entities = rules.text_of(values, "caption")
        document = Document(f"file{next(self._file_ids)}", file.name, file.mime, file.content)
        return self._post(values, caption, entities, document)

    def _post(
        self, values: Values, text: str, entities: list[Entity], document: Document | None = None
    ) -> Any:
        markup = rules.keyboard(values.get("reply_markup"))
        chat = self._world.reachable_chat(values["chat_id"])
        message = Message(
            id=self._world.next_message_id(chat),
            chat=chat,
            sender=None if chat.type == "channel" else self._world.bot,
            sender_chat=chat if chat.type == "channel" else None,
            text=text,
            entities=[entity for entity in entities if self._is_known(entity)],
            markup=markup,
            document=document,
            thread=self._thread(chat, values.get("message_thread_id")),
            by_bot=True,
            reply_to=self._replied(chat, values.get("reply_parameters")),
            silent=values.get("disable_notification", False),
            previews=not values.get("link_preview_options", {}).get("is_disabled", False),
        )
        self._world.post(message)
        self._changed.fire()
        return message.json()

    def _is_known(self, entity: Entity) -> bool:
        """Tell whether a mentioned user is one; the platform leaves out the mention of any other."""
        return "user" not in entity or entity["user"].get("id") in self._world.users

    def _thread(self, chat: Chat, thread: int | None) -> int | None:
        if thread is not None and thread not in chat.topics:
            raise bad_request("message thread not found")
        return thread

    def _replied(self, chat: Chat, reply: dict[str, Any] | None) -> Message | None:
        if reply is None:
            return None
        found = [
            m
            for m in self._world.messages
            if m.chat is chat and m.id == reply.get("message_id") and not m.deleted
        ]
        if not found and not reply.get("allow_sending_without_reply"):
            raise bad_request("message to be replied not found")
        return found[0] if found else None

    def _own_message(self, values: Values) -> Message:
        if "inline_message_id" in values or not {"chat_id", "message_id"} <= set(values):
            raise rules.wrong("message identifier is not specified (chat_id and message_id)")
        chat = self._world.reachable_chat(values["chat_id"])
        message = self._world.find_message(chat, values["message_id"], "message to edit not found")
        if not message.by_bot:
            raise bad_request("message can't be edited")
        return message

    def _edit_message_text(self, values: Values) -> Any:
        text, entities = rules.text_of(values)
        markup = rules.keyboard(values.get("reply_markup"))
        message = self._own_message(values)
        if message.document:
            raise bad_request("there is no text in the message to edit")
        if (message.text, message.entities, message.markup) == (text, entities, markup):
            raise bad_request(_NOT_MODIFIED)
        message.edits.append(message.text)
        message.text, message.entities = text, entities
        return self._edited(message, markup)

    def _edit_message_reply_markup(self, values: Values) -> Any:
        markup = rules.keyboard(values.get("reply_markup"))
        message = self._own_message(values)
        if message.markup == markup:
            raise bad_request(_NOT_MODIFIED)
        return self._edited(message, markup)

    def _edited(self, message: Message, markup: dict[str, Any] | None) -> Any:
        message.markup = markup
        message.edit_date = int(time.time())
        self._changed.fire()
        return message.json()

    def _delete_message(self, values: Values) -> bool:
        chat = self._world.reachable_chat(values["chat_id"])
        message = self._world.find_message(chat, values["message_id"], "message to delete not found")
        administers = chat.members.get(self._world.bot.id) == "administrator"
        if not message.by_bot and not administers and chat.type != "private":
            raise bad_request("message can't be deleted")
        message.deleted = True
        self._changed.fire()
        return True

    def _send_chat_action(self, values: Values) -> bool:
        if values["action"] not in rules.ACTIONS:
            raise rules.wrong("wrong parameter action in request")
        chat = self._world.reachable_chat(values["chat_id"])
        self._thread(chat, values.get("message_thread_id"))
        self.actions.append((chat, values["action"]))
        return True

    # -- presses

    def _answer_callback_query(self, values: Values) -> bool:
        text = values.get("text", "")
        if len(text) > rules.ANSWER_CHARACTERS:
            raise rules.wrong("MESSAGE_TOO_LONG: the answer to a callback query has at most 200 characters")
        press = self.presses.get(values["callback_query_id"])
        if press is None or press.expired:
            raise bad_request("query is too old and response timeout expired or query ID is invalid")
        self.answers.append(CallbackAnswer(press.query_id, text, values.get("show_alert", False), press.user))
        self._changed.fire()
        return True
