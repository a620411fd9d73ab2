"""The client of the socket, for the command line and for agents written in Python.

Standard library only, and little of it: how soon a command starts depends on what is imported here.
"""

from __future__ import annotations

import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Notified = Callable[[str, dict[str, Any]], None]

LINE_LIMIT = 1024 * 1024
ANSWER_TIMEOUT_S = 15.0

INVALID_PARAMS = -32602
NOT_PERMITTED = -32002
LINE_TOO_LONG = -32005
PASSPHRASE_NEEDED = -32008


class ClientError(Exception):
    """The daemon could not be asked, or did not take what it was asked."""


class Unreachable(ClientError):  # noqa: N818 - reads as what it is
    """No daemon answers, or it went away before it answered."""


class NoToken(ClientError):  # noqa: N818 - as above
    """There is no token to say hello with."""


class Refused(ClientError):  # noqa: N818 - as above
    """The daemon answered with an error object."""

    def __init__(self, code: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field


def home() -> str:
    """Return the directory of Sayso's state."""
    return os.path.abspath(os.environ.get("SAYSO_HOME") or os.path.expanduser("~/.sayso"))  # noqa: PTH100, PTH111 - pathlib costs a start what all of this costs


def socket_path() -> str:
    """Return where the daemon listens."""
    return f"{home()}/sayso.sock"


def agent_token(agent: str) -> str:
    """Return the token of an agent, from SAYSO_TOKEN or the home; raises NoToken."""
    if "/" in agent or agent in ("", ".", ".."):
        raise NoToken(f"{agent!r} cannot name an agent")
    return _token(
        "SAYSO_TOKEN",
        f"{home()}/agents/{agent}.token",
        f"set SAYSO_TOKEN; the operator makes one with: sayso agent add {agent} --save "
        f"(after sayso agent revoke {agent}, where there is one)",
    )


def operator_token() -> str:
    """Return the operator's token, from SAYSO_OPERATOR_TOKEN or the home; raises NoToken."""
    return _token(
        "SAYSO_OPERATOR_TOKEN",
        f"{home()}/operator.token",
        "set SAYSO_OPERATOR_TOKEN, or start the daemon once with: sayso up",
    )


def _token(variable: str, path: str, mend: str) -> str:
    token = os.environ.get(variable)
    if token:
        return token.strip()
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - as above
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        if not os.path.exists(socket_path()):  # noqa: PTH110 - as above
            raise _unreachable(socket_path(), "there is no socket") from None
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NoToken(f"no token: {variable} is not set, and {path}: {why}; {mend}") from None


class Client:
    """One connection; `with Client(…) as client: client.call(method, params)`."""

    def __init__(self, path: str, token: str, role: str = "agent") -> None:
        self._path = path
        self._hello = {"token": token, "role": role}
        self._sock: socket.socket | None = None
        self._last_id = 0
        self.greeting: dict[str, Any] = {}

    def __enter__(self) -> Client:  # noqa: PYI034 - typing costs a start 3 ms
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect and say hello; raises Unreachable, or Refused for a token that does not count."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(ANSWER_TIMEOUT_S)
        try:
            sock.connect(self._path)
        except OSError as error:
            sock.close()
            raise _unreachable(self._path, error.strerror or str(error)) from None
        self._sock = sock
        self._lines = sock.makefile("rb")
        try:
            self.greeting = self.call("hello", self._hello)
        except ClientError:
            self.close()
            raise
        sock.settimeout(None)

    def close(self) -> None:
        """Hang up; what waits goes on without this connection."""
        if self._sock is not None:
            self._lines.close()
            self._sock.close()
            self._sock = None

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, on_notification: Notified | None = None
    ) -> Any:  # noqa: ANN401 - any JSON value
        """Call and wait for the answer; raises Refused or Unreachable. Notifications go to the callback."""
        self._last_id += 1
        self._send(_line(self._last_id, method, params or {}))
        while True:
            message = self._receive()
            if "id" not in message:
                if on_notification is not None:
                    on_notification(message["method"], message["params"])
            elif "error" in message:
                error = message["error"]
                raise Refused(error["code"], error["message"], error.get("data", {}).get("field"))
            elif message["id"] == self._last_id:
                return message["result"]

    def _send(self, line: bytes) -> None:
        if self._sock is None:
            raise Unreachable("not connected")
        try:
            self._sock.sendall(line)
        except OSError as error:
            raise Unreachable(f"the daemon went away: {error.strerror or error}") from None

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except OSError as error:
            raise Unreachable(f"the daemon does not answer: {error.strerror or error}") from None
        if not line.endswith(b"\n"):
            raise Unreachable("the daemon went away before it answered")
        message: dict[str, Any] = json.loads(line)
        return message


def _unreachable(path: str, why: str) -> Unreachable:
    return Unreachable(f"no daemon answers on {path} ({why}); start it with: sayso up")


def _line(call_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}
    try:
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        raise Refused(INVALID_PARAMS, "an argument is not valid UTF-8") from None
    if len(line) > LINE_LIMIT:
        raise Refused(LINE_TOO_LONG, f"the request has {len(line)} bytes; at most {LINE_LIMIT} are taken")
    return line
