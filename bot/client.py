"""The client of the socket, for the command line and for agents written in Python.

Standard library only, and little of it: how soon a command starts depends on what is imported here.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Notified = Callable[[str, dict[str, Any]], None]

LINE_LIMIT = 1024 * 1024
ANSWER_TIMEOUT_S = 15.0

SERVICE_SOCKET = "/run/sayso/agent.sock"
_PATH_LIMIT = 107
_DENIED = os.strerror(errno.EACCES)
_IN_A_RUN = ("SAYSO_RUN", "SAYSO_SESSION")
_NO_SOCKETS = (
    "this runs within a run of Sayso's, and such a run has no Unix sockets, so it cannot ask Sayso: let what "
    "started it ask instead"
)

INVALID_PARAMS = -32602
NOT_PERMITTED = -32002
LINE_TOO_LONG = -32005
PASSPHRASE_NEEDED = -32008


class ClientError(Exception):
    """The daemon could not be asked, or did not take what it was asked."""


class Unreachable(ClientError):  # noqa: N818 - reads as what it is
    """No daemon answers, or it went away before it answered."""


class Stranger(ClientError):  # noqa: N818 - as above
    """Somebody listens who must not be told a token."""


class BadSocket(ClientError):  # noqa: N818 - as above
    """What names the socket cannot name one."""


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


def home_socket() -> str:
    """Return where the daemon of this home listens, for agents and the operator."""
    return f"{home()}/sayso.sock"


def agent_sockets() -> list[str]:
    """Return where agents' own sockets lie by themselves: of a service, of a login."""
    login = os.environ.get("XDG_RUNTIME_DIR", "")
    return [SERVICE_SOCKET, f"{login}/sayso/agent.sock"] if _is_own(login) else [SERVICE_SOCKET]


def _is_own(login: str) -> bool:
    """Tell whether it is this user's: `sudo` and `su` may leave somebody else's."""
    try:
        return login.startswith("/") and os.stat(login).st_uid == os.geteuid()  # noqa: PTH116 - as above
    except OSError:
        return False


def name_socket(path: str) -> None:
    """Look at this socket alone from now on, as --socket says."""
    _named.path = os.path.abspath(path)  # noqa: PTH100 - as above


class _Named:
    path: str | None = None


_named = _Named()


def sockets_for(role: str) -> list[str]:
    """Return where to look for the daemon, in order; raises BadSocket for a relative SAYSO_SOCKET."""
    if _named.path:
        return [_named.path]
    given = os.environ.get("SAYSO_SOCKET", "")
    if given and not given.startswith("/"):
        raise BadSocket(f"SAYSO_SOCKET={given!r} must be an absolute path; begin it with /")
    for_operator = role == "operator"
    if given and not (for_operator and given in agent_sockets()):
        return [given]
    return [home_socket()] if for_operator else [home_socket(), *agent_sockets()]


def for_agent(agent: str) -> Client:
    """Make a connection for an agent; `with` opens it. Raises NoToken, or Unreachable without a daemon."""
    sockets = sockets_for("agent")
    return Client(sockets, agent_token(agent, sockets))


def agent_token(agent: str, sockets: Sequence[str] = ()) -> str:
    """Return the token of an agent, from SAYSO_TOKEN or the home; raises NoToken."""
    if "/" in agent or agent in ("", ".", ".."):
        raise NoToken(f"{agent!r} cannot name an agent")
    return _token(
        "SAYSO_TOKEN",
        f"{home()}/agents/{agent}.token",
        f"set SAYSO_TOKEN; the operator makes one with: sayso agent add {agent} --save "
        f"(after sayso agent revoke {agent}, where there is one)",
        sockets,
        "agent",
    )


def operator_token(sockets: Sequence[str] = ()) -> str:
    """Return the operator's token, from SAYSO_OPERATOR_TOKEN or the home; raises NoToken."""
    return _token(
        "SAYSO_OPERATOR_TOKEN",
        f"{home()}/operator.token",
        "set SAYSO_OPERATOR_TOKEN, or start the daemon once with: sayso up",
        sockets,
        "operator",
    )


def _token(variable: str, path: str, mend: str, sockets: Sequence[str], role: str) -> str:
    """Read a token; where there is none and no socket either, the daemon is what is missing."""
    token = os.environ.get(variable)
    if token:
        return token.strip()
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - as above
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        _unix_socket().close()  # where none can be made, neither a token nor a daemon is what is missing
        if sockets and not any(os.path.exists(one) and not _no_socket(one) for one in sockets):  # noqa: PTH110 - as above
            raise _unreachable([(one, "there is no socket") for one in sockets], role) from None
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NoToken(f"no token: {variable} is not set, and {path}: {why}; {mend}") from None


class Client:
    """One connection; `with Client(…) as client: client.call(method, params)`."""

    def __init__(self, path: str | Sequence[str], token: str, role: str = "agent") -> None:
        self._paths = [path] if isinstance(path, str) else path
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
        """Connect and say hello; raises Unreachable, Stranger, or Refused for a token that does not count."""
        sock = _connected(self._paths, self._hello["role"])
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


def _connected(paths: Sequence[str], role: str) -> socket.socket:
    """Connect to the first socket that somebody listens on; raises Stranger if that may have no token."""
    tried = []
    for path in paths:
        sock = _unix_socket()
        sock.settimeout(ANSWER_TIMEOUT_S)
        try:
            sock.connect(path)
            _be_no_stranger(sock, path, role)
        except OSError as error:
            sock.close()
            tried.append((path, error.strerror or str(error)))
        except Stranger:
            sock.close()
            raise
        else:
            return sock
    raise _unreachable(tried, role)


