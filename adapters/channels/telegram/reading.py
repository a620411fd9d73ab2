"""What an update says, as values: pure. All that could be forged or replayed ends here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from telegram import CallbackQuery, Chat, MaybeInaccessibleMessage, Message, MessageEntity, Update, User

from adapters.channels.telegram.identity import Address, MessageRef, is_direct, sender_of
from adapters.channels.telegram.prompt import asked_about
from core.model.chat import Press, Typed, Verb
from core.model.standing import LONGEST_MS, SHORTEST_MS

COMMANDS = {
    "pending": "what waits for an answer",
    "approve": "ID [always [any]] or [for 30m]: allow a request",
    "deny": "ID [always] [reason]: deny a request",
    "elevated": "on, ask, full or off [for 30m]: where commands run, and who is asked; alone: how it stands",
    "elev": "the same as /elevated",
    "sayso": "status, lock, bind SESSION or help",
}
_OURS = frozenset({*COMMANDS, "pair"})
_VERBS = "".join(Verb)
_DATA = re.compile(rf"(?P<verb>[{_VERBS}]):(?P<nonce>[A-Za-z0-9_-]{{22}})(?::(?P<ms>[1-9][0-9]{{0,9}}))?")

EDITED = "An edited message decides nothing. Send it as a new message."
FORWARDED = "A forwarded message decides nothing. Type the command yourself."
ANONYMOUS = (
    "Commands of anonymous administrators and of channels are not taken: nobody can tell who sent them. "
    "Switch off “Remain anonymous” and send it again."
)
NOT_TEXT = "The reason has to be text. Reply to the same message once more."
NOT_OURS = "This button is none of Sayso's."
TOO_OLD = "This choice is no longer open. Type the command once more."


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press, the query to answer, and where its message stands."""

    query_id: str
    press: Press
    ref: MessageRef
    address: Address


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


def read(update: Update, me: User | None) -> Read:
    """Return what an update asks for; None where it is to be ignored. `me` is the bot, once that is known."""
    if update.callback_query is not None:
        return _press(update.callback_query)
    if update.message is not None:
        return _message(update.message, me)
    if update.edited_message is not None and _of_a_person(update.edited_message):
        return _refused(update.edited_message, me, EDITED)
    return None


def _press(query: CallbackQuery) -> Read:
    if query.from_user.is_bot:
        return None
    matched = _DATA.fullmatch(query.data or "")
    if matched is None or query.message is None or not _time_fits(matched):
        return Refused(NOT_OURS, query_id=query.id)
    words = _why_not_chosen(query.message, matched)
    if words:
        return Refused(words, query_id=query.id)
    ref = MessageRef(query.message.chat.id, query.message.message_id)
    address = _address(query.message)
    sender = sender_of(query.from_user)
    for_ms = int(matched["ms"]) if matched["ms"] else None
    press = Press(sender, str(address), str(ref), matched["verb"], matched["nonce"], for_ms)
    return Pressed(query.id, press, ref, address)


def _time_fits(data: re.Match[str]) -> bool:
    """Tell whether there is a time exactly where one belongs, and one that can be given."""
    if data["verb"] != Verb.ALLOW_FOR:
        return data["ms"] is None
    return data["ms"] is not None and SHORTEST_MS <= int(data["ms"]) <= LONGEST_MS


def _why_not_chosen(message: MaybeInaccessibleMessage, data: re.Match[str]) -> str | None:
    """Say why a choice is not taken: its answer takes the place of its message, which must be the one."""
    if data["verb"] != Verb.CHOOSE:
        return None
    if not isinstance(message, Message) or not message.is_accessible:
        return TOO_OLD
    rows = message.reply_markup.inline_keyboard if message.reply_markup else ()
    return None if any(button.callback_data == data[0] for row in rows for button in row) else NOT_OURS


def _message(message: Message, me: User | None) -> Read:
    if message.migrate_to_chat_id is not None:
        return Moved(message.chat.id, message.migrate_to_chat_id)
    command = _meant(message, me)
    if command is None or not (message.sender_chat or _of_a_person(message)):
        return None
    words = _why_not_taken(message)
    return _refused(message, me, words) if words else _commanded(message, message.from_user, command)


def _why_not_taken(message: Message) -> str | None:
    if message.sender_chat is not None:
        return ANONYMOUS
    if message.forward_origin is not None:
        return FORWARDED
    return NOT_TEXT if message.text is None else None


def _commanded(message: Message, user: User | None, command: str) -> Commanded | None:
    if user is None:
        return None
    address = _address(message)
    typed = Typed(sender_of(user), str(address), command, is_direct(message.chat))
    return Commanded(typed, address, message.message_id)


def _of_a_person(message: Message) -> bool:
    user = message.from_user
    return user is not None and not user.is_bot and message.via_bot is None and message.sender_chat is None


def _refused(message: Message, me: User | None, words: str) -> Refused | None:
    """Say why, where the words go to somebody who addressed Sayso; channels are never answered."""
    command = _meant(message, me)
    if (
        command is None
        or not _is_ours(command)
        or message.chat.type == Chat.CHANNEL
        or message.is_automatic_forward
    ):
        return None
    return Refused(words, _address(message), message.message_id)


def _meant(message: Message, me: User | None) -> str | None:
    """Return the command that a message gives this bot; a reason that it asked for makes one too.

    The reason goes below the first line: there no word of it can be read as anything else.
    """
    leading = _leading_command(message)
    command = _command(message, leading, me) if leading else None
    about = asked_about(message, me)
    if about is None or (leading and (command is None or _is_ours(command))):
        return command
    return f"/deny {about}\n{message.text or ''}"


def _leading_command(message: Message) -> MessageEntity | None:
    entity = next((one for one in message.entities if one.offset == 0), None)
    return entity if entity is not None and entity.type == MessageEntity.BOT_COMMAND else None


def _command(message: Message, leading: MessageEntity, me: User | None) -> str | None:
    """Return the text of a command that is meant for this bot, without the bot's name."""
    text = message.text or ""
    name, _, bot = text[: leading.length].partition("@")
    if bot and bot.casefold() != ((me and me.username) or "").casefold():
        return None
    return name.casefold() + text[leading.length :]


def _is_ours(command: str) -> bool:
    return command.split(maxsplit=1)[0][1:] in _OURS


def _address(message: MaybeInaccessibleMessage) -> Address:
    # Replies in groups without topics carry a thread id too; it is none of a topic.
    if isinstance(message, Message) and message.is_topic_message:
        return Address(message.chat.id, message.message_thread_id)
    return Address(message.chat.id)
