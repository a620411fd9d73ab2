"""One connection of the socket: hello, then calls, several at a time."""

from __future__ import annotations

import asyncio
import logging
import pwd
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from adapters.ingress.agent_methods import AGENT_METHODS, AgentCall
from adapters.ingress.jsonrpc import (
    VALUES_LIMIT,
    Call,
    Code,
    LineReader,
    RpcError,
    decode,
    encode_error,
    encode_notification,
    encode_result,
    is_large,
    line_too_long,
)
from adapters.ingress.namespaces import refusal_of
from adapters.ingress.operator_methods import OPERATOR_METHODS, WITHOUT_PASSPHRASE, OperatorCall
from adapters.ingress.params import Hello, read
from core.credentials import digest
from core.desks import AgentDesk, Gatekeeper, OperatorDesks
from core.errors import NotPermitted, PassphraseNeeded, RequestError, SaysoError, UnknownRequest
from core.model.principal import PeerCredentials, Reviewer
from core.model.terminal import Seat

log = logging.getLogger(__name__)

HELLO_DEADLINE_S = 15.0
UNREAD_LIMIT = 32 * 1024 * 1024
CALLS_LIMIT = 64
OPERATOR_VALUES_LIMIT = 50_000  # documents of theirs may hold thousands of entries
_CHUNK = 16 * 1024
_GOODBYE_S = 2.0
_AGENTS_ALONE = (
    "this socket takes agents alone (role: agent); the operator's is sayso.sock in SAYSO_HOME of the "
    "daemon's user: leave --socket and SAYSO_SOCKET out there"
)

Answer = Callable[[Call], Awaitable[Any]]


class HangUp(Exception):  # noqa: N818 - a decision, not a fault
    """End the connection after what was already answered."""


@dataclass(frozen=True, slots=True)
class Service:
    """What connections are about; without the operator's desks they are for agents alone."""

    gatekeeper: Gatekeeper
    desk: AgentDesk
    operator: OperatorDesks | None
    hello_deadline_s: float = HELLO_DEADLINE_S
    unread_limit: int = UNREAD_LIMIT
    calls_limit: int = CALLS_LIMIT
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)  # one large line at a time, whoever sent it


