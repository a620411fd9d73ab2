"""Finds out which terminal the peer of a socket belongs to: the kernel is asked, never the peer."""

from __future__ import annotations

import os
import select
import socket
from dataclasses import dataclass
from errno import ENOPROTOOPT
from pathlib import Path

from core.model.principal import PeerCredentials
from core.model.terminal import Seat, Terminal

_SO_PEERPIDFD = 77  # Linux 6.5; Python 3.11 does not name it
_SESSION, _TTY, _STARTED = 3, 4, 19  # of what follows the name in /proc/PID/stat
_PTYS = range(136, 144)  # the majors of the pseudo terminals, 256 for each


@dataclass(frozen=True, slots=True)
class _Process:
    session: int
    tty: int
    started: int


def seat_of(sock: socket.socket, peer: PeerCredentials) -> Seat:
    """Return where the peer sits; the seat looks again whether it still does, each time it is asked."""
    terminal, process = terminal_of(sock, peer), _process(peer.pid)

    def still() -> bool:
        # The start tells two processes of one pid apart where the kernel cannot.
        now = _process(peer.pid)
        same = process is not None and now is not None and now.started == process.started
        return same and terminal_of(sock, peer) == terminal

    return Seat(terminal, still=still)


def terminal_of(sock: socket.socket, peer: PeerCredentials) -> Terminal | None:
    """Return the peer's controlling terminal; None where it has none, is gone, or cannot be seen."""
    held = pinned(sock, peer.pid)
    if held is None:
        return None
    try:
        return _terminal(peer, held)
    finally:
        os.close(held)


def pinned(sock: socket.socket, pid: int) -> int | None:
    """Open the process that connected, so that its pid can be nobody else's unnoticed."""
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        if error.errno != ENOPROTOOPT:
            return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _terminal(peer: PeerCredentials, held: int) -> Terminal | None:
    process = _process(peer.pid)
    if process is None or not process.tty:
        return None
    leader = _process(process.session)
    if leader is None or (leader.session, leader.tty) != (process.session, process.tty):
        return None
    # In its session before and after, and alive: the number of the leader was that one's all the time.
    if _process(peer.pid) != process or not alive(held):
        return None
    return Terminal(peer.uid, process.tty, process.session, leader.started, _name(process.tty))


def _process(pid: int) -> _Process | None:
    if pid <= 0:  # of a PID namespace that cannot be seen from here
        return None
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()  # the name before may hold anything, a `)` too
    return _Process(int(fields[_SESSION]), int(fields[_TTY]), int(fields[_STARTED]))


def alive(held: int) -> bool:
    """Tell whether a process that was pinned has not ended."""
    poll = select.poll()
    poll.register(held, select.POLLIN)
    return not poll.poll(0)


def _name(tty: int) -> str:
    major, minor = os.major(tty), os.minor(tty)
    if major in _PTYS:
        return f"pts/{minor + 256 * (major - _PTYS.start)}"
    return f"tty {major}:{minor}"
