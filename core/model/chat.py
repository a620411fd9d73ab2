"""What comes from a chat: who, where, what was pressed or typed. The core trusts none of it unchecked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.model.card import Card
from core.model.principal import Sender


class Verb(StrEnum):
    """What a button means; one character each, because platforms bound the length of button data."""

    ALLOW_ONCE = "o"
    ALLOW_ALWAYS = "a"
    ALLOW_ALWAYS_ANY = "y"
    DENY = "d"
    VIEW_ALL = "v"
    MORE = "m"
    LESS = "l"
    ALLOW_FOR = "f"
    DENY_ALWAYS = "n"
    DENY_BECAUSE = "r"
    CHOOSE = "c"

    @property
    def navigates(self) -> bool:
        """Whether it only changes what the message offers; nothing is decided by it."""
        return self in (Verb.MORE, Verb.LESS, Verb.DENY_BECAUSE)


@dataclass(frozen=True, slots=True)
class Press:
    """A pressed button: `nonce` is what the button carried, `place` and `ref` where its message stands.

    `for_ms` goes with `ALLOW_FOR`; a `reason` that was asked for beside a button goes with a denial.
    """

    sender: Sender
    place: str
    ref: str
    verb: str
    nonce: str
    for_ms: int | None = None
    reason: str | None = None


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
class Choice:
    """A button below a reply: what it says, and the token that `CHOOSE` carries as its nonce."""

    label: str
    token: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What to tell the sender; `private` goes to nobody else where the platform can do that.

    `document` is long text to send along as a file, whole. `card` answers a press that navigates, or that
    asked to see all: it stands there where the sender may choose from what the card offers. `choices` are
    buttons below the reply, for its sender alone. `still_open` answers a press of one that changed nothing,
    because another may still make that choice; all other answers to such a press end it.
    """

    text: str
    private: bool = True
    document: str | None = None
    card: Card | None = None
    choices: tuple[Choice, ...] = ()
    still_open: bool = False
