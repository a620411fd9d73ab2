"""Whose process is at the other end of a TCP connection: real processes, found as the page finds them."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from adapters.neighbours import Neighbours
from adapters.tcp_ends import is_own, owner_of
from tests.users import python_for_all

ROOT = Path(__file__).parents[2]
# Users of their own where root can be any: the kernel needs no account, and nothing else runs so.
UID, ALONE = (61235, 61236) if os.geteuid() == 0 else (os.geteuid(),) * 2
APART = ("unshare", "--user")
HELD = ("bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--dev-bind", "/", "/")
# Connects, does what it was told to with the connection, says so, and waits to be ended.
CALLS = """
import ctypes, os, socket, subprocess, sys, threading
mode, family, host, port = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
libc = ctypes.CDLL(None, use_errno=True)

def call():
    sock = socket.socket(family)
    sock.connect((host, port))
    return sock

def wait():
    print("up", flush=True)
    sys.stdin.read()

def own_table():
    assert libc.unshare(0x400) == 0
    sock = call()
    wait()
    os._exit(0)

def hand_over(*words):
    child = subprocess.Popen([*words, "sleep", "600"], pass_fds=[sock.fileno()], preexec_fn=die_with_parent)
    while words and os.readlink(f"/proc/{child.pid}/ns/user") == os.readlink("/proc/self/ns/user"):
        pass  # it is still on its way
    return child

def die_with_parent():
    libc.prctl(1, 9, 0, 0, 0)

if mode == "own-table":
    threading.Thread(target=own_table).start()
    threading.Event().wait()
sock = call()
if mode == "closed":
    sock.close()
elif mode == "in-flight":
    ends = socket.socketpair()
    socket.send_fds(ends[0], [b"x"], [sock.fileno()])
    sock.close()
elif mode == "handed-on":
    hand_over("unshare", "--user")
    sock.close()
elif mode == "shared":
    hand_over("unshare", "--user")
elif mode == "shared-beside":
    hand_over()
elif mode == "undumpable":
    libc.prctl(4, 0, 0, 0, 0)
elif mode == "first-thread-ended":
    def stay():
        wait()
        os._exit(0)
    threading.Thread(target=stay).start()
    libc.pthread_exit(None)
wait()
"""
# Tells what an ordinary user's daemon says of a caller; root, who sees all, would not say the same.
LOOKS = """
import json, os, sys
from adapters.neighbours import Neighbours

class Users(frozenset):
    ends = int(sys.argv[3])

    def __contains__(self, uid):
        # First asked between the look at the connection and the look at the processes.
        if self.ends:
            os.kill(self.ends, 9)
            while not open(f"/proc/{self.ends}/stat").read().rpartition(")")[2].startswith(" Z"):
                pass
            Users.ends = 0
        return super().__contains__(uid)

print(json.dumps(Neighbours(Users({int(sys.argv[1])})).refusal_of(*json.loads(sys.argv[2]))))
"""
SIOCGIFADDR = 0x8915
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what a page may listen on
LOOPBACK = (socket.AF_INET, "127.0.0.1")


def as_user(uid):
    """Give what is put before a command so that it is this user's."""
    return () if os.geteuid() else ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--")


def python():
    return sys.executable if os.geteuid() else python_for_all()


