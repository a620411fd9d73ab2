"""What a person is told where no daemon answers."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli.exits import UsageError
from bot.cli.run import exec_command
from bot.cli.up import up_command
from bot.client import SERVICE_SOCKET, Client, NoToken, Unreachable, agent_token, sockets_for


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sayso-", dir="/tmp"))
    monkeypatch.setenv("SAYSO_HOME", str(path))
    monkeypatch.delenv("SAYSO_SOCKET", raising=False)
    monkeypatch.delenv("SAYSO_TOKEN", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    yield path
    shutil.rmtree(path)


def said(role: str = "agent") -> str:
    with pytest.raises(Unreachable) as refused:
        Client(sockets_for(role), "token", role).connect()
    return str(refused.value)


def test_an_agent_is_told_every_place_that_was_looked_at_and_how_to_name_one(home):
    told = said()
    assert f"{home}/sayso.sock (" in told
    assert f"{SERVICE_SOCKET} (" in told
    assert "SAYSO_SOCKET=PATH" in told
    assert SERVICE_SOCKET not in said("operator")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("x" * 110, "bytes; the path of a socket has at most 107"),
        ("file", "(a file, no socket); name the socket"),
        ("folder", "(a directory, no socket); name the socket"),
    ],
)
def test_what_can_be_no_socket_is_told_and_nobody_is_sent_to_start_a_daemon(home, monkeypatch, name, told):
    (home / "file").touch()
    (home / "folder").mkdir()
    monkeypatch.setenv("SAYSO_SOCKET", str(home / name))
    assert told in said()
    assert "sayso up" not in said()
    with pytest.raises(Unreachable, match=re.escape(told)):
        agent_token("main", sockets_for("agent"))


def test_a_socket_without_a_token_still_misses_the_token(home, monkeypatch):
    monkeypatch.setenv("SAYSO_SOCKET", str(home / "s"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        with pytest.raises(NoToken):
            agent_token("main", sockets_for("agent"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sayso.sock", "this is the operator's socket, for root alone; agents use daemon.socket.path"),
        ("agent.sock", "or get this user into the socket's group"),
    ],
)
def test_the_operator_s_socket_is_told_from_one_whose_group_may_connect(home, monkeypatch, name, told):
    monkeypatch.setenv("SAYSO_SOCKET", str(home / name))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / name))
        os.seteuid(12345)
        try:
            assert told in said()
        finally:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("command", "arguments", "told"),
    [
        (up_command, ["--port", "99999"], "argument --port: '99999' is no port; 1 to 65535"),
        (up_command, ["--port", "1e3"], "argument --port: '1e3' is no port"),
        (up_command, ["--port=-1"], "argument --port: '-1' is no port"),
        (
            exec_command,
            ["--timeout", "soon", "--", "true"],
            "--timeout: 'soon' is no length of time; give s",
        ),
        (exec_command, ["--timeout", "0", "--", "true"], "argument --timeout: '0' is no length of time"),
    ],
)
def test_what_an_option_cannot_be_is_told_in_words(command, arguments, told):
    with pytest.raises(UsageError, match=re.escape(told)):
        command(arguments)
