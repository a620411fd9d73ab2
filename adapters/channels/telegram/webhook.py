"""Updates that Telegram brings by itself, to a small server of ours behind a TLS proxy."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web
from telegram import Bot, Update

from core.config import TelegramWebhook
from core.errors import StartError

log = logging.getLogger("sayso.telegram")

_SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name, not what it holds
_LARGEST_UPDATE = 1024 * 1024
_SHUTDOWN_S = 2.0


class Webhook:
    """Listens from `open` to `close`; only who knows the secret is heard."""

    def __init__(self, settings: TelegramWebhook, bot: Bot, take: Callable[[Update], object]) -> None:
        self._settings = settings
        self._bot = bot
        self._take = take
        self._runner: web.AppRunner | None = None
        self.port: int | None = None

    async def open(self) -> None:
        """Bind the port; raises StartError where it cannot."""
        app = web.Application(client_max_size=_LARGEST_UPDATE)
        app.router.add_post(urlsplit(self._settings.url).path or "/", self._receive)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._settings.listen, self._settings.port).start()
        except OSError as error:
            await runner.cleanup()
            raise StartError(
                f"channels.telegram.webhook: {self._settings.listen} port {self._settings.port} cannot be "
                f"listened on: {error.strerror or error}; set another port, or end what listens there"
            ) from error
        self._runner, self.port = runner, int(runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        given = request.headers.get(_SECRET_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._settings.secret.get_secret_value().encode()):
            return web.Response(status=403)
        try:
            update = Update.de_json(json.loads(await request.read()), self._bot)
        except (ValueError, TypeError, KeyError, AttributeError):
            log.warning("telegram: an update could not be read and is skipped")
            return web.Response(status=400)
        self._take(update)
        return web.Response()