def _unix_socket() -> socket.socket:
    """Make a socket; raises Unreachable where none can be made, as in a run that is held."""
    try:
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        if error.errno == errno.EACCES and any(name in os.environ for name in _IN_A_RUN):
            raise Unreachable(_NO_SOCKETS) from None
        raise Unreachable(f"no Unix socket can be made here: {error.strerror or error}") from None


def _be_no_stranger(sock: socket.socket, path: str, role: str) -> None:
    """Check who listens: root, this user, or for agents whose directory it lies in; raises Stranger."""
    peer = int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    if peer in (0, os.geteuid()):
        return
    if role == "operator" and os.geteuid() != 0:  # nobody else's daemon has this user for its operator
        raise Stranger(
            f"{_name(peer)} listens on {path}; the operator's token was not sent. The operator's socket is "
            f"root's or yours (uid {os.geteuid()}): decide as the daemon's user, or leave out --socket and "
            "SAYSO_SOCKET"
        )
    directory = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 - as above
    owner = os.stat(directory).st_uid  # noqa: PTH116 - as above
    doubt = _changeable(directory, owner) if peer == owner else f"its directory belongs to uid {owner}"
    if doubt:
        raise Stranger(
            f"{_name(peer)} listens on {path}, and {doubt}; no token was sent. It must be root, you "
            f"(uid {os.geteuid()}), or the owner of the socket's directory where nobody else can change that"
        )


def _name(uid: int) -> str:
    import pwd  # noqa: PLC0415 - for this message alone

    try:
        return f"uid {uid} ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        return f"uid {uid}"


def _changeable(directory: str, owner: int) -> str:
    """Say which directory on the way somebody else can change: then the owner of the last proves nothing."""
    real = os.path.realpath(directory)
    trusted = (0, os.geteuid(), owner)
    for step in dict.fromkeys((*_steps(real), *_steps(directory))):
        found = os.lstat(step)
        open_to_others = not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o022
        sticky = found.st_mode & stat.S_ISVTX and step != real
        if found.st_uid not in trusted or (open_to_others and not sticky):
            return f"others can change {step} (uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _steps(directory: str) -> list[str]:
    """Return a directory and all above it."""
    steps = [directory]
    while (above := os.path.dirname(steps[-1])) != steps[-1]:  # noqa: PTH120 - as above
        steps.append(above)
    return steps


def _unreachable(tried: Sequence[tuple[str, str]], role: str) -> Unreachable:
    """Tell where nobody answered, and what is to be done about it."""
    looked = ", ".join(f"{path} ({_no_socket(path) or why})" for path, why in tried)
    return Unreachable(f"no daemon answers on {looked}; {_mend(tried, role)}")


def _mend(tried: Sequence[tuple[str, str]], role: str) -> str:
    denied = [path for path, why in tried if why == _DENIED]
    named = tried[0][0] in (_named.path, os.environ.get("SAYSO_SOCKET"))
    if named and _no_socket(tried[0][0]):
        return "name the socket of a daemon (--socket or SAYSO_SOCKET)"
    if denied and os.path.basename(denied[0]) == os.path.basename(home_socket()):  # noqa: PTH119 - as above
        what = f"this is the operator's socket, for {_owner_of(denied[0])} alone"
        to_agents = "agents use daemon.socket.path (SAYSO_SOCKET=PATH)"
        return f"{what}; {to_agents if role == 'agent' else 'decide as that user'}"
    mend = "start it with: sayso up"
    if denied:
        mend += ", or get this user into the socket's group (daemon.socket.group)"
    if role == "agent" and not named:
        mend += ", or say where its socket is: SAYSO_SOCKET=PATH"
    left_out = [path for path in agent_sockets() if os.path.exists(path)]  # noqa: PTH110 - as above
    if left_out and role == "operator" and tried[0][0] == home_socket():
        mend += f"; {left_out[0]} takes agents alone: decide as the daemon's user, with its SAYSO_HOME"
    return mend


def _no_socket(path: str) -> str:
    """Say what lies where a socket is looked for and cannot be one; or nothing."""
    length = len(os.fsencode(path))
    if length > _PATH_LIMIT:
        return f"{length} bytes; the path of a socket has at most {_PATH_LIMIT}"
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return ""
    if stat.S_ISSOCK(mode):
        return ""
    return "a directory, no socket" if stat.S_ISDIR(mode) else "a file, no socket"


def _owner_of(path: str) -> str:
    """Name whose socket this is, or the directory that hides it."""
    import pwd  # noqa: PLC0415 - for the one message alone

    while path != "/":
        try:
            return pwd.getpwuid(os.stat(path).st_uid).pw_name  # noqa: PTH116 - as above
        except KeyError:
            return f"uid {os.stat(path).st_uid}"  # noqa: PTH116 - as above
        except OSError:
            path = os.path.dirname(path)  # noqa: PTH120 - as above
    return "its user"


def _line(call_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}
    try:
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        raise Refused(INVALID_PARAMS, "an argument is not valid UTF-8") from None
    if len(line) > LINE_LIMIT:
        raise Refused(LINE_TOO_LONG, f"the request has {len(line)} bytes; at most {LINE_LIMIT} are taken")
    return line