class Line:
    """One connection, as its two ends and the process that made it."""

    def __init__(self, mode, where=(), listening=LOOPBACK, calling=None, uid=UID):
        family, host = listening
        with socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as server:
            theirs_family, theirs_host = calling or listening
            words = [mode, str(int(theirs_family)), theirs_host, str(server.getsockname()[1])]
            self.process = subprocess.Popen(
                [*as_user(uid), *where, python(), "-c", CALLS, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd="/",
                text=True,
            )
            server.settimeout(20)
            self.sock, _ = server.accept()
        assert self.process.stdout.readline() == "up\n"
        self.ends = self.sock.getpeername()[:2], self.sock.getsockname()[:2]

    def close(self):
        self.sock.close()
        self.process.kill()
        self.process.communicate(timeout=20)


@pytest.fixture
def line():
    made = []

    def make(*args, **options):
        made.append(Line(*args, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def seen_from_here(line, uid=UID):
    return Neighbours({uid}).refusal_of(*line.ends)


def seen_by_user(line, uid=UID, ends=0):
    done = subprocess.run(
        [*as_user(uid), python(), "-c", LOOKS, str(uid), json.dumps(line.ends), str(ends)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=[seen_from_here, seen_by_user])
def refusal(request):
    return request.param


@pytest.mark.parametrize("where", [APART, HELD])
def test_a_caller_in_another_user_namespace_is_told_from_one_beside(line, refusal, where):
    assert "another user namespace" in refusal(line("stay", where))
    assert refusal(line("stay")) is None


def own_address():
    """Give an address of this machine by which others reach it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                asked = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", name.encode()))
                if not (address := socket.inet_ntoa(asked[20:24])).startswith("127."):
                    return address
    return pytest.skip("this machine has no address but loopback")


@pytest.mark.parametrize(
    ("listening", "calling"),
    [
        ((socket.AF_INET6, "::1"), None),
        ((socket.AF_INET6, "::"), (socket.AF_INET, "127.0.0.1")),
        ((socket.AF_INET6, "::"), (socket.AF_INET6, "::ffff:127.0.0.1")),
        ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")),
        ((socket.AF_INET, EVERYWHERE), (socket.AF_INET, "127.0.0.9")),
        ((socket.AF_INET, EVERYWHERE), (socket.AF_INET, None)),
    ],
)
def test_by_whatever_address_it_calls(line, listening, calling):
    if calling and calling[1] is None:
        calling = (calling[0], own_address())
    apart, beside = (line("stay", where, listening=listening, calling=calling) for where in (APART, ()))
    assert "another user namespace" in seen_from_here(apart)
    assert seen_from_here(beside) is None


def test_a_connection_that_was_handed_to_another_user_namespace_is_refused_whoever_else_has_it(line, refusal):
    for mode in ("handed-on", "shared"):
        assert "another user namespace" in refusal(line(mode))
    assert refusal(line("shared-beside")) is None


def test_the_descriptors_of_each_thread_count(line, refusal):
    for mode in ("own-table", "first-thread-ended"):
        assert "another user namespace" in refusal(line(mode, APART))
    assert refusal(line("first-thread-ended")) is None


@pytest.mark.parametrize("where", [APART, ()])
def test_a_connection_that_no_process_has_is_refused(line, refusal, where):
    assert "cannot be found out" in refusal(line("in-flight", where))


@pytest.mark.parametrize("where", [APART, ()])
def test_a_caller_that_has_hung_up_is_refused(line, refusal, where):
    called = line("closed", where)
    assert "no open socket" in refusal(called)
    called.sock.close()  # and still where the kernel has forgotten, or goes on with, the other end
    assert "no open socket" in refusal(called)


def test_who_lets_nobody_see_its_descriptors_is_let_be_while_nothing_is_there_that_could_hide(line):
    if os.geteuid():
        pytest.skip("only root can be a user as whom nothing else runs")
    beside = line("undumpable", uid=ALONE)
    assert seen_by_user(beside, ALONE) is None
    ended = line("stay", uid=ALONE)
    assert "cannot be found out" in seen_by_user(ended, ALONE, ends=ended.process.pid)
    hidden = line("in-flight", APART, uid=ALONE)
    assert "cannot be found out" in seen_by_user(hidden, ALONE)
    assert "ssh" in seen_by_user(beside, ALONE)


def test_a_caller_in_another_user_namespace_that_lets_nobody_see_is_refused(line):
    assert "cannot be found out" in seen_by_user(line("undumpable", APART))
    if not os.geteuid():
        assert "another user namespace" in seen_from_here(line("undumpable", APART))


def test_users_as_whom_no_run_can_be_are_let_be_and_so_are_other_machines(line):
    apart = line("stay", APART)
    assert Neighbours({UID + 1}).refusal_of(*apart.ends) is None
    assert Neighbours({UID}).refusal_of(("198.51.100.7", 40000), apart.ends[1]) is None
    # The control: an address of this machine that nobody calls from.
    assert "no open socket" in Neighbours({UID}).refusal_of(("127.0.0.77", 40000), apart.ends[1])


def test_two_connections_from_one_port_are_not_taken_for_each_other():
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket() as first,
        socket.socket() as second,
    ):
        for sock in (first, second):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        first.bind(("127.0.0.1", 0))
        second.bind(first.getsockname())
        first.connect(one.getsockname())
        second.connect(other.getsockname())
        for calling, called in ((first, one), (second, other)):
            found = owner_of(calling.getsockname(), called.getsockname())
            assert (found.uid, found.inode) == (os.geteuid(), os.fstat(calling.fileno()).st_ino)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"])
def test_addresses_of_this_machine_are_known(address):
    assert is_own(address)


@pytest.mark.parametrize("address", ["198.51.100.7", "2001:db8::7", "::ffff:198.51.100.7", "fe80::7%lo"])
def test_other_addresses_are_not_taken_for_them(address):
    assert not is_own(address)


def test_the_address_that_others_see_is_known():
    assert is_own(own_address())
