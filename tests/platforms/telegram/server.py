"""A Telegram Bot API on loopback that is as strict as its description and misbehaves on demand."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import BodyPartReader, web

from tests.platforms.telegram.description import METHOD_NAMES, Upload, answer_problems, parameters
from tests.platforms.telegram.errors import ApiError
from tests.platforms.telegram.faults import Fault, Faults
from tests.platforms.telegram.methods import CallbackAnswer, Methods, Press
from tests.platforms.telegram.people import People
from tests.platforms.telegram.updates import Signal, Updates
from tests.platforms.telegram.world import Chat, Document, Message, World

TOKEN = "7100000001:AAF-test-token-of-nobody-0123456789"
_LIMIT = 60 * 1024 * 1024


@dataclass(eq=False)
class Call:
    """A request as it came; `status` is None until it is answered, 0 for a dropped connection."""

    method: str
    values: dict[str, Any]
    at: float
    status: int | None = None
    problems: list[str] = field(default_factory=list)


class BotApi:
    """The server; `start` and `stop` it, act through `people`, look through `messages` and the rest."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.world = World()
        self.faults = Faults()
        self.updates = Updates(self.faults)
        self.changed = Signal()
        self.methods = Methods(self.world, self.updates, self.changed)
        self.people = People(self.world, self.updates, self.methods)
        self.violations: list[str] = []
        self.calls: list[Call] = []
        self.revoked = False
        self.port = 0
        self._runner: web.AppRunner | None = None
        self._delivery: asyncio.Task[None] | None = None

        # What tests say most often, without a detour.
        self.new_user = self.world.new_user
        self.private_chat = self.world.private_chat
        self.new_group = self.world.new_group
        self.new_supergroup = self.world.new_supergroup
        self.new_channel = self.world.new_channel
        self.say = self.people.say
        self.edit = self.people.edit
        self.press = self.people.press
        self.press_raw = self.people.press_raw
        self.repeat_press = self.people.repeat_press
        self.remove_bot = self.people.remove_bot
        self.migrate = self.people.migrate

    # -- life

    @property
    def base_url(self) -> str:
        """Where python-telegram-bot is pointed; it appends the token."""
        return f"http://127.0.0.1:{self.port}/bot"

    async def start(self) -> None:
        """Listen; after a `stop` on the same port as before."""
        app = web.Application(client_max_size=_LIMIT)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.updates.closed = False
        self._delivery = asyncio.create_task(self.updates.deliver(), name="telegram-webhook-delivery")

    async def stop(self) -> None:
        """Stop listening; the world stays as it is."""
        self.updates.closed = True
        self.updates.changed.fire()
        if self._delivery:
            self._delivery.cancel()
            await asyncio.gather(self._delivery, return_exceptions=True)
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    def assert_clean(self) -> None:
        """Fail if the bot sent anything that the description forbids."""
        lines = "\n  ".join(self.violations)
        assert not self.violations, f"requests broke the Bot API:\n  {lines}"

    # -- looking

    def messages(self, chat: Chat | None = None, *, deleted: bool = False) -> list[Message]:
        """List what stands in a chat (or all), whoever wrote it."""
        every = self.world.messages
        return [m for m in every if (chat is None or m.chat is chat) and (deleted or not m.deleted)]

    def sent(self, chat: Chat | None = None) -> list[Message]:
        """List what the bot wrote and did not delete."""
        return [message for message in self.messages(chat) if message.by_bot]

    def documents(self, chat: Chat | None = None) -> list[Document]:
        return [message.document for message in self.messages(chat) if message.document]

    @property
    def answers(self) -> list[CallbackAnswer]:
        return self.methods.answers

    def menu(self, scope: str = '{"type": "default"}', language: str = "") -> dict[str, str]:
        """Read the command menu: name to description."""
        return self.methods.menus.get((scope, language), {})

    def menu_of(self, chat: Chat) -> dict[str, str]:
        """Read the command menu that was set for one chat."""
        return self.menu(json.dumps({"chat_id": chat.id, "type": "chat"}))

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    # -- waiting

    async def until(self, holds: Callable[[], Any], seconds: float = 5.0) -> Any:
        """Wait until a look at the server gives something true, and return it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not (found := holds()):
            if loop.time() >= end:
                shown = [(m.chat.id, m.id, m.text, m.buttons) for m in self.messages()]
                raise AssertionError(
                    f"not seen within {seconds} s; messages: {shown}; calls: {self._last_calls()}"
                )
            await self.changed.wait(end - loop.time())
        return found

    def _last_calls(self) -> list[tuple[str, int | None]]:
        return [(call.method, call.status) for call in self.calls[-10:]]

    async def message_when(
        self, predicate: Callable[[Message], bool], *, chat: Chat | None = None, seconds: float = 5.0
    ) -> Message:
        """Wait for a message of the bot that fits."""
        found = await self.until(lambda: [m for m in self.sent(chat) if predicate(m)], seconds)
        return found[0]  # type: ignore[no-any-return]  # `until` gives what the lambda gave

    async def answer_to(self, press: Press, *, seconds: float = 5.0) -> CallbackAnswer:
        """Wait for the bot's answer to a press."""
        found = await self.until(lambda: [a for a in self.answers if a.query_id == press.query_id], seconds)
        return found[0]  # type: ignore[no-any-return]  # as above

    async def called(self, method: str, times: int = 1, *, seconds: float = 5.0) -> list[Call]:
        """Wait until a method was asked for this often, answered or not."""
        return await self.until(  # type: ignore[no-any-return]  # as above
            lambda: calls if len(calls := self.calls_of(method)) >= times else None, seconds
        )

    async def updates_taken(self, *, seconds: float = 5.0) -> None:
        """Wait until the bot confirmed every update."""
        end = asyncio.get_running_loop().time() + seconds
        while self.updates.pending:
            assert asyncio.get_running_loop().time() < end, f"not confirmed: {self.updates.pending}"
            await asyncio.sleep(0.01)

    # -- misbehaving

    def misbehave(self, method: str, fault: Fault, times: int = 1) -> None:
        """Let the next requests of a method (`*`: of any) go wrong; `webhook` is the delivery of updates."""
        self.faults.add(method, fault, times)

    # -- answering

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.match_info["method"], {}, asyncio.get_running_loop().time())
        self.calls.append(call)
        self.changed.fire()
        fault = self.faults.take(call.method)
        try:
            response = await self._answer(request, call, fault)
        except ApiError as error:
            response = self._refusal(call, error, html=fault.html)
        except ConnectionError:
            response = web.Response(status=499)  # the bot hung up: it was stopped or killed, as tests do
        except Exception as error:  # noqa: BLE001 - whatever broke in the server has to fail the test
            self.violations.append(f"{call.method}: the test server failed: {error!r}")
            response = web.json_response(ApiError(500, "Internal Server Error").body(), status=500)
        if fault.late:
            await asyncio.sleep(fault.late)
        if (fault.drop_before or fault.drop_after) and request.transport:
            request.transport.abort()
            call.status = 0
        else:
            call.status = response.status
        self.changed.fire()
        return response

    async def _answer(self, request: web.Request, call: Call, fault: Fault) -> web.Response:
        if request.match_info["token"] != self.token or self.revoked:
            raise ApiError(401, "Unauthorized")
        self._check_method(call.method)
        raw = await _read(request)
        call.values, call.problems = parameters(call.method, raw)
        if call.problems:
            raise ApiError(400, f"Bad Request: {'; '.join(call.problems)}", violation=True)
        if fault.error:
            raise fault.error
        if fault.drop_before:
            return web.Response()
        result = self.methods.table[call.method](call.values)
        if inspect.isawaitable(result):
            result = await result
        problems = answer_problems(call.method, result)
        if problems:
            raise ApiError(500, f"the test server made a wrong answer: {problems}", violation=True)
        return web.json_response({"ok": True, "result": result})

    def _check_method(self, method: str) -> None:
        if method not in METHOD_NAMES:
            raise ApiError(404, "Not Found: method not found", violation=True)
        if method not in self.methods.table:
            raise ApiError(404, f"Not Found: the test server does not implement {method}", violation=True)

    def _refusal(self, call: Call, error: ApiError, *, html: bool) -> web.Response:
        if error.violation:
            self.violations.append(f"{call.method}: {error.code} {error.text}")
        if html:
            return web.Response(
                status=error.code, text=f"<html><h1>{error.text}</h1></html>", content_type="text/html"
            )
        return web.json_response(error.body(), status=error.code)


async def _read(request: web.Request) -> dict[str, Any]:
    """Read the parameters of a query, a form, a JSON body or a multipart body."""
    raw: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        body: dict[str, Any] = await request.json()
        return raw | body
    if request.content_type == "multipart/form-data":
        return raw | await _read_multipart(request)
    return raw | {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


async def _read_multipart(request: web.Request) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    async for piece in await request.multipart():
        assert isinstance(piece, BodyPartReader), "nested multipart"
        content = bytes(await piece.read())
        is_file = piece.filename is not None
        mime = piece.headers.get("Content-Type", "application/octet-stream")
        fields[piece.name or ""] = (
            Upload(piece.filename or "", mime, content) if is_file else content.decode()
        )
    return _attached(fields)


def _attached(fields: dict[str, Any]) -> dict[str, Any]:
    """Put files that are named by attach:// where they are named."""
    named = {
        name: value[9:]
        for name, value in fields.items()
        if isinstance(value, str) and value[:9] == "attach://"
    }
    used = {part for part in named.values() if isinstance(fields.get(part), Upload)}
    found = {name: fields[part] for name, part in named.items() if part in used}
    return {name: found.get(name, value) for name, value in fields.items() if name not in used}
