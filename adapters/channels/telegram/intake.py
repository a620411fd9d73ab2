"""Updates on their way to people's answers: each once, each in a task that is owned here."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from telegram import Bot, Update

from adapters.channels.telegram.answers import Answerer
from adapters.channels.telegram.reading import Commanded, Moved, Pressed, Read, Refused, read

log = logging.getLogger("sayso.telegram")

_MOST_SEEN = 2_000
_FINISH_S = 3.0


class Intake:
    """Takes updates, drops the ones it had before, and hands each to the answerer."""

    def __init__(self, bot: Bot, answerer: Answerer, moved: Callable[[int, int], None]) -> None:
        self._bot = bot
        self._answerer = answerer
        self._moved = moved
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, update: Update) -> asyncio.Task[None] | None:
        """Begin to handle an update; None where there is nothing to wait for."""
        if update.update_id in self._seen:
            return None
        self._seen[update.update_id] = None
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        task = asyncio.create_task(self._handle(update), name=f"telegram update {update.update_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self) -> None:
        """Let what was begun finish for a moment, then end it."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=_FINISH_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _handle(self, update: Update) -> None:
        try:
            await self._hand_over(read(update, _username(self._bot)))
        except Exception:  # one update must not end the channel
            log.exception("telegram: update %s could not be handled", update.update_id)

    async def _hand_over(self, got: Read) -> None:
        match got:
            case Pressed():
                await self._answerer.pressed(got)
            case Commanded():
                await self._answerer.commanded(got)
            case Refused():
                await self._answerer.refused(got)
            case Moved():
                self._moved(got.old, got.new)
            case None:
                pass


def _username(bot: Bot) -> str | None:
    try:
        return bot.username
    except RuntimeError:  # the library knows the name once it has reached Telegram
        return None
