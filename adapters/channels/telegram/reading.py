"""What an update says, as values: pure. All that could be forged or replayed ends here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from telegram import CallbackQuery, Chat, MaybeInaccessibleMessage, Message, MessageEntity, Update, User

from adapters.channels.telegram.identity import Address, MessageRef, is_direct, sender_of
from core.model.chat import Press, Typed, Verb

COMMANDS = {
    "pending": "what waits for an answer",
    "approve": "ID [always]: allow a request",
    "deny": "ID [reason]: deny a request",
    "elevated": "on, off, ask or full for this session",
    "sayso": "status, lock, help",
}
_OURS = frozenset({*COMMANDS, "elev", "pair"})
_VERBS = "".join(Verb)
_DATA = re.compile(rf"(?P<verb>[{_VERBS}]):(?P<nonce>[A-Za-z0-9_-]{{22}})(?P<always>:a)?")

EDITED = "An edited message decides nothing. Send the command as a new message."
FORWARDED = "A forwarded message decides nothing. Type the command yourself."
ANONYMOUS = (
    "Commands of anonymous administrators and of channels are not taken: nobody can tell who sent them. "
    "Switch off “Remain anonymous” and send it again."
)
NOT_OURS = "This button is none of Sayso's."


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press, the query to answer, and where its message stands; `always` is what its buttons go on to."""

    query_id: str
    press: Press
    ref: MessageRef
    address: Address
    always: bool


@dataclass(frozen=True, slots=True)
class Commanded:
    """A typed command and where to answer it."""

    typed: Typed
    address: Address
    message: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A command or a press that is not taken, and why; `query_id` where it was a press."""

    words: str
    address: Address | None = None
    message: int | None = None
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A group that goes on as a supergroup."""

    old: int
    new: int


Read = Pressed | Commanded | Refused | Moved | None


def read(update: Update, username: str | None) -> Read:
    """Return what an update asks for; None where it is to be ignored."""
    if update.callback_query is not None:
        return _press(update.callback_query)
    if update.message is not None:
        return _message(update.message, username)
    if update.edited_message is not None and _of_a_person(update.edited_message):
        return _refused(update.edited_message, username, EDITED)
    return None


def _press(query: CallbackQuery) -> Read:
    if query.from_user.is_bot:
        return None
    matched = _DATA.fullmatch(query.data or "")
    if matched is None or query.message is None:
        return Refused(NOT_OURS, query_id=query.id)
    ref = MessageRef(query.message.chat.id, query.message.message_id)
    address = _address(query.message)
    sender = sender_of(query.from_user)
    press = Press(sender, str(address), str(ref), matched["verb"], matched["nonce"])
    return Pressed(query.id, press, ref, address, always=bool(matched["always"]))


def _message(message: Message, username: str | None) -> Read:
    if message.migrate_to_chat_id is not None:
        return Moved(message.chat.id, message.migrate_to_chat_id)
    command = _command(message, username)
    if command is None:
        return None
    if message.sender_chat is not None:
        return _refused(message, username, ANONYMOUS)
    if not _of_a_person(message):
        return None
    if message.forward_origin is not None:
        return _refused(message, username, FORWARDED)
    return _commanded(message, message.from_user, command)


def _commanded(message: Message, user: User | None, command: str) -> Commanded | None:
    if user is None:
        return None
    address = _address(message)
    typed = Typed(sender_of(user), str(address), command, is_direct(message.chat))
    return Commanded(typed, address, message.message_id)


def _of_a_person(message: Message) -> bool:
    user = message.from_user
    return user is not None and not user.is_bot and message.via_bot is None and message.sender_chat is None


def _refused(message: Message, username: str | None, words: str) -> Refused | None:
    """Say why, where the words go to somebody who addressed Sayso; channels are never answered."""
    command = _command(message, username)
    ours = command is not None and command.split(maxsplit=1)[0][1:] in _OURS
    if not ours or message.chat.type == Chat.CHANNEL or message.is_automatic_forward:
        return None
    return Refused(words, _address(message), message.message_id)


def _command(message: Message, username: str | None) -> str | None:
    """Return the text of a command that is meant for this bot, without the bot's name."""
    entity = next((one for one in message.entities if one.offset == 0), None)
    if entity is None or entity.type != MessageEntity.BOT_COMMAND or not message.text:
        return None
    name, _, bot = message.text[: entity.length].partition("@")
    if bot and bot.casefold() != (username or "").casefold():
        return None
    return name.casefold() + message.text[entity.length :]


def _address(message: MaybeInaccessibleMessage) -> Address:
    # Replies in groups without topics carry a thread id too; it is none of a topic.
    if isinstance(message, Message) and message.is_topic_message:
        return Address(message.chat.id, message.message_thread_id)
    return Address(message.chat.id)
