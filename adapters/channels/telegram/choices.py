"""Replies with buttons that say which was meant, and the answers that take their place."""

from __future__ import annotations

import logging
from collections import OrderedDict

from telegram import Bot
from telegram.error import Forbidden, TelegramError

from adapters.channels.telegram.faults import said, unchanged
from adapters.channels.telegram.identity import Address, MessageRef
from adapters.channels.telegram.keyboards import choice_keyboard
from adapters.channels.telegram.reading import Commanded
from adapters.channels.telegram.render import choice_message, reply_message
from adapters.channels.telegram.sending import NO_PREVIEW, patiently, send
from core.model.chat import Reply

log = logging.getLogger("sayso.telegram")

_MOST_OPEN = 1_000


class Choices:
    """Knows which command each open choice is about; like the choices themselves, until a restart."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._open: OrderedDict[MessageRef, Commanded] = OrderedDict()

    async def offer(self, commanded: Commanded, reply: Reply, to: Address, reply_to: int | None) -> bool:
        """Send a reply with its choices; False where the chat cannot be written to."""
        message, buttons = choice_message(reply.text, reply.choices), choice_keyboard(reply.choices)

        async def sending() -> None:
            self._open[await send(self._bot, to, message, buttons, reply_to=reply_to)] = commanded

        try:
            await patiently(sending)
        except TelegramError as error:
            level = logging.DEBUG if isinstance(error, Forbidden) else logging.WARNING
            log.log(level, "telegram: a choice did not arrive: %s", said(error))
            return False
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return True

    async def end(self, ref: MessageRef, words: str) -> Commanded | None:
        """Say in the place of a choice what came of it; returns the command it was about, once."""
        message, _ = reply_message(words)
        try:
            await self._bot.edit_message_text(
                message.text,
                ref.chat,
                ref.message,
                entities=message.entities,
                link_preview_options=NO_PREVIEW,
            )
        except TelegramError as error:
            if not unchanged(error):
                log.info("telegram: a choice could not be taken away: %s", said(error))
        return self._open.pop(ref, None)
