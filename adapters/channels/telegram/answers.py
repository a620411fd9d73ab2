"""Presses and commands on their way to the desk, and its replies on their way back."""

from __future__ import annotations

import logging
from dataclasses import replace

from telegram import Bot, InlineKeyboardMarkup
from telegram.error import Forbidden, TelegramError

from adapters.channels.telegram.choices import Choices
from adapters.channels.telegram.faults import said, unchanged
from adapters.channels.telegram.identity import Address, MessageRef
from adapters.channels.telegram.keyboards import answer_keyboard, more_keyboard
from adapters.channels.telegram.prompt import BEGIN_REPLY, why_message
from adapters.channels.telegram.reading import Commanded, Pressed, Refused
from adapters.channels.telegram.render import reply_message
from adapters.channels.telegram.sending import Places, patiently, send, send_whole
from adapters.channels.telegram.text import shorten, units, visible
from core.errors import SaysoError
from core.model.card import Card
from core.model.chat import Reply, Verb
from core.ports import ChatDesk, Clock

log = logging.getLogger("sayso.telegram")

LONGEST_TOAST = 200
_ALERT_FROM = 60
_REFUSALS_EVERY_S = 30.0
_MOST_CHATS = 1_000

BROKEN = Reply("Something went wrong on this side, and nothing was decided. The log of the daemon says what.")
UNREACHABLE = (
    "The answer is for you alone, and I may not write to you first: "
    "open a chat with me, press Start, and try again."
)
SENT_PRIVATELY = "The answer is in your chat with me."


