"""The real library, pointed at the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from telegram.ext import Application
from telegram.request import HTTPXRequest

from tests.platforms.telegram.server import BotApi


def make_application(api: BotApi, **timeouts: float) -> Application:
    direct = {"trust_env": False}
    return (
        Application.builder()
        .token(api.token)
        .base_url(api.base_url)
        .request(HTTPXRequest(httpx_kwargs=direct, **timeouts))
        .get_updates_request(HTTPXRequest(httpx_kwargs=direct))
        .build()
    )


@asynccontextmanager
async def polling(application: Application) -> AsyncIterator[Application]:
    async with application:
        await application.start()
        await application.updater.start_polling(timeout=5, poll_interval=0)
        try:
            yield application
        finally:
            await application.updater.stop()
            await application.stop()


@pytest.fixture
async def bot(telegram_api: BotApi) -> AsyncIterator[Any]:
    """Give the library's bot, not polling."""
    application = make_application(telegram_api, read_timeout=0.5)
    async with application.bot:
        yield application.bot


@pytest.fixture
async def poll(telegram_api: BotApi) -> AsyncIterator[Callable[..., Any]]:
    """Start an application that polls, with these handlers."""
    async with AsyncExitStack() as stack:

        async def start(*handlers: Any) -> Application:
            application = make_application(telegram_api)
            for handler in handlers:
                application.add_handler(handler)
            return await stack.enter_async_context(polling(application))

        yield start


@pytest.fixture
async def ask(telegram_api: BotApi) -> AsyncIterator[Callable[..., Any]]:
    """Send a raw request; the answer is the status and the body."""
    async with aiohttp.ClientSession(trust_env=False) as session:

        async def send(method: str, **values: Any) -> tuple[int, Any]:
            async with session.post(
                f"{telegram_api.base_url}{telegram_api.token}/{method}", json=values
            ) as answer:
                return answer.status, await answer.json()

        yield send
