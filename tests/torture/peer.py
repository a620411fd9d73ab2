"""A client of the socket that lives with a daemon that dies under it."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Told = Callable[[str, dict[str, Any]], None]
LONGEST_LINE = 2**24
PATIENCE_S = 60.0
_SETRESUID = {"x86_64": 117, "aarch64": 147}


class Gone(Exception):  # noqa: N818 - reads as what it is
    """The daemon went away before it answered."""


class Refused(Exception):  # noqa: N818 - as above
    """The daemon answered with an error."""


@contextmanager
def _as_user(uid: int | None) -> Iterator[None]:
    """Be somebody else for the kernel's answer to "who connects?", and still root for the files' modes."""
    if uid is None:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    mine, number = os.geteuid(), _SETRESUID[os.uname().machine]

    def become(effective: int) -> None:
        # The library's own call would change all threads, and others are opening files.
        if libc.syscall(number, -1, effective, -1) != 0:
            raise OSError(ctypes.get_errno(), "setresuid")

    become(uid)
    try:
        libc.setfsuid(mine)
        yield
    finally:
        become(mine)


class Peer:
    """One connection; `heard` is called for every line either way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[], None]):
        self._reader = reader
        self._writer = writer
        self._heard = heard
        self._last = 0

    @classmethod
    async def connect(
        cls, path: Path, token: str, role: str, heard: Callable[[], None], uid: int | None = None
    ) -> Peer:
        """Connect, as this user, and say hello; raises Gone where no daemon answers."""
        sock = socket.socket(socket.AF_UNIX)
        try:
            with _as_user(uid):
                sock.connect(str(path))
            reader, writer = await asyncio.open_unix_connection(sock=sock, limit=LONGEST_LINE)
        except OSError as error:
            sock.close()
            raise Gone(str(error)) from None
        peer = cls(reader, writer, heard)
        try:
            await peer.call("hello", token=token, role=role)
        except BaseException:
            peer.close()
            raise
        return peer

    async def call(self, method: str, told: Told | None = None, **params: Any) -> Any:
        """Call and wait for the answer; notifications go to `told`."""
        self._last += 1
        call = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        try:
            self._writer.write(json.dumps(call).encode() + b"\n")
            await self._writer.drain()
        except OSError as error:
            raise Gone(str(error)) from None
        self._heard()
        while True:
            message = await self._receive()
            if "id" not in message:
                if told is not None:
                    told(message["method"], message["params"])
            elif "error" in message:
                raise Refused(message["error"]["message"])
            elif message["id"] == self._last:
                return message["result"]

    def close(self) -> None:
        """Hang up without a word."""
        self._writer.transport.abort()

    async def _receive(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(PATIENCE_S):
                line = await self._reader.readline()
        except OSError as error:
            raise Gone(str(error)) from None
        if not line.endswith(b"\n"):
            raise Gone("the connection ended")
        self._heard()
        message: dict[str, Any] = json.loads(line)
        return message
