"""Somebody else listens where a client looks for Sayso: they are told no token."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.users import User, needs_users, python_for_all

pytestmark = needs_users

# Tells that it listens, then what the first who connected sent.
LISTENER = """
import os, socket, sys
os.umask(0)
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    print("listening", flush=True)
    connection, _ = listener.accept()
    with connection:
        print(connection.recv(65536), flush=True)
"""
SECRET = "the-token-of-an-agent"


@pytest.fixture
def place() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sayso-s-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def stranger() -> User:
    entry = pwd.getpwnam("games")
    return User(entry.pw_uid, entry.pw_gid)


@pytest.fixture
def agent() -> User:
    entry = pwd.getpwnam("bin")
    return User(entry.pw_uid, entry.pw_gid)


@pytest.fixture
def asked(stranger: User, agent: User) -> Callable[..., tuple[int, str, str]]:
    """Let the stranger listen and the agent ask; gives status, what was told, and what was received."""

    def ask(path: Path, as_user: User = agent, named: Path | None = None) -> tuple[int, str, str]:
        words = [python_for_all(), "-c", LISTENER, str(path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **stranger.identity) as listener:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "listening\n"
            env = {"SAYSO_TOKEN": SECRET, "SAYSO_SOCKET": str(named or path)}
            status, _, err = as_user.sayso("exec", "--", "true", env=env)
            return status, err, listener.stdout.readline()

    return ask


def directory(path: Path, owner: int, mode: int) -> Path:
    path.mkdir()
    os.chown(path, owner, -1)
    path.chmod(mode)
    return path


def refused(found: tuple[int, str, str], stranger: User) -> bool:
    status, told, received = found
    assert SECRET not in told
    name = pwd.getpwuid(stranger.uid).pw_name
    return (status, received) == (69, "b''\n") and f"uid {stranger.uid} ({name}) listens on" in told


def test_the_control_the_owner_of_a_closed_directory_gets_it(place, stranger, asked):
    own = directory(place / "own", stranger.uid, 0o755)
    assert SECRET in asked(own / "agent.sock")[2]


def test_the_control_one_s_own_listener_gets_it_wherever_it_is(place, stranger, asked):
    anywhere = directory(place / "anywhere", 0, 0o777)
    assert SECRET in asked(anywhere / "agent.sock", as_user=stranger)[2]


def test_in_a_directory_of_root_that_all_may_write_to(place, stranger, asked):
    assert refused(asked(directory(place / "tmp", 0, 0o1777) / "agent.sock"), stranger)


def test_in_a_directory_of_the_one_who_asks(place, stranger, agent, asked):
    shared = directory(place / "shared", agent.uid, 0o777)
    assert refused(asked(shared / "agent.sock"), stranger)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_in_a_directory_of_their_own_that_others_can_change(place, stranger, asked, mode):
    own = directory(place / "own", stranger.uid, mode)
    found = asked(own / "agent.sock")
    assert refused(found, stranger)
    assert f"others can change {own}" in found[1]


def test_below_a_directory_in_which_they_could_put_their_own(place, stranger, asked):
    above = directory(place / "above", 0, 0o777)
    found = asked(directory(above / "own", stranger.uid, 0o755) / "agent.sock")
    assert refused(found, stranger)
    assert f"others can change {above}" in found[1]


def test_below_a_directory_of_a_third_user(place, stranger, asked):
    above = directory(place / "above", pwd.getpwnam("mail").pw_uid, 0o755)
    assert refused(asked(directory(above / "own", stranger.uid, 0o755) / "agent.sock"), stranger)


def test_behind_a_link_that_they_could_have_made(place, stranger, asked):
    open_to_all = directory(place / "open", 0, 0o777)
    own = directory(place / "own", stranger.uid, 0o755)
    (open_to_all / "link").symlink_to(own)
    assert refused(asked(own / "agent.sock", named=open_to_all / "link" / "agent.sock"), stranger)


def test_a_link_to_the_socket_of_a_stranger_in_a_closed_directory_of_root(place, stranger, asked):
    own = directory(place / "own", stranger.uid, 0o755)
    closed = directory(place / "closed", 0, 0o755)
    (closed / "agent.sock").symlink_to(own / "agent.sock")
    assert refused(asked(own / "agent.sock", named=closed / "agent.sock"), stranger)


@pytest.fixture
def decided(stranger: User) -> Callable[..., tuple[int, str, str]]:
    """Let the stranger listen and an operator call, as `asked` does for an agent."""

    def decide(path: Path, as_user: User) -> tuple[int, str, str]:
        words = [python_for_all(), "-c", LISTENER, str(path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **stranger.identity) as listener:
            assert listener.stdout is not None
            listener.stdout.readline()
            env = {"SAYSO_OPERATOR_TOKEN": SECRET}
            status, _, err = as_user.sayso("pending", "--socket", str(path), env=env)
            return status, err, listener.stdout.readline()

    return decide


def test_the_operator_s_token_is_kept_from_them_too(place, stranger, agent, decided):
    shared = directory(place / "shared", 0, 0o1777)
    assert refused(decided(shared / "s", agent), stranger)


def test_the_operator_s_token_goes_to_nobody_else_though_the_directory_is_theirs(
    place, stranger, agent, decided
):
    own = directory(place / "own", stranger.uid, 0o755)
    found = decided(own / "s", agent)
    assert refused(found, stranger)
    assert "the operator's token was not sent" in found[1]


@pytest.mark.parametrize("caller", ["themselves", "root"])
def test_the_control_the_operator_s_own_listener_and_root_s_call_send_it(place, stranger, decided, caller):
    own = directory(place / "own", stranger.uid, 0o755)
    assert SECRET in decided(own / "s", stranger if caller == "themselves" else User(0, 0))[2]
