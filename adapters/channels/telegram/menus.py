"""The menus of commands: the whole one in chats that are asked, and next to nothing for everybody else."""

from __future__ import annotations

import logging

from telegram import Bot, BotCommand, BotCommandScopeChat
from telegram.error import TelegramError

from adapters.channels.telegram.errands import Errands
from adapters.channels.telegram.faults import said
from adapters.channels.telegram.reading import COMMANDS
from adapters.channels.telegram.sending import patiently

log = logging.getLogger("sayso.telegram")

FOR_EVERYBODY = {
    "pair": "CODE: connect this chat, with a code from the operator",
    "sayso": "help: what can be typed here",
}


async def set_common_menu(bot: Bot) -> None:
    """Set what is seen wherever nothing was asked; raises what the library raises."""
    await bot.set_my_commands(_listed(FOR_EVERYBODY))


class Menus:
    """Sets the menu of a chat when it is asked for the first time; a chat without one works all the same."""

    def __init__(self, errands: Errands) -> None:
        self._errands = errands
        self._set: set[int] = set()

    def asked(self, bot: Bot, chat: int) -> None:
        """Note that a question stands in this chat."""
        if chat not in self._set:
            self._set.add(chat)
            self._errands.start(f"telegram menu of {chat}", self._fill(bot, chat))

    async def _fill(self, bot: Bot, chat: int) -> None:
        scope = BotCommandScopeChat(chat)
        try:
            await patiently(lambda: bot.set_my_commands(_listed(COMMANDS), scope=scope))
        except TelegramError as error:
            log.warning("telegram: the menu of %s could not be set: %s", chat, said(error))


def _listed(commands: dict[str, str]) -> list[BotCommand]:
    return [BotCommand(name, about) for name, about in commands.items()]
