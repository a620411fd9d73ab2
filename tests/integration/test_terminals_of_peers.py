"""Which terminal a peer of the socket belongs to, of real processes on real terminals."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys

import pytest

from adapters.ingress import terminals
from adapters.ingress.terminals import terminal_of
from core.model.principal import PeerCredentials

# Connects under a name that a hostile process may take, and waits. To leave is to die and let a child hold
# the connection, while the session and its leader live on.
CONNECTS = """
import os, socket, sys

leaves = sys.argv[2:] == ["leave"]
over, held = os.pipe()
if leaves and (peer_pid := os.fork()):
    os.close(held)
    os.waitpid(peer_pid, 0)
    os.write(1, b"here\\n")
    os.read(over, 1)
    os._exit(0)
with open("/proc/self/comm", "w") as comm:
    comm.write("a) S 1 1 1 9 (x")
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
if leaves and os.fork():
    os._exit(0)
if not leaves:
    os.write(1, b"here\\n")
peer.recv(1)
"""


class Peers:
    """A listening socket, and processes that connect to it."""

    def __init__(self, path):
        self.path = path
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._processes, self._open = [], []

    def connect(self, *launcher, terminal=None, words=()):
        """Start a process on this terminal; returns what `terminal_of` needs, and the process."""
        process = subprocess.Popen(
            [*launcher, sys.executable, "-c", CONNECTS, self.path, *words],
            stdin=terminal if terminal is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        assert process.stdout.readline() == "here\n"
        sock, _ = self._listening.accept()
        self._open.append(sock)
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        numbers = (int.from_bytes(credentials[at : at + 4], sys.byteorder) for at in (0, 4, 8))
        return sock, PeerCredentials(*numbers), process

    def close(self):
        for sock in (*self._open, self._listening):
            sock.close()
        for process in self._processes:
            process.communicate(timeout=10)


@pytest.fixture
def peers(short_home):
    made = Peers(short_home / "s")
    yield made
    made.close()


@pytest.fixture
def open_pty():
    opened = []

    def make():
        opened.append(pty.openpty())
        return opened[-1][1]

    yield make
    for ends in opened:
        for end in ends:
            os.close(end)


@pytest.fixture(params=["pinned by the kernel", "pinned at accept"])
def kernel(request, monkeypatch):
    """The kernel as it is, and one that does not know SO_PEERPIDFD."""
    if request.param == "pinned at accept":
        monkeypatch.setattr(terminals, "_SO_PEERPIDFD", 32_000)


@pytest.mark.usefixtures("kernel")
def test_a_process_on_a_terminal_is_found_there_whatever_it_is_called(peers, open_pty):
    inner = open_pty()
    sock, credentials, process = peers.connect("setsid", "--ctty", terminal=inner)
    found = terminal_of(sock, credentials)
    assert found.name == os.ttyname(inner).removeprefix("/dev/")
    assert (found.uid, found.session) == (os.getuid(), process.pid)
    assert found.tty == os.fstat(inner).st_rdev


@pytest.mark.usefixtures("kernel")
def test_a_process_without_one_has_none_though_it_holds_an_open_one(peers, open_pty):
    sock, credentials, _ = peers.connect("setsid", terminal=open_pty())
    assert terminal_of(sock, credentials) is None


def test_two_terminals_are_two(peers, open_pty):
    one, other = (peers.connect("setsid", "--ctty", terminal=open_pty())[:2] for _ in range(2))
    assert terminal_of(*one) != terminal_of(*other)


@pytest.mark.usefixtures("kernel")
def test_a_process_that_left_its_connection_to_another_has_none(peers, open_pty):
    sock, credentials, leader = peers.connect("setsid", "--ctty", terminal=open_pty(), words=["leave"])
    assert leader.poll() is None
    assert credentials.pid != leader.pid
    assert terminal_of(sock, credentials) is None


def test_the_pid_of_another_process_is_not_believed_where_the_kernel_pins_it(peers, open_pty):
    """A pid that was given again: the connection's own process has ended, and its number is another's."""
    _, victim, _ = peers.connect("setsid", "--ctty", terminal=open_pty())
    sock, gone, _ = peers.connect("setsid", "--ctty", terminal=open_pty(), words=["leave"])
    assert terminal_of(sock, PeerCredentials(victim.pid, gone.uid, gone.gid)) is None


def test_a_peer_that_cannot_be_seen_from_here_has_none(peers, open_pty):
    sock, credentials, _ = peers.connect("setsid", "--ctty", terminal=open_pty())
    assert terminal_of(sock, PeerCredentials(0, credentials.uid, credentials.gid)) is None
