"""A Bot API in a process of its own, so that its work is not measured as ours; a pipe steers it."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.platforms.telegram.server import BotApi

READING_S = 0.05  # by the time a person has read the message, the channel is back at its poll
END_S = 10


@dataclass(frozen=True, slots=True)
class Platform:
    """The other end of the pipe; `api` is where the channel is pointed."""

    api: str
    token: str
    user: int
    pipe: Connection

    async def press(self, words: str) -> float:
        """Press the button of the message with these words; returns when the press was handed out."""
        return await asyncio.to_thread(self._call, words)

    async def bring_to(self, webhook: str) -> None:
        """Bring updates to this address, through a proxy."""
        await asyncio.to_thread(self._call, webhook)

    def _call(self, words: str) -> Any:
        self.pipe.send(words)
        return self.pipe.recv()


@contextmanager
def platform() -> Iterator[Platform]:
    """Start the process, and end it."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs,), name="platform", daemon=True)
    process.start()
    try:
        yield Platform(*ours.recv(), ours)
    finally:
        ours.send(None)
        process.join(END_S)
        ours.close()


def _serve(pipe: Connection) -> None:
    asyncio.run(_obey(pipe))


async def _obey(pipe: Connection) -> None:
    api = _NotingApi()
    await api.start()
    ann = api.new_user("Ann")
    api.private_chat(ann)
    pipe.send((api.base_url, api.token, ann.id))
    async with _proxy(api) as proxy:
        while (words := await asyncio.to_thread(pipe.recv)) is not None:
            if words.startswith("http"):
                api.inner, api.updates.webhook["url"] = words, str(proxy.make_url("/"))
                pipe.send(None)
            else:
                card = await api.message_when(
                    lambda message, words=words: words in message.text, seconds=END_S
                )
                await asyncio.sleep(READING_S)
                await api.answer_to(api.press(card, "Allow once", ann))
                pipe.send(api.handed_out)
    await api.stop()


class _NotingApi(BotApi):
    """Notes when it handed out an update last, by itself or through the proxy."""

    handed_out = 0.0
    inner = ""

    async def _answer(self, request, call, fault):
        answer = await super()._answer(request, call, fault)
        if call.method == "getUpdates" and self.updates.pending:
            self.handed_out = time.perf_counter()
        return answer


@asynccontextmanager
async def _proxy(api: _NotingApi) -> AsyncIterator[TestServer]:
    """Stand before the channel's port, as a proxy does in earnest; notes when it passes an update on."""

    async def pass_on(request: web.Request) -> web.Response:
        body = await request.read()
        api.handed_out = time.perf_counter()
        async with http.post(api.inner, data=body, headers=request.headers) as answer:
            return web.Response(status=answer.status)

    app = web.Application()
    app.router.add_post("/", pass_on)
    async with aiohttp.ClientSession(trust_env=False) as http, TestServer(app) as server:
        yield server
