"""Setting a bot up: whose token it is, and who greets the bot with the code that was shown."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telegram import Bot, Message
from telegram.error import Conflict, InvalidToken, TelegramError, TimedOut
from telegram.request import HTTPXRequest

from adapters.channels.telegram.faults import said
from adapters.channels.telegram.identity import Address, is_direct
from core.errors import StartError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PUBLIC_API = "https://api.telegram.org"
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}")
_POLL_S = 10
_WRONG_TOKEN = (
    "Telegram does not know this token; copy it again from @BotFather (/mybots, the bot, API Token): "  # noqa: S105 - words about a token
    "digits, a colon, and about 35 letters, digits, - and _"
)


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Whose token it is."""

    name: str
    username: str

    def link(self, code: str) -> str:
        """Return a link that opens the bot, whose Start button sends the code."""
        return f"https://t.me/{self.username}?start={code}"

    def group_link(self, code: str) -> str:
        """Return a link that adds the bot to a group and sends the code there."""
        return f"https://t.me/{self.username}?startgroup={code}"


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who sent the code, and where; `place` is empty in a direct message."""

    user_id: int
    name: str
    username: str | None
    target: str
    place: str = ""


async def identify(token: str, api_url: str | None = None) -> BotIdentity:
    """Ask Telegram whose token this is; raises StartError in plain words."""
    async with _bot(token, api_url) as bot:
        me = await bot.get_me()
    return BotIdentity(me.full_name, me.username or "")


async def greeting(token: str, code: str, seconds: float, api_url: str | None = None) -> Greeting | None:
    """Wait until a person sends `/start CODE`; None where nobody did in time. Raises StartError."""
    try:
        async with asyncio.timeout(seconds), _bot(token, api_url) as bot:
            return await _listen(bot, code)
    except TimeoutError:
        return None


async def _listen(bot: Bot, code: str) -> Greeting:
    offset = 0
    while True:
        try:
            updates = await bot.get_updates(offset, timeout=_POLL_S, allowed_updates=("message",))
        except TimedOut:
            continue
        for update in updates:
            offset = update.update_id + 1
            found = _greets(update.message, code)
            if found is not None:
                await bot.get_updates(offset, timeout=0, limit=1)  # confirms what was read
                return found


def _greets(message: Message | None, code: str) -> Greeting | None:
    """Read the sender of the code; nobody is one who hides, forwards, or is a bot."""
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    if message.sender_chat is not None or message.forward_origin is not None:
        return None
    if code not in (message.text or "").split():
        return None
    sender, chat = message.from_user, message.chat
    if is_direct(chat):
        return Greeting(sender.id, sender.full_name, sender.username, f"user:{sender.id}")
    thread = message.message_thread_id if message.is_topic_message else None
    kind = "thread" if thread else "channel"
    target = f"{kind}:{Address(chat.id, thread)}"
    return Greeting(sender.id, sender.full_name, sender.username, target, chat.title or str(chat.id))


@asynccontextmanager
async def _bot(token: str, api_url: str | None) -> AsyncIterator[Bot]:
    if not _TOKEN.fullmatch(token):
        raise StartError(_WRONG_TOKEN)
    api = (api_url or PUBLIC_API).rstrip("/")
    bot = Bot(
        token,
        base_url=f"{api}/bot",
        request=HTTPXRequest(connect_timeout=10.0, read_timeout=20.0),
        get_updates_request=HTTPXRequest(connect_timeout=10.0, read_timeout=20.0),
    )
    try:
        await bot.initialize()
        yield bot
    except InvalidToken:
        raise StartError(_WRONG_TOKEN) from None  # what the library raises quotes the token
    except Conflict as error:
        raise StartError(
            "another program fetches the messages of this bot, or a webhook is set for it: stop that program "
            f"(perhaps a Sayso that runs already), or make a bot of its own. Telegram says: {said(error)}"
        ) from None
    except TelegramError as error:
        raise StartError(
            f"{api} cannot be reached: {said(error)}; look at the network and try again"
        ) from None
    finally:
        await bot.shutdown()