class Connection:
    """Serves one peer until it hangs up, breaks the rules, or is cancelled."""

    def __init__(
        self,
        service: Service,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: PeerCredentials,
        seat: Seat | None = None,
    ) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._peer = peer
        self._seat = seat or Seat(None)
        self._lines = LineReader()
        self._answer: Answer | None = None
        self._most_values = VALUES_LIMIT
        self._tasks: set[asyncio.Task[None]] = set()
        self._events: asyncio.Task[None] | None = None
        self.agent: str | None = None

    async def serve(self) -> None:
        """Serve; when this returns no task of the connection is left."""
        try:
            await self._converse()
        except (HangUp, ConnectionError):
            pass
        except TimeoutError:
            self._send(encode_error(RpcError(Code.UNAUTHENTICATED, "no hello came in time; good-bye")))
        finally:
            await self._end()
            await self._part()

    def say_goodbye(self, why: str) -> None:
        """Tell the peer why nothing it sends is answered any more."""
        self._send(encode_error(RpcError(Code.UNAUTHENTICATED, why)))

    async def _converse(self) -> None:
        async with asyncio.timeout(self._service.hello_deadline_s) as deadline:
            while data := await self._reader.read(_CHUNK):
                for line in self._lines.feed(data):
                    await self._take(line)
                if self._answer is not None:
                    deadline.reschedule(None)

    async def _end(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _part(self) -> None:
        """Close once the peer has read what was said, or soon anyway."""
        self._writer.close()
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._writer.wait_closed()
        except (TimeoutError, ConnectionError):
            self._writer.transport.abort()

    async def _take(self, line: bytes | None) -> None:
        try:
            call = await self._decoded(_whole(line))
        except RpcError as error:
            self._send(encode_error(error))
            await asyncio.sleep(0)  # a chunk may hold thousands of such lines
            return
        if self._answer is None:
            await self._greet(call)
        elif len(self._tasks) >= self._service.calls_limit:
            self._refuse(call, RpcError(Code.BUSY, f"{len(self._tasks)} calls are in flight; wait for one"))
        else:
            self._own(self._reply(call, self._answer), f"call {call.method} {call.id}")

    async def _decoded(self, line: bytes) -> Call:
        if not is_large(line):
            return decode(line)
        async with self._service.reading:
            return await asyncio.to_thread(decode, line, self._most_values)

    async def _greet(self, call: Call) -> None:
        try:
            hello = _hello(call)
            self._answer, who = await self._admit(hello)
        except (RpcError, SaysoError) as error:
            self._refuse(call, error)
            raise HangUp from error
        self._send(encode_result(call.id, {"role": hello.role, **who}))

    async def _admit(self, hello: Hello) -> tuple[Answer, dict[str, Any]]:
        if hello.role == "operator":
            return self._admit_operator(hello.token)
        agent = self.agent = await self._agent_of(hello.token)
        credential = digest(hello.token)

        async def answer(call: Call) -> Any:  # noqa: ANN401 - any JSON value
            await self._still(agent, hello.token)
            return await self._answer_agent(agent, credential, call)

        return answer, {"agent": agent}

    def _admit_operator(self, token: str) -> tuple[Answer, dict[str, Any]]:
        desks = self._service.operator
        # Before the token is looked at: here it is worth nothing, and nothing tells it is right.
        if desks is None:
            raise RpcError(Code.NOT_PERMITTED, _AGENTS_ALONE, field="role")
        if why := refusal_of(self._writer.get_extra_info("socket"), self._peer):
            raise RpcError(Code.NOT_PERMITTED, why, field="role")
        if not self._service.gatekeeper.operator(token):
            raise RpcError(Code.UNAUTHENTICATED, "this is not the operator's token", field="token")
        self._most_values = OPERATOR_VALUES_LIMIT
        reviewer = Reviewer("cli", str(self._peer.uid), _login_name(self._peer.uid))
        return partial(self._answer_operator, desks, reviewer), desks.passphrase.standing(self._seat)

    async def _agent_of(self, token: str) -> str:
        agent = await self._service.gatekeeper.agent(token)
        if agent is None:
            raise RpcError(Code.UNAUTHENTICATED, "this token is not known, or it was revoked", field="token")
        return agent

    async def _still(self, agent: str, token: str) -> None:
        if await self._agent_of(token) != agent:
            raise RpcError(Code.UNAUTHENTICATED, "this token is another agent's now", field="token")

    async def _answer_agent(self, agent: str, credential: str, call: Call) -> Any:  # noqa: ANN401 - any JSON value
        method = AGENT_METHODS.get(call.method)
        if method is None:
            raise _no_such_method(call, OPERATOR_METHODS, "operator only")
        context = AgentCall(agent, self._peer, self._service.desk, call.id, self._notify, credential)
        return await method(context, call.params)

    async def _answer_operator(self, desks: OperatorDesks, reviewer: Reviewer, call: Call) -> Any:  # noqa: ANN401 - any JSON value
        method = OPERATOR_METHODS.get(call.method)
        if method is None:
            raise _no_such_method(call, AGENT_METHODS, "agents only")
        if call.method not in WITHOUT_PASSPHRASE:
            desks.passphrase.require(self._seat)
        context = OperatorCall(desks, reviewer, partial(self._subscribe, desks), self._seat)
        return await method(context, call.params)

    async def _reply(self, call: Call, answer: Answer) -> None:
        try:
            self._send(encode_result(call.id, await answer(call)))
        except (RpcError, SaysoError) as error:
            self._refuse(call, error)
        except Exception:  # a fault of ours is answered, too: nobody may be left waiting
            log.exception("call %s failed", call.method)
            self._refuse(call, RpcError(Code.INTERNAL, "an internal error; the daemon's log has it"))

    def _refuse(self, call: Call, error: RpcError | SaysoError) -> None:
        self._send(encode_error(error if isinstance(error, RpcError) else _told(error), call.id))

    async def _subscribe(self, desks: OperatorDesks) -> None:
        if self._events is not None and not self._events.done():
            raise RpcError(Code.INVALID_REQUEST, "this connection is subscribed already")
        self._events = self._own(self._pump(desks), "events")
        await asyncio.sleep(0)  # the subscription stands before it is confirmed

    async def _pump(self, desks: OperatorDesks) -> None:
        try:
            async for event in desks.console.subscribe():
                desks.passphrase.require(self._seat)
                self._notify(event["method"], event["params"])
            log.warning("pid %d fell behind in its events; disconnected", self._peer.pid)
        except NotPermitted as error:
            self.say_goodbye(str(error))
            self._writer.close()
            return
        except Exception:  # whoever subscribed must learn that it missed something
            log.exception("the events of pid %d broke off; disconnected", self._peer.pid)
        self._writer.transport.abort()

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(encode_notification(method, params))

    def _send(self, line: bytes) -> None:
        """Write without waiting; a peer that leaves too much unread is cut off."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > self._service.unread_limit:
            log.warning("pid %d does not read what it asked for; disconnected", self._peer.pid)
            transport.abort()
            return
        self._writer.write(line)

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"socket pid {self._peer.pid}: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _whole(line: bytes | None) -> bytes:
    if line is None:
        raise line_too_long()
    return line


def _hello(call: Call) -> Hello:
    if call.method != "hello":
        raise RpcError(Code.UNAUTHENTICATED, "the first call must be hello {token, role}")
    return read(Hello, call.params)


def _no_such_method(call: Call, others: Mapping[str, object], refusal: str) -> RpcError:
    if call.method == "hello":
        return RpcError(Code.INVALID_REQUEST, "hello was said already; open a new connection")
    if call.method in others:
        return RpcError(Code.NOT_PERMITTED, f"{call.method}: {refusal}")
    return RpcError(Code.UNKNOWN_METHOD, f"there is no method {call.method[:100]!r}", field="method")


def _told(error: SaysoError) -> RpcError:
    if isinstance(error, UnknownRequest):
        return RpcError(Code.UNKNOWN_REQUEST, str(error), field=error.field or "id")
    if isinstance(error, RequestError):
        return RpcError(Code.INVALID_PARAMS, str(error), field=error.field)
    if isinstance(error, PassphraseNeeded):
        return RpcError(Code.PASSPHRASE_NEEDED, str(error))
    if isinstance(error, NotPermitted):
        return RpcError(Code.NOT_PERMITTED, str(error))
    return RpcError(Code.FAILED, str(error))


def _login_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
