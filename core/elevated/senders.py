"""Sender patterns: whom `allowFrom` and `approvers` name (text 002 §14).

A pattern is `<channel>:<id>`, `<form>:<value>` for any channel, or `<channel>:<form>:<value>`. The word of a
form may be written in any case; names, usernames and tags are compared without it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from core.display import safe
from core.model.principal import Sender

KNOWN_CHANNELS = ("telegram", "discord", "slack", "web", "terminal", "cli")

_LONGEST = 256
_ID = re.compile(r"[!-9;-~]+")  # printable ASCII without blanks and colons
_USERNAME = re.compile(r"[A-Za-z0-9_.+-]+")
_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
_PHONE_LAYOUT = re.compile(r"[ ().-]")
_FORMS = (
    "write <channel>:<id> (discord:123456789012345678), "
    "or id:, user:, name:, username:, tag:, from: or e164: before the value"
)


class SenderField(StrEnum):
    """What of a sender a pattern looks at."""

    ID = "id"
    NAME = "name"
    USERNAME = "username"
    TAG = "tag"
    ADDRESS = "address"
    PHONE = "phone"


_PREFIXES = MappingProxyType(
    {
        "id": SenderField.ID,
        "user": SenderField.ID,
        "name": SenderField.NAME,
        "username": SenderField.USERNAME,
        "tag": SenderField.TAG,
        "from": SenderField.ADDRESS,
        "e164": SenderField.PHONE,
    }
)


@dataclass(frozen=True, slots=True)
class SenderPattern:
    """A parsed pattern; `value` is normalised, `channel` None is any channel."""

    field: SenderField
    value: str
    channel: str | None = None


def parse(text: str) -> SenderPattern:
    """Read a pattern; raises ValueError that names the fault and the right forms."""
    if len(text) > _LONGEST:
        raise ValueError(f"a sender pattern of {len(text):,} characters is too long; {_LONGEST} is the most")
    shown = safe(text)
    if shown != text or text != text.strip():
        raise ValueError(
            f"{shown!r} holds hidden characters or blanks at an end; type it anew, or use the id"
        )
    head, colon, rest = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} does not say what it is; {_FORMS}")
    if head.lower() in _PREFIXES:
        return _pattern(text, head, rest, None)
    if head not in KNOWN_CHANNELS:
        raise ValueError(
            f"{text!r}: {head!r} is neither a channel ({', '.join(KNOWN_CHANNELS)}) nor a form; {_FORMS}"
        )
    form, colon, value = rest.partition(":")
    return _pattern(text, form, value, head) if colon else _pattern(text, "id", rest, head)


def matches(pattern: SenderPattern, sender: Sender) -> bool:
    """Tell whether a sender is the one a pattern names; what cannot be normalised matches nothing."""
    if pattern.channel not in (None, sender.channel):
        return False
    return _normalised(pattern.field, _given(sender, pattern.field)) == pattern.value


def trusts_names(pattern: SenderPattern) -> bool:
    """Tell whether a pattern rests on what a user may change, which is everything but the stable id."""
    return pattern.field is not SenderField.ID


def may_coincide(one: str, other: str) -> bool:
    """Tell whether two patterns could name the same sender; only two different ids surely do not."""
    try:
        first, second = parse(one), parse(other)
    except ValueError:
        return False
    if first.channel is not None and second.channel is not None and first.channel != second.channel:
        return False
    both_ids = first.field is second.field is SenderField.ID
    return not both_ids or first.value == second.value


def reaches(text: str, channel: str) -> bool:
    """Tell whether a pattern could name somebody in a channel; a faulty one names nobody."""
    try:
        return parse(text).channel in (None, channel)
    except ValueError:
        return False


def authorised(patterns: Sequence[str], sender: Sender) -> bool:
    """Tell whether any pattern names the sender; faulty patterns name nobody, and no patterns nobody."""
    return any(_names(text, sender) for text in patterns)


def _names(text: str, sender: Sender) -> bool:
    try:
        return matches(parse(text), sender)
    except ValueError:
        return False


def _pattern(text: str, form: str, value: str, channel: str | None) -> SenderPattern:
    field = _PREFIXES.get(form.lower())
    if field is None:
        raise ValueError(f"{text!r}: {form!r} is no form of a sender; {_FORMS}")
    normal = _normalised(field, value)
    if normal is None:
        raise ValueError(f"{text!r}: {value!r} is not {_WANTED[field]}")
    return SenderPattern(field, normal, channel)


def _given(sender: Sender, field: SenderField) -> str | None:
    return {
        SenderField.ID: sender.id,
        SenderField.NAME: sender.name,
        SenderField.USERNAME: sender.username,
        SenderField.TAG: sender.tag,
        SenderField.ADDRESS: sender.address,
        SenderField.PHONE: sender.phone,
    }[field]


def _normalised(field: SenderField, text: str | None) -> str | None:
    return _NORMALISERS[field](text) if text else None


def _id(text: str) -> str | None:
    return text if _ID.fullmatch(text) else None


def _name(text: str) -> str | None:
    return _caseless(text)


def _caseless(text: str) -> str:
    """Leave out the case, but for letters that would become plain ones: the long s is no s."""
    composed = unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", "".join(map(_folded, composed)))


def _folded(char: str) -> str:
    folded = char.casefold()
    return char if not char.isascii() and any(map(str.isascii, folded)) else folded


def _username(text: str) -> str | None:
    bare = text.removeprefix("@")
    return bare.casefold() if _USERNAME.fullmatch(bare) else None


def _tag(text: str) -> str | None:
    username, _, discriminator = text.rpartition("#")
    return _caseless(text) if username and discriminator else None


def _address(text: str) -> str | None:
    if not _ID.fullmatch(text):
        return None
    local, at, domain = text.rpartition("@")
    return f"{local}@{domain.casefold()}" if at and local and domain else None


def _phone(text: str) -> str | None:
    digits = _PHONE_LAYOUT.sub("", text)
    return digits if _PHONE.fullmatch(digits) else None


_NORMALISERS: MappingProxyType[SenderField, Callable[[str], str | None]] = MappingProxyType(
    {
        SenderField.ID: _id,
        SenderField.NAME: _name,
        SenderField.USERNAME: _username,
        SenderField.TAG: _tag,
        SenderField.ADDRESS: _address,
        SenderField.PHONE: _phone,
    }
)

_WANTED = MappingProxyType(
    {
        SenderField.ID: "an id: letters, digits and signs, without blanks and colons",
        SenderField.NAME: "a name; it is empty",
        SenderField.USERNAME: "a username: letters, digits, _, ., + and -",
        SenderField.TAG: "of the form username#1234",
        SenderField.ADDRESS: "an address of the form alice@example.com, in ASCII",
        SenderField.PHONE: "a phone number with + and the country code, such as +15551234567",
    }
)
