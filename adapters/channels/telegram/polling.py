"""Long polling: an update is confirmed once it was handled, so that a crash repeats it and loses none."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from telegram import Bot, Update
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError, TimedOut

from adapters.channels.telegram.faults import retry_after_s, said
from adapters.channels.telegram.health import Health

log = logging.getLogger("sayso.telegram")

ALLOWED_UPDATES = ("message", "edited_message", "callback_query")
POLL_S = 30
_HANDLING_S = 5.0  # a handler that takes longer no longer holds back the updates after it
_LAST_CALL_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0

Take = Callable[[Update], "asyncio.Task[None] | None"]


class Poller:
    """Fetches updates until it is cancelled or the token is revoked."""

    def __init__(self, bot: Bot, health: Health, prepare: Callable[[], Awaitable[None]], take: Take) -> None:
        self._bot = bot
        self._health = health
        self._prepare = prepare
        self._take = take
        self._offset = 0
        self._confirmed = 0

    async def run(self, *, listen: bool) -> None:
        """Connect, then poll where `listen`; troubles are noted and tried again with growing pauses."""
        step, pause = self._prepare, _FIRST_PAUSE_S
        while not self._health.revoked:
            try:
                await step()
            except Exception as error:  # noqa: BLE001 - whatever Telegram sends, the channel outlives it
                await asyncio.sleep(await self._trouble(error, pause))
                pause = min(pause * 2, _LONGEST_PAUSE_S)
            else:
                self._health.ok()
                if not listen:
                    return
                step, pause = self._poll, _FIRST_PAUSE_S

    async def confirm(self) -> None:
        """Tell Telegram what was handled last, so that a restart does not fetch it again."""
        if self._offset == self._confirmed or self._health.revoked:
            return
        with contextlib.suppress(TelegramError, TimeoutError):
            async with asyncio.timeout(_LAST_CALL_S):
                await self._fetch(wait=0, limit=1)

    async def _poll(self) -> None:
        offset = self._offset
        fetched = await self._fetch(wait=POLL_S, limit=100)
        self._confirmed = offset
        self._health.ok()
        tasks = [task for update in fetched if (task := self._take(update)) is not None]
        if fetched:
            self._offset = max(update.update_id for update in fetched) + 1
        if tasks:
            await asyncio.wait(tasks, timeout=_HANDLING_S)

    async def _fetch(self, *, wait: int, limit: int) -> tuple[Update, ...]:
        return await self._bot.get_updates(
            self._offset, limit=limit, timeout=wait, allowed_updates=ALLOWED_UPDATES
        )

    async def _trouble(self, error: Exception, pause: float) -> float:
        """Note what is wrong and return how long to wait."""
        if isinstance(error, InvalidToken):
            await suspect_token(self._bot, self._health)
        elif isinstance(error, Conflict):
            self._health.trouble(
                "another program fetches the updates of this bot: stop it, or give Sayso a bot of its own"
            )
        elif isinstance(error, RetryAfter):
            return retry_after_s(error)
        elif not isinstance(error, TelegramError):
            log.error("telegram: updates could not be read", exc_info=error)
            self._health.trouble("what Telegram sent could not be read; trying again")
        elif not isinstance(error, TimedOut) or pause > _FIRST_PAUSE_S:
            self._health.trouble(f"Telegram cannot be reached: {said(error)}; trying again")
        return pause


async def suspect_token(bot: Bot, health: Health) -> None:
    """Ask once more before the token is given up: a proxy's 404 looks like a revoked token."""
    try:
        await bot.get_me()
    except InvalidToken:
        health.revoke()
    except TelegramError as error:
        health.trouble(f"Telegram cannot be reached: {said(error)}; trying again")
