"""What is wrong gets one clear line and the right exit status, and changes nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.daemon

SAYSO = Path(sys.executable).parent / "sayso"


def start_refused(root, config, home=None, env=None):
    """Start a daemon that must refuse; returns what it said."""
    file = root / "bad.yaml"
    if config is not None:
        file.write_bytes(config if isinstance(config, bytes) else config.encode())
    done = subprocess.run(
        [SAYSO, "up", "--config", file, "--port", "0"],
        env={**os.environ, "SAYSO_HOME": str(home or root / "home"), **(env or {})},
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 78, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("tools:\n  exec:\n    securty: allowlist\n", ["bad.yaml:3", "securty", "security"]),
        ("tools:\n  exec:\n    security: lax\n", ["bad.yaml:3", "lax", "allowlist"]),
        ("approvals:\n  exec:\n    timeout: soon\n", ["bad.yaml:3", "timeout", "soon"]),
        ("tools:\n  exec: [\n", ["bad.yaml"]),
        ("tools: {deny: [x]}\ntools: {deny: [y]}\n", ["bad.yaml:2", "tools"]),
        (b"\xff\xfe\x00", ["bad.yaml"]),
        ("channels: {telegram: {token: '${NO_SUCH_VARIABLE}'}}\n", ["NO_SUCH_VARIABLE"]),
        ("agents:\n  'Bad Name': {}\n", ["bad.yaml:2", "Bad Name"]),
    ],
)
def test_a_bad_configuration_names_file_line_and_key(reachable_tmp, config, words):
    said = start_refused(reachable_tmp, config)
    for word in words:
        assert word in said, said
    assert not (reachable_tmp / "home" / "sayso.db").exists()


def test_a_configuration_that_is_not_there_is_named(reachable_tmp):
    assert "bad.yaml" in start_refused(reachable_tmp, None)


def test_a_secret_in_a_bad_configuration_is_not_printed(reachable_tmp):
    said = start_refused(reachable_tmp, "channels: {telegram: {token: s3cr3t-t0ken, colour: red}}\n")
    assert "colour" in said
    assert "s3cr3t-t0ken" not in said


def test_a_taken_port_is_named_with_its_key(reachable_tmp):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (reachable_tmp / "bad.yaml").write_text(f"channels: {{web: {{port: {port}}}}}\n")
        done = subprocess.run(
            [SAYSO, "up", "--config", reachable_tmp / "bad.yaml"],
            env={**os.environ, "SAYSO_HOME": str(reachable_tmp / "home")},
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 78
    assert str(port) in done.stderr
    assert "channels.web.port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_daemon_on_one_state_directory_refuses_and_the_first_lives_on(daemon):
    said = start_refused(daemon.root, "{}", home=daemon.home)
    assert "another Sayso" in said
    daemon.sayso("exec", "--", "git", "--version")


def test_a_stale_socket_is_replaced(daemon):
    daemon.kill()
    assert (daemon.home / "sayso.sock").exists()
    daemon.start()
    daemon.sayso("exec", "--", "git", "--version")


def test_a_damaged_database_is_refused_and_left_as_it_is(daemon):
    daemon.sayso("exec", "--", "git", "--version")
    daemon.stop()
    database = daemon.home / "sayso.db"
    damaged = bytearray(database.read_bytes())
    damaged[100:2000] = os.urandom(1900)
    database.write_bytes(damaged)
    said = start_refused(daemon.root, "{}", home=daemon.home)
    assert "sayso.db" in said
    assert database.read_bytes() == bytes(damaged)


def test_a_state_directory_open_to_others_is_refused(reachable_tmp):
    home = reachable_tmp / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    assert "chmod 700" in start_refused(reachable_tmp, "{}")


def test_a_daemon_that_is_not_there_is_69(reachable_tmp):
    env = {**os.environ, "SAYSO_HOME": str(reachable_tmp / "nowhere")}
    done = subprocess.run([SAYSO, "exec", "--", "true"], env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 69
    assert "make run" in done.stderr or "sayso up" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["exec"], ["exec", "--"], ["exec", "-c", ""], ["exec", "--timeout", "soon", "--", "ls"],
        ["no-such-command"], ["approve"], ["exec", "-c", "ls", "--", "ls"], ["history", "--limit", "-1"],
    ],
)  # fmt: skip
def test_wrong_usage_is_64_in_one_line_with_help(daemon, args):
    done = daemon.sayso(*args, status=64)
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["approve", "deny", "show"])
@pytest.mark.parametrize("request_id", ["deadbeefdead", "x", "%", "'; drop table requests; --"])
def test_an_unknown_id_is_said_in_one_line(daemon, verb, request_id):
    done = daemon.sayso(verb, request_id, status=None)
    assert done.returncode not in (0, 1)
    assert len(done.stderr.strip().splitlines()) <= 2
    assert "Traceback" not in done.stderr


def test_a_nul_byte_is_refused(daemon):
    token = (daemon.home / "agents" / "main.token").read_text().strip()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(daemon.home / "sayso.sock"))
        file = connection.makefile("rwb")
        hello = {"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"token": token, "role": "agent"}}
        ask = {"jsonrpc": "2.0", "id": 2, "method": "exec.run", "params": {"command": "echo \0 hi"}}
        for message in (hello, ask):
            file.write(json.dumps(message).encode() + b"\n")
            file.flush()
            answer = json.loads(file.readline())
    assert "NUL" in answer["error"]["message"]


def test_a_line_of_a_mebibyte_is_refused_and_the_connection_lives_on(daemon):
    token = (daemon.home / "agents" / "main.token").read_text().strip()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(daemon.home / "sayso.sock"))
        file = connection.makefile("rwb")
        hello = {"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"token": token, "role": "agent"}}
        file.write(json.dumps(hello).encode() + b"\n")
        file.flush()
        file.readline()
        file.write(b'{"jsonrpc": "2.0", "id": 2, "method": "' + b"x" * 1_100_000 + b'"}\n')
        file.flush()
        assert "error" in json.loads(file.readline())
        again = {"jsonrpc": "2.0", "id": 3, "method": "session.describe", "params": {}}
        file.write(json.dumps(again).encode() + b"\n")
        file.flush()
        assert json.loads(file.readline())["result"]["session"] == "agent:main:main"


def test_a_revoked_token_is_refused(daemon):
    guest = {"SAYSO_TOKEN": daemon.json("agent", "add", "guest")["token"]}
    ask = ("exec", "--agent", "guest", "-c", "true > /etc/motd")
    assert "exec.redirection" in daemon.sayso(*ask, status=77, env=guest).stderr
    daemon.sayso("agent", "revoke", "guest")
    refused = daemon.sayso(*ask, status=77, env=guest).stderr
    assert "token" in refused
    assert "exec.redirection" not in refused


def test_an_agent_cannot_name_another_agents_session(daemon):
    done = daemon.sayso("exec", "--session", "agent:other:main", "--", "git", "--version", status=None)
    assert done.returncode not in (0, 69)
    assert "session" in done.stderr


def test_an_agent_cannot_speak_as_operator_with_its_token(daemon):
    token = (daemon.home / "agents" / "main.token").read_text().strip()
    done = daemon.sayso("pending", status=None, env={"SAYSO_OPERATOR_TOKEN": token})
    assert done.returncode == 77


def test_a_full_disk_refuses_the_request_and_writes_nothing_half(make_daemon):
    daemon = make_daemon()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    daemon.home.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", daemon.home], check=True)
    try:
        daemon.start()
        filler = daemon.home / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        done = daemon.sayso("exec", "--", "git", "--version", status=None)
        assert done.returncode in (74, 77), done.stderr
        assert "git version" not in done.stdout
        filler.unlink()
        daemon.sayso("exec", "--", "git", "--version")
        assert daemon.json("audit", "verify")["ok"] is True
        daemon.kill()
    finally:
        subprocess.run(["umount", "-l", daemon.home], check=True)
