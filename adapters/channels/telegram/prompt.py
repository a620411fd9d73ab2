"""The question for a reason: built here, and known again here from the message alone, also after a restart.

No other message of ours can pass for it. It begins with a bold word, and texts of others are never bold; of
our own labels, which are, none is that word. The rest is fixed too, but for the id, which is hexadecimal.
"""

from __future__ import annotations

import re

from telegram import ForceReply, MessageEntity, User
from telegram import Message as Received

from adapters.channels.telegram.text import Message, Text
from core.model.card import Card

_LABEL = "Why"
_FORM = re.compile(r"Why do you deny ([0-9a-f]{8})\? Reply to this message with the reason\.")

# Selective: only the one who is mentioned finds the reply begun.
BEGIN_REPLY = ForceReply(selective=True, input_field_placeholder="Reason")


def why_message(card: Card, who: int) -> Message:
    """Ask the user with this id why a request is denied."""
    text = Text().bold(_LABEL).add(" do ").mention("you", who).add(" deny ").code(card.short_id)
    return text.add("? Reply to this message with the reason.").message()


def asked_about(message: Received, me: User | None) -> str | None:
    """Return the id of the request whose denial this message explains; None where it is no such reply."""
    asked = message.reply_to_message
    if me is None or asked is None or asked.from_user is None or asked.from_user.id != me.id:
        return None
    matched = _FORM.fullmatch(asked.text or "")
    return matched[1] if matched and _begins_as_ours(asked) else None


def _begins_as_ours(asked: Received) -> bool:
    return any(
        (one.type, one.offset, one.length) == (MessageEntity.BOLD, 0, len(_LABEL)) for one in asked.entities
    )
