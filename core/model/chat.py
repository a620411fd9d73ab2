"""What comes from a chat: who, where, what was pressed or typed. The core trusts none of it unchecked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Sender:
    """A user as the platform names it; only `id` is stable, the rest may be changed by the user at will.

    `tag` is `username#discriminator`, `address` an e-mail or similar address, `phone` in E.164 form.
    """

    channel: str
    id: str
    name: str = ""
    username: str | None = None
    tag: str | None = None
    address: str | None = None
    phone: str | None = None


class Verb(StrEnum):
    """What a button means; one character each, because platforms bound the length of button data."""

    ALLOW_ONCE = "o"
    ALLOW_ALWAYS = "a"
    DENY = "d"
    VIEW_ALL = "v"


@dataclass(frozen=True, slots=True)
class Press:
    """A pressed button: `nonce` is what the button carried, `place` and `ref` where its message stands."""

    sender: Sender
    place: str
    ref: str
    verb: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Typed:
    """A typed message; `direct` is true in a conversation of the sender with the bot alone.

    `bot` is the bot's own user name there, to tell commands that are addressed to another one.
    """

    sender: Sender
    place: str
    text: str
    direct: bool
    bot: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What to tell the sender; `private` goes to nobody else where the platform can do that.

    `document` is long text to send along as a file, whole.
    """

    text: str
    private: bool = True
    document: str | None = None


class NoticeKind(StrEnum):
    """What a notice tells of; each kind can be switched off."""

    DENIED = "denied"
    SECURITY = "security"
    ASKED_ELSEWHERE = "asked-elsewhere"
    FINISHED = "finished"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Notice:
    """A message that asks nothing; the text is already safe to show.

    Channels show the short form of `request_id` with it.
    """

    kind: NoticeKind
    text: str
    request_id: str | None = None
