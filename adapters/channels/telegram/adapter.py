"""Telegram as a channel: cards are messages with buttons, answers are presses and commands."""

from __future__ import annotations

import asyncio
import logging

from telegram import Bot, InlineKeyboardMarkup
from telegram.error import ChatMigrated, InvalidToken, TelegramError
from telegram.request import HTTPXRequest

from adapters.channels.telegram.answers import Answerer
from adapters.channels.telegram.errands import Errands
from adapters.channels.telegram.faults import delivery_error, gone, said, unchanged
from adapters.channels.telegram.health import Health
from adapters.channels.telegram.identity import Address, MessageRef, address_of, ref_of
from adapters.channels.telegram.intake import Intake
from adapters.channels.telegram.keyboards import keyboard
from adapters.channels.telegram.menus import Menus, set_common_menu
from adapters.channels.telegram.polling import ALLOWED_UPDATES, Poller, suspect_token
from adapters.channels.telegram.render import notice_message, render, whole_output
from adapters.channels.telegram.sending import NO_PREVIEW, OUTPUT, Places, patiently, send, send_whole
from adapters.channels.telegram.text import Message
from adapters.channels.telegram.webhook import Webhook
from core.config import TelegramSettings
from core.errors import DeliveryError, DeliveryRefused, StartError
from core.model.card import Card
from core.model.notice import Notice
from core.ports import ChatDesk, Clock

log = logging.getLogger("sayso.telegram")

_PUBLIC_API = "https://api.telegram.org"
_CONNECT_S, _READ_S = 10.0, 20.0
_BAD_TOKEN = (
    "channels.telegram.token: Telegram does not accept it; copy the token that @BotFather shows for the bot "  # noqa: S105 - words about a token
    "(/mybots, API Token) to where the configuration reads it from"
)