class Answerer:
    """Brings what people do to the desk and tells them what it says."""

    def __init__(self, bot: Bot, desk: ChatDesk, places: Places, clock: Clock) -> None:
        self._bot = bot
        self._desk = desk
        self._places = places
        self._clock = clock
        self._choices = Choices(bot)
        self._refused: dict[int, float] = {}

    async def pressed(self, pressed: Pressed) -> None:
        """Take a press: decide first, then tell."""
        press = replace(pressed.press, place=str(self._places.known(pressed.address)))
        try:
            reply = await self._desk.press(press)
        except SaysoError as error:
            reply = Reply(str(error))
        except Exception:  # the one who pressed is told, whatever broke
            log.exception("telegram: a press could not be taken")
            reply = BROKEN
        user = Address(int(press.sender.id))
        text = reply.text
        if reply.document is not None:
            text = await self._shown(pressed, reply, user)
        elif reply.card is not None:
            text = await self._navigated(pressed, reply.card)
        elif press.verb == Verb.CHOOSE and not reply.still_open:
            text = await self._chosen(pressed, reply)
        if units(text) > LONGEST_TOAST and await self._told(user, text):
            text = SENT_PRIVATELY
        await self._acknowledge(pressed.query_id, text)

    async def commanded(self, commanded: Commanded) -> None:
        """Take a command, and answer where only its sender reads it."""
        known = self._places.known(commanded.address)
        typed = replace(commanded.typed, place=str(known))
        try:
            reply = await self._desk.typed(typed)
        except SaysoError as error:
            reply = Reply(str(error))
        except Exception:  # the one who typed is told, whatever broke
            log.exception("telegram: a command could not be taken")
            reply = BROKEN
        if reply is None:
            reply = _greeting(commanded)
        if reply is not None:
            await self._reply(commanded, reply)

    async def refused(self, refused: Refused) -> None:
        """Say why something is not taken; not more often than a group can bear."""
        if refused.query_id is not None:
            await self._acknowledge(refused.query_id, refused.words)
        elif refused.address is not None and self._may_refuse(refused.address.chat):
            await self._told(refused.address, refused.words, reply_to=refused.message)

    async def _shown(self, pressed: Pressed, reply: Reply, user: Address) -> str:
        """Send the whole text; only once it has arrived, the Allow buttons take the place of View all."""
        where = user if reply.private else pressed.address
        if not await self._told(where, "", document=reply.document):
            return UNREACHABLE
        if reply.card is not None:
            await self._offer(pressed, reply.card, answer_keyboard(reply.card, pressed.press.nonce))
        return reply.text

    async def _navigated(self, pressed: Pressed, card: Card) -> str:
        """Do what a button does that decides nothing; returns what there is to say about it."""
        match pressed.press.verb:
            case Verb.DENY_BECAUSE:
                return await self._ask_why(pressed, card)
            case Verb.MORE:
                await self._offer(pressed, card, more_keyboard(card, pressed.press.nonce))
            case Verb.LESS:
                await self._offer(pressed, card, answer_keyboard(card, pressed.press.nonce))
        return ""

    async def _ask_why(self, pressed: Pressed, card: Card) -> str:
        asked = why_message(card, int(pressed.press.sender.id))
        try:
            await patiently(
                lambda: send(self._bot, pressed.address, asked, BEGIN_REPLY, reply_to=pressed.ref.message)
            )
        except TelegramError as error:
            log.warning("telegram: a reason could not be asked for: %s", said(error))
            return f"I cannot ask here for the reason: type /deny {card.short_id} and the reason after it."
        return ""

    async def _offer(self, pressed: Pressed, card: Card, buttons: InlineKeyboardMarkup) -> None:
        """Change the buttons; an answer that came meanwhile has taken them away, so take them away again."""
        await self._set_buttons(pressed.ref, buttons)
        now = await self._desk.card(card.request_id)
        if now is None or not now.waits:
            await self._set_buttons(pressed.ref, None)

    async def _set_buttons(self, ref: MessageRef, buttons: InlineKeyboardMarkup | None) -> None:
        try:
            await self._bot.edit_message_reply_markup(ref.chat, ref.message, reply_markup=buttons)
        except TelegramError as error:
            if not unchanged(error):
                log.info("telegram: the buttons could not be changed: %s", said(error))

    async def _chosen(self, pressed: Pressed, reply: Reply) -> str:
        """Put the answer in the place of the choice, and tell those who saw the command where they may."""
        asked = await self._choices.end(pressed.ref, reply.text)
        if asked is not None and not reply.private and asked.address != pressed.address:
            await self._told(asked.address, reply.text, reply_to=asked.message)
        return shorten(reply.text, LONGEST_TOAST)  # the message has all of it

    async def _reply(self, commanded: Commanded, reply: Reply) -> None:
        in_private = commanded.typed.direct or not reply.private
        user = Address(int(commanded.typed.sender.id))
        to, reply_to = (commanded.address, commanded.message) if in_private else (user, None)
        if reply.choices:
            arrived = await self._choices.offer(commanded, reply, to, reply_to)
        else:
            arrived = await self._told(to, reply.text, document=reply.document, reply_to=reply_to)
        if not arrived and not in_private:
            await self._told(commanded.address, UNREACHABLE, reply_to=commanded.message)

    async def _told(
        self, to: Address, text: str, *, document: str | None = None, reply_to: int | None = None
    ) -> bool:
        """Send an answer; False where the chat cannot be written to."""
        message, cut = reply_message(text)
        whole = document if document is not None else (text if cut else None)
        try:
            if text:
                await patiently(lambda: send(self._bot, to, message, reply_to=reply_to))
            if whole is not None:
                await patiently(lambda: send_whole(self._bot, to, whole, reply_to=reply_to))
        except TelegramError as error:
            level = logging.DEBUG if isinstance(error, Forbidden) else logging.WARNING
            log.log(level, "telegram: an answer did not arrive: %s", said(error))
            return False
        return True

    async def _acknowledge(self, query_id: str, text: str) -> None:
        toast = shorten(visible(text, multiline=True), LONGEST_TOAST)
        try:
            await self._bot.answer_callback_query(
                query_id, toast or None, show_alert=units(toast) > _ALERT_FROM
            )
        except TelegramError as error:
            # Too late to be shown; what was decided stands, and the message shows it.
            log.debug("telegram: a press could not be acknowledged: %s", said(error))

    def _may_refuse(self, chat: int) -> bool:
        now = self._clock.monotonic()
        if now - self._refused.get(chat, now - _REFUSALS_EVERY_S) < _REFUSALS_EVERY_S:
            return False
        if len(self._refused) >= _MOST_CHATS:
            self._refused.clear()
        self._refused[chat] = now
        return True


def _greeting(commanded: Commanded) -> Reply | None:
    """Greet who presses Start; their number is what the configuration needs to know them."""
    typed = commanded.typed
    if not typed.direct or typed.text.split(maxsplit=1)[0] != "/start":
        return None
    return Reply(f"This is Sayso. Here you are telegram:{typed.sender.id}.")
