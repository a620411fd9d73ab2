"""Where a client looks for the daemon, in which order, and what each role leaves out."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import client
from bot.cli import main
from bot.cli.operator import connected
from bot.cli.parser import Parser, verb
from bot.client import BadSocket, Client, Unreachable, name_socket, sockets_for

SERVICE = "/run/sayso/agent.sock"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(client._named, "path", None)
    monkeypatch.setenv("SAYSO_HOME", str(tmp_path))
    for variable in ("SAYSO_TOKEN", "SAYSO_OPERATOR_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def short_place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sayso-", dir="/tmp") as path:
        yield Path(path)


def test_without_a_word_agents_try_the_home_then_a_service_then_the_login(home, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert sockets_for("agent") == [f"{home}/sayso.sock", SERVICE, f"{tmp_path}/sayso/agent.sock"]


def test_the_operator_tries_the_home_alone(home, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert sockets_for("operator") == [f"{home}/sayso.sock"]


@pytest.mark.parametrize("role", ["agent", "operator"])
def test_what_is_named_is_all_that_is_tried_and_the_option_comes_first(role, monkeypatch):
    monkeypatch.setenv("SAYSO_SOCKET", "/srv/s")
    assert sockets_for(role) == ["/srv/s"]
    name_socket("/srv/other")
    assert sockets_for(role) == ["/srv/other"]


def test_an_agents_socket_that_the_environment_names_is_left_out_by_the_operator(home, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for path in (SERVICE, f"{tmp_path}/sayso/agent.sock"):
        monkeypatch.setenv("SAYSO_SOCKET", path)
        assert sockets_for("agent") == [path]
        assert sockets_for("operator") == [f"{home}/sayso.sock"]


def test_where_only_an_agents_socket_is_there_the_operator_is_told(home, monkeypatch):
    (home / "sayso").mkdir()
    (home / "sayso" / "agent.sock").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    monkeypatch.setenv("SAYSO_OPERATOR_TOKEN", "x")
    with pytest.raises(
        Unreachable, match=f"{home}/sayso/agent.sock takes agents alone: decide as the daemon"
    ):
        connected().connect()


def test_an_empty_variable_is_none(home, monkeypatch):
    monkeypatch.setenv("SAYSO_SOCKET", "")
    assert sockets_for("agent")[0] == f"{home}/sayso.sock"


def test_a_relative_variable_is_refused_with_its_value(capsys, monkeypatch):
    monkeypatch.setenv("SAYSO_SOCKET", "run/agent.sock")
    with pytest.raises(BadSocket, match="must be an absolute path"):
        sockets_for("agent")
    assert main(["exec", "--", "true"]) == 78
    assert "SAYSO_SOCKET='run/agent.sock'" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_the_runtime_directory_of_somebody_else_is_not_looked_into(tmp_path, monkeypatch):
    os.chown(tmp_path, 12345, -1)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert sockets_for("agent")[1:] == [SERVICE]


def test_an_option_that_is_relative_begins_here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name_socket("s")
    assert sockets_for("agent") == [f"{tmp_path}/s"]


def test_an_empty_option_is_a_slip(capsys):
    assert main(["pending", "--socket", ""]) == 64
    assert "--socket is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--socket", "/s", "list"], ["list", "--socket", "/s"], ["--json", "--socket=/s", "list"]],
)
def test_it_stands_before_a_verb_or_behind(arguments):
    which, rest = verb("agent", arguments, "Agents.", {"list": "list them"})
    parser = Parser("agent list", "")
    parser.json_flag()
    options = parser.parse_args(rest)
    assert (which, sockets_for("operator")) == ("list", ["/s"])
    assert vars(options).keys() == {"json"}, "no command passes the path on by mistake"


@pytest.mark.parametrize(
    "command",
    [
        "exec",
        "check",
        "wait",
        "pending",
        "history",
        "show",
        "approve",
        "deny",
        "cancel",
        "lock",
        "unlock",
        "sessions",
        "elevated",
        "reload",
        "status",
        "pair",
        "doctor",
        "explain",
        "tools",
        "agent_list",
        "session_bind",
        "permissions_list",
        "allowlist_list",
        "people_list",
        "web_link",
        "channels_test",
        "audit_verify",
    ],
)
def test_every_client_takes_it(capsys, command):
    with pytest.raises(SystemExit):
        main([*command.split("_"), "--help"])
    assert "--socket PATH" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["config_check", "init", "version", "policy_test"])
def test_what_asks_no_daemon_does_not_take_it(capsys, command):
    with pytest.raises(SystemExit):
        main([*command.split("_"), "--help"])
    assert "--socket" not in capsys.readouterr().out


def answering(path: Path) -> threading.Thread:
    """Listen, and answer one hello."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def answer() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n')

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_what_a_dead_daemon_left_does_not_hide_the_next(short_place):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(f"{short_place}/dead")
    thread = answering(short_place / "alive")
    with Client([f"{short_place}/none", f"{short_place}/dead", f"{short_place}/alive"], "x"):
        pass
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("length", [107, 108])
def test_a_path_that_is_too_long_is_told(short_place, length):
    path = f"{short_place}/{'x' * (length - len(str(short_place)) - 1)}"
    with pytest.raises(
        Unreachable, match="108 bytes; the path of a socket" if length > 107 else "No such file"
    ):
        Client(path, "x").connect()


def test_each_place_that_was_looked_at_is_told(short_place):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(f"{short_place}/dead")
    with pytest.raises(Unreachable) as caught:
        Client([f"{short_place}/a", f"{short_place}/b", f"{short_place}/dead"], "x").connect()
    missing = ", ".join(f"{short_place}/{name} (No such file or directory)" for name in "ab")
    assert f"{missing}, {short_place}/dead (Connection" in str(caught.value)
