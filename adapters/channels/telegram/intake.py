"""Updates on their way to people's answers: each once, each in a task that is owned here."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from telegram import Bot, Update, User

from adapters.channels.telegram.answers import Answerer
from adapters.channels.telegram.errands import Errands
from adapters.channels.telegram.reading import Commanded, Moved, Pressed, Refused, read

_MOST_SEEN = 2_000


class Intake:
    """Takes updates, drops the ones it had before, and hands each to the answerer."""

    def __init__(self, bot: Bot, answerer: Answerer, moved: Callable[[int, int], None]) -> None:
        self._bot = bot
        self._answerer = answerer
        self._moved = moved
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._errands = Errands()

    def take(self, update: Update) -> asyncio.Task[None] | None:
        """Begin to handle an update; None where there is nothing to wait for."""
        if update.update_id in self._seen:
            return None
        self._seen[update.update_id] = None
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        return self._errands.start(f"telegram update {update.update_id}", self._handle(update))

    async def finish(self) -> None:
        """Let what was begun finish for a moment, then end it."""
        await self._errands.finish()

    async def _handle(self, update: Update) -> None:
        match read(update, _who_i_am(self._bot)):
            case Pressed() as pressed:
                await self._answerer.pressed(pressed)
            case Commanded() as commanded:
                await self._answerer.commanded(commanded)
            case Refused() as refused:
                await self._answerer.refused(refused)
            case Moved(old, new):
                self._moved(old, new)
            case None:
                pass


def _who_i_am(bot: Bot) -> User | None:
    try:
        return bot.bot
    except RuntimeError:  # the library knows it once it has reached Telegram
        return None
