"""Who and where on Telegram: only numbers count, since names and @usernames can be changed and reused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.model.principal import Sender

if (
    TYPE_CHECKING
):  # places are read also where nobody is asked on Telegram, and its library takes long to import
    from telegram import Chat, User

CHANNEL = "telegram"

_TARGET = re.compile(r"(?:(user|channel|thread):)?(.+)", re.DOTALL)
_NUMBER = re.compile(r"-?[1-9][0-9]{0,15}")  # ids have at most 52 bits
_THREAD = re.compile(r"(-?[1-9][0-9]{0,15})/([1-9][0-9]{0,15})")
_GENERAL_TOPIC = 1


@dataclass(frozen=True, slots=True)
class Address:
    """A chat, and a topic of it where it has topics."""

    chat: int
    thread: int | None = None

    def __str__(self) -> str:
        return str(self.chat) if self.thread is None else f"{self.chat}/{self.thread}"


@dataclass(frozen=True, slots=True)
class MessageRef:
    """One message. The chat belongs to it: numbers begin anew where a group becomes a supergroup."""

    chat: int
    message: int

    def __str__(self) -> str:
        return f"{self.chat}/{self.message}"


def place_of(to: str) -> str:
    """Return the place that a target of the configuration names; ValueError says what is wrong with it.

    The topic "General" is the chat itself: Telegram refuses messages that are sent to it by its number.
    """
    matched = _TARGET.fullmatch(to.strip())
    kind, rest = matched.groups() if matched else (None, "")
    if rest.startswith("@"):
        raise ValueError(
            f"{to!r} is a name, and names can pass to somebody else: give the number of the chat"
        )
    if kind == "thread" or (kind is None and "/" in rest):
        return _thread_place(to, rest)
    if not _NUMBER.fullmatch(rest):
        raise ValueError(
            f"{to!r} names no chat: write user:ID, channel:ID, thread:CHAT/THREAD or the bare ID"
        )
    _check_sign(to, kind, rest)
    return rest


def owner_of(peer: str) -> str | None:
    """Return who alone speaks in the chat that a session names; None for groups and what is no chat."""
    try:
        place = place_of(peer)
    except ValueError:
        return None
    return place if place.isdecimal() else None


def address_of(place: str) -> Address:
    """Read a place; ValueError where it is none."""
    chat, _, thread = place_of(place).partition("/")
    return Address(int(chat), int(thread) if thread else None)


def ref_of(ref: str) -> MessageRef:
    """Read a reference that `post` gave; ValueError where it is none."""
    matched = _THREAD.fullmatch(ref)
    if matched is None:
        raise ValueError(f"{ref!r} is no message of a chat")
    return MessageRef(int(matched[1]), int(matched[2]))


def sender_of(user: User) -> Sender:
    """Say who a user is."""
    return Sender(CHANNEL, str(user.id), user.full_name, user.username)


def is_direct(chat: Chat) -> bool:
    """Tell whether nobody but the sender and the bot reads this chat."""
    return chat.type == chat.PRIVATE


def _thread_place(to: str, rest: str) -> str:
    matched = _THREAD.fullmatch(rest)
    if matched is None:
        raise ValueError(f"{to!r} names no topic: write thread:CHAT/THREAD, both as numbers")
    chat, thread = matched.groups()
    return chat if int(thread) == _GENERAL_TOPIC else f"{chat}/{thread}"


def _check_sign(to: str, kind: str | None, number: str) -> None:
    negative = number.startswith("-")
    if kind == "user" and negative:
        raise ValueError(f"{to!r} is a group or channel, not a user: write channel:{number}")
    if kind == "channel" and not negative:
        raise ValueError(
            f"{to!r} is a user: ids of groups and channels begin with a minus sign; "
            f"write user:{number} for the user"
        )
