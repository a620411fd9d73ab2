"""The Unix socket on which agents ask and the operator decides."""

from __future__ import annotations

import asyncio
import grp
import os
import socket
import stat
import struct
from dataclasses import replace
from pathlib import Path

from adapters.ingress.connection import Connection, Service
from adapters.ingress.terminals import seat_of
from core.desks import AgentDesk, Gatekeeper, OperatorDesks
from core.errors import StartError
from core.model.principal import PeerCredentials

PATH_LIMIT = 107
_BACKLOG = 1024
_CREDENTIALS = struct.Struct("3i")


class UnixSocketIngress:
    """Listens on a socket that only its owner (and `group`, where one is given) can open.

    Without the operator's desks it takes `role: agent` alone.
    """

    def __init__(
        self,
        path: Path,
        gatekeeper: Gatekeeper,
        desk: AgentDesk,
        operator: OperatorDesks | None,
        *,
        group: str | None = None,
    ) -> None:
        self._path = path
        self._group = group
        self._service = Service(gatekeeper, desk, operator)
        self._server: asyncio.Server | None = None
        self._inode: int | None = None
        self._connections: dict[asyncio.Task[None], Connection] = {}

    @property
    def path(self) -> Path:
        """Where it listens."""
        return self._path

    def for_agents(self, path: Path, *, group: str | None = None) -> UnixSocketIngress:
        """Return another socket on the same desk, without the operator's; what is bounded is so for both."""
        service = replace(self._service, operator=None)
        made = UnixSocketIngress(path, service.gatekeeper, service.desk, None, group=group)
        made._service = service
        return made

    async def open(self) -> None:
        """Listen; raises StartError where that cannot be."""
        sock = _bind(self._path, self._group)
        self._inode = self._path.stat().st_ino
        self._server = await asyncio.start_unix_server(self._connected, sock=sock, backlog=_BACKLOG)

    async def close(self) -> None:
        """Stop listening and end every connection; safe to call twice."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._remove()
        connections = tuple(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def cut_off(self, agent: str) -> None:
        """End the connections of an agent whose token was revoked, with all calls that they still have."""
        for task, connection in tuple(self._connections.items()):
            if connection.agent == agent:
                connection.say_goodbye("this token was revoked")
                task.cancel()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        peer = _peer_of(sock)
        # At once: where the kernel cannot pin the peer's pid, another process may soon have it.
        desks = self._service.operator
        seat = seat_of(sock, peer) if desks is not None and desks.passphrase.asks else None
        connection = Connection(self._service, reader, writer, peer, seat)
        task = asyncio.create_task(connection.serve(), name=f"socket pid {peer.pid}")
        self._connections[task] = connection
        task.add_done_callback(self._connections.pop)

    def _remove(self) -> None:
        if self._path.exists() and self._path.stat().st_ino == self._inode:
            self._path.unlink()


def _peer_of(sock: socket.socket) -> PeerCredentials:
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return PeerCredentials(*_CREDENTIALS.unpack(raw))


def _bind(path: Path, group: str | None) -> socket.socket:
    length = len(os.fsencode(path))
    if length > PATH_LIMIT:
        raise StartError(
            f"the socket's path has {length} bytes and may have {PATH_LIMIT}: {path}; "
            "choose a shorter one (SAYSO_HOME, or up --socket)"
        )
    group_id = _group_id(group)
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(sock.fileno(), 0o600)  # before bind: the file never exists with a wider mode
        sock.bind(os.fspath(path))
    except OSError as error:
        sock.close()
        raise StartError(f"cannot listen on {path}: {error.strerror}") from error
    if group_id is not None:
        _share(sock, path, group_id)
    return sock


def _share(sock: socket.socket, path: Path, group_id: int) -> None:
    try:
        os.chown(path, -1, group_id)
        path.chmod(0o660)
    except OSError as error:
        sock.close()
        path.unlink(missing_ok=True)
        raise StartError(
            f"cannot give {path} to group {group_id}: {error.strerror}; is the daemon's user in it?"
        ) from error


def _group_id(group: str | None) -> int | None:
    if group is None:
        return None
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise StartError(f"the socket's group {group!r} does not exist on this machine") from None


def refuse_other_file(path: Path) -> None:
    """Raise StartError where something else than a socket has the place."""
    if os.path.lexists(path) and not stat.S_ISSOCK(path.lstat().st_mode):
        raise StartError(_in_the_way(path))


def _in_the_way(path: Path) -> str:
    return f"{path} is in the way: it is not a socket; move it, then start again"


def _clear(path: Path) -> None:
    """Remove a socket that nobody answers on; anything else stays and is an error."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(f"cannot listen on {path}: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise StartError(_in_the_way(path))
    if _answered(path):
        raise StartError(f"another daemon answers on {path}; stop it first, or choose another place")
    path.unlink(missing_ok=True)


def _answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            return True  # its queue is full, so somebody has it
        except OSError as error:
            raise StartError(f"cannot tell who has {path}: {error.strerror}") from error
    return True
