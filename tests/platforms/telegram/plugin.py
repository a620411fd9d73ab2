"""Fixtures: a Telegram Bot API on loopback that fails the test when the bot breaks the API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.platforms.telegram.server import BotApi


@pytest.fixture
async def telegram_api() -> AsyncIterator[BotApi]:
    """Run a Bot API; a request that its description forbids fails the test at its end."""
    api = BotApi()
    await api.start()
    try:
        yield api
    finally:
        await api.stop()
    api.assert_clean()
