"""How messages go out, and under which id a chat is reached now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from telegram import Bot, ForceReply, InlineKeyboardMarkup, InputFile, LinkPreviewOptions, ReplyParameters
from telegram.error import RetryAfter

from adapters.channels.telegram.faults import retry_after_s
from adapters.channels.telegram.identity import Address, MessageRef
from adapters.channels.telegram.text import Message, visible

NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
WHOLE, OUTPUT = "sayso.txt", "output.txt"

_LONGEST_WAIT_S = 30.0


class Places:
    """Groups that became supergroups while this process ran: old ids are sent to new ones, and read back.

    The core and the configuration go on using the id they know.
    """

    def __init__(self) -> None:
        self._now: dict[int, int] = {}

    def moved(self, old: int, new: int) -> None:
        """Note that a group goes on under another id."""
        self._now[old] = new

    def current(self, address: Address) -> Address:
        """Return where to send what is meant for this address."""
        new = self._now.get(address.chat)
        return address if new is None else Address(new, address.thread)

    def known(self, address: Address) -> Address:
        """Return the address under which the core knows the one that something came from."""
        for old, new in self._now.items():
            if new == address.chat:
                return Address(old, address.thread)
        return address


async def send(
    bot: Bot,
    to: Address,
    message: Message,
    buttons: InlineKeyboardMarkup | ForceReply | None = None,
    *,
    reply_to: int | None = None,
) -> MessageRef:
    """Send a message; raises what the library raises."""
    sent = await bot.send_message(
        to.chat,
        message.text,
        entities=message.entities or None,
        message_thread_id=to.thread,
        link_preview_options=NO_PREVIEW,
        reply_markup=buttons,
        reply_parameters=_reply(reply_to),
    )
    return MessageRef(sent.chat.id, sent.message_id)


async def send_whole(
    bot: Bot, to: Address, text: str, *, reply_to: int | None = None, name: str = WHOLE
) -> None:
    """Send a long text as a file, whole, with nothing hidden in it; raises what the library raises."""
    await bot.send_document(
        to.chat,
        InputFile(visible(text, multiline=True).encode(), filename=name),
        message_thread_id=to.thread,
        disable_content_type_detection=True,
        reply_parameters=_reply(reply_to),
    )


async def patiently(sending: Callable[[], Awaitable[object]]) -> None:
    """Send, and once more after a wait that Telegram asks for and that is bearable."""
    try:
        await sending()
    except RetryAfter as error:
        seconds = retry_after_s(error)
        if seconds > _LONGEST_WAIT_S:
            raise
        await asyncio.sleep(seconds)
        await sending()


def _reply(message: int | None) -> ReplyParameters | None:
    return None if message is None else ReplyParameters(message, allow_sending_without_reply=True)