class TelegramChannel:
    """A bot from `open` to `close`; implements `core.ports.Channel`."""

    name = "telegram"
    keeps_copies = True

    def __init__(self, settings: TelegramSettings, clock: Clock, *, base_url: str | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._api = (base_url or settings.api_url or _PUBLIC_API).rstrip("/").removesuffix("/bot")
        self._proxies = base_url is None
        self._health = Health()
        self._places = Places()
        self._errands = Errands()
        self._menus = Menus(self._errands)
        self._bot: Bot | None = None
        self._intake: Intake | None = None
        self._poller: Poller | None = None
        self._webhook: Webhook | None = None
        self._listening: asyncio.Task[None] | None = None

    def health(self) -> tuple[str, str]:
        """Return ok, degraded or down, and why."""
        return self._health.get()

    def username(self) -> str | None:
        """Return the username of the bot, once Telegram has told it."""
        try:
            return f"@{self._bot.username}" if self._bot else None
        except RuntimeError:  # the library knows the name once it has reached Telegram
            return None

    async def open(self, desk: ChatDesk) -> None:
        """Check the token and start to listen; without a network, keep trying in the background."""
        _keep_tokens_out_of_the_log()
        self._health = Health()
        self._health.connecting()
        bot = self._make_bot()
        try:
            await self._greet(bot)
            self._intake = Intake(bot, Answerer(bot, desk, self._places, self._clock), self._moved)
            await self._open_webhook(bot, self._intake)
        except StartError:
            await bot.shutdown()
            raise
        self._bot = bot
        self._poller = Poller(bot, self._health, self._prepare, self._intake.take)
        self._listening = asyncio.create_task(self._listen(self._poller), name="telegram intake")

    async def post(self, card: Card, place: str, nonce: str) -> str:
        """Send a card and return where it stands, as CHAT/MESSAGE."""
        rendered = render(card, self._clock.now())
        buttons = keyboard(card, nonce, view_first=rendered.elided)
        bot = self._connected()
        sent = await self._sent(place, rendered.message, buttons)
        self._menus.asked(bot, sent.chat)
        return str(sent)

    async def update(self, card: Card, place: str, ref: str, nonce: str) -> None:
        """Edit an earlier message; a decided card loses its buttons, long output follows as a file."""
        at, thread = _readable(ref), _deliverable(place).thread
        rendered = render(card, self._clock.now())
        buttons = keyboard(card, nonce, view_first=rendered.elided)
        try:
            await self._edit(at, rendered.message, buttons)
        except TelegramError as error:
            if not unchanged(error):
                raise await self._failure(error, at.chat, posting=False) from error
            return  # it says that already, so the file went out before
        output = whole_output(card)
        if output is not None:
            self._errands.start(f"telegram output of {card.short_id}", self._attach(at, thread, output))

    async def remove(self, place: str, ref: str) -> None:  # noqa: ARG002 - the reference has the chat
        """Delete an earlier message."""
        at = _readable(ref)
        try:
            await self._connected().delete_message(at.chat, at.message)
        except TelegramError as error:
            if not gone(error):
                raise await self._failure(error, at.chat, posting=False) from error

    async def notify(self, notice: Notice, place: str) -> None:
        """Send a message that asks nothing."""
        await self._sent(place, notice_message(notice), None)

    async def close(self) -> None:
        """Stop listening, let what was begun finish for a moment, and disconnect."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening])
        webhook, self._webhook = self._webhook, None
        if webhook is not None:
            await webhook.close()
        if self._intake is not None:
            await self._intake.finish()
        await self._errands.finish()
        poller, self._poller = self._poller, None
        if poller is not None and self._settings.mode == "polling":
            await poller.confirm()
        bot, self._bot = self._bot, None
        if bot is not None:
            await bot.shutdown()
            self._health.closed()

    def _make_bot(self) -> Bot:
        return Bot(
            self._settings.token.get_secret_value(),
            base_url=f"{self._api}/bot",
            base_file_url=f"{self._api}/file/bot",
            request=self._make_request(connections=32),
            get_updates_request=self._make_request(connections=2),
        )

    def _make_request(self, *, connections: int) -> HTTPXRequest:
        return HTTPXRequest(
            connection_pool_size=connections,
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            pool_timeout=_CONNECT_S,
            httpx_kwargs={"trust_env": self._proxies},
        )

    async def _greet(self, bot: Bot) -> None:
        try:
            await bot.initialize()
        except InvalidToken:
            # What the library raises quotes the token.
            raise StartError(_BAD_TOKEN) from None
        except TelegramError as error:
            self._health.trouble(f"Telegram cannot be reached: {said(error)}; trying again")

    async def _open_webhook(self, bot: Bot, intake: Intake) -> None:
        if self._settings.mode == "webhook" and self._settings.webhook is not None:
            webhook = Webhook(self._settings.webhook, bot, intake.take)
            await webhook.open()
            self._webhook = webhook

    async def _listen(self, poller: Poller) -> None:
        await poller.run(listen=self._settings.mode == "polling")

    async def _prepare(self) -> None:
        """Learn the bot's name, choose how updates come, and fill the menu of commands."""
        bot = self._connected()
        await bot.initialize()
        if self._settings.mode == "webhook" and self._settings.webhook is not None:
            webhook = self._settings.webhook
            await bot.set_webhook(
                webhook.url, allowed_updates=ALLOWED_UPDATES, secret_token=webhook.secret.get_secret_value()
            )
        else:
            await bot.delete_webhook()
        await set_common_menu(bot)

    async def _sent(self, place: str, message: Message, buttons: InlineKeyboardMarkup | None) -> MessageRef:
        address = _deliverable(place)
        try:
            return await send(self._connected(), self._places.current(address), message, buttons)
        except TelegramError as error:
            raise await self._failure(error, address.chat, posting=True) from error

    async def _edit(self, at: MessageRef, message: Message, buttons: InlineKeyboardMarkup | None) -> None:
        await self._connected().edit_message_text(
            message.text,
            at.chat,
            at.message,
            entities=message.entities,
            link_preview_options=NO_PREVIEW,
            reply_markup=buttons,
        )

    async def _attach(self, at: MessageRef, thread: int | None, output: str) -> None:
        bot, to = self._connected(), Address(at.chat, thread)
        try:
            await patiently(lambda: send_whole(bot, to, output, reply_to=at.message, name=OUTPUT))
        except TelegramError as error:
            log.warning("telegram: the output of a run could not be sent as a file: %s", said(error))

    def _connected(self) -> Bot:
        if self._bot is None:
            raise DeliveryError("the Telegram channel is not open")
        if self._health.revoked:
            raise delivery_error(InvalidToken(), posting=False)
        return self._bot

    async def _failure(self, error: TelegramError, chat: int, *, posting: bool) -> DeliveryError:
        if isinstance(error, ChatMigrated):
            self._moved(chat, error.new_chat_id)
            if posting:
                return DeliveryError(f"the group {chat} became {error.new_chat_id}", retry_after_s=0)
            return DeliveryRefused("the message stayed behind in a group that became a supergroup")
        if isinstance(error, InvalidToken):
            await suspect_token(self._connected(), self._health)
        return delivery_error(error, posting=posting)

    def _moved(self, old: int, new: int) -> None:
        self._places.moved(old, new)
        self._health.moved(old, new)


def _deliverable(place: str) -> Address:
    try:
        return address_of(place)
    except ValueError as error:
        raise DeliveryRefused(str(error)) from error


def _readable(ref: str) -> MessageRef:
    try:
        return ref_of(ref)
    except ValueError as error:
        raise DeliveryRefused(str(error)) from error


def _keep_tokens_out_of_the_log() -> None:
    """Silence what logs addresses: the Bot API has the token in each of them."""
    for name in ("httpx", "httpcore", "telegram"):
        logging.getLogger(name).setLevel(logging.WARNING)
