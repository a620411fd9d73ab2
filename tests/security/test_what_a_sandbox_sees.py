"""What lies on the machine beside the workspace is not there, whoever the daemon runs as."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

NO_ACCOUNT = 43210  # no account has this uid
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay files out there, as another user")
RUNS = Path(__file__).parents[1] / "integration" / "runners" / "as_user.py"
REPOSITORY = Path(__file__).parents[2]
CONNECT = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('connected')"

pytestmark = ONLY_ROOT

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def directory() -> Iterator[Callable[[str], Path]]:
    """Make a directory of a user without an account at a place of the system."""
    with ExitStack() as stack:

        def make(parent: str) -> Path:
            path = Path(tempfile.mkdtemp(prefix="sayso-test-", dir=parent))
            stack.callback(shutil.rmtree, path)
            path.chmod(0o755)
            os.chown(path, NO_ACCOUNT, NO_ACCOUNT)
            return path

        yield make


@pytest.fixture
def ask(directory: Callable[[str], Path]) -> Ask:
    """Run a shell line in a sandbox of a daemon that is this user, with its state outside of homes."""
    root = directory("/srv")

    def run(
        script: str, *, agent: str = "main", argv: list[str] | None = None, **config: Any
    ) -> dict[str, Any]:
        given = {
            "uid": NO_ACCOUNT,
            "home": str(root / "state"),
            "agent": agent,
            "argv": argv or ["/bin/sh", "-c", script],
            "config": config,
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.integration.runners.as_user", json.dumps(given)],
            cwd=REPOSITORY,
            env={"HOME": str(root), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def private_file(path: Path) -> Path:
    path.write_text("a secret of the daemon's user")
    path.chmod(0o600)
    os.chown(path, NO_ACCOUNT, NO_ACCOUNT)
    return path


def test_a_daemon_whose_uid_has_no_account_runs_commands(ask: Ask) -> None:
    result = ask("id -u; echo $USER; echo kept > file && cat file")
    assert result["stdout"].splitlines() == [str(NO_ACCOUNT), str(NO_ACCOUNT), "kept"]


@pytest.mark.parametrize("place", ["/srv", "/opt", "/var/lib", "/mnt", "/etc"])
def test_a_file_that_only_the_daemon_s_user_may_read_is_not_there(
    ask: Ask, directory: Callable[[str], Path], place: str
) -> None:
    secret = private_file(directory(place) / "secret")
    assert ask(f"cat {secret}")["stdout"] == ""
    shown = ask(f"cat {secret}", sandboxing={"readable": [str(secret.parent)]})
    assert shown["stdout"] == "a secret of the daemon's user", "the control: configured as readable it is"


@pytest.mark.parametrize("place", ["/etc", "/opt"])
def test_a_private_file_right_in_a_directory_of_the_system_is_not_there(ask: Ask, place: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix="sayso-test-", dir=place)
    os.close(descriptor)
    try:
        secret = private_file(Path(name))
        assert ask(f"cat {secret}")["stdout"] == ""
        assert "a secret" in ask(f"cat {secret}", sandboxing={"readable": [name]})["stdout"]
    finally:
        Path(name).unlink()


def test_what_ordinary_programs_need_is_there(ask: Ask) -> None:
    tools = Path(tempfile.mkdtemp(prefix="sayso-test-tools-", dir="/opt"))
    try:
        tools.chmod(0o755)
        (tools / "tool").write_text("#!/bin/sh\necho works\n")
        (tools / "tool").chmod(0o755)
        script = f"{tools}/tool; cat /etc/hostname /etc/passwd > /dev/null && dpkg -s base-files | head -1"
        lines = ask(f"{script}; ls /var/run/ /sys/class > /dev/null && echo there")["stdout"].splitlines()
    finally:
        shutil.rmtree(tools)
    assert (lines[0], lines[-1]) == ("works", "there")


def test_a_program_that_is_hidden_is_refused_with_the_key_that_shows_it(
    ask: Ask, directory: Callable[[str], Path]
) -> None:
    tool = directory("/opt") / "tool"
    shutil.copy("/bin/true", tool)
    told = ask("", argv=[str(tool)])
    assert f"{tool} is not visible in the sandbox; add {tool.parent} to sandboxing.readable" in told["error"]
    assert ask("", argv=[str(tool)], sandboxing={"readable": [str(tool.parent)]})["exit_code"] == 0


@pytest.mark.parametrize("place", ["/srv", "/var/lib", "/opt", "/mnt"])
def test_a_unix_socket_of_a_service_cannot_be_reached(
    ask: Ask, directory: Callable[[str], Path], place: str
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        path = directory(place) / "s"
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        argv = ["/usr/bin/python3", "-c", CONNECT, str(path)]
        assert ask("", argv=argv)["stdout"] == ""
        beside = ask("", argv=argv, sandboxing={"readable": [str(path.parent)]})
        assert beside["stdout"] == "", "others get there too, and could hand in anything"
        shown = ask("", argv=argv, sandboxing={"readable": [str(path)]})
        assert shown["stdout"] == "connected\n", "the control: a read-only mount does not stop it"


def test_a_unix_socket_right_below_a_directory_of_the_system_cannot_be_reached(ask: Ask) -> None:
    path = Path(f"/opt/sayso-test-{os.getpid()}.sock")
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            path.chmod(0o777)
            listener.listen()
            argv = ["/usr/bin/python3", "-c", CONNECT, str(path)]
            assert ask("", argv=argv)["stdout"] == ""
            assert ask("", argv=argv, sandboxing={"readable": [str(path)]})["stdout"] == "connected\n"
    finally:
        path.unlink()


@pytest.mark.parametrize("readable", [[], ["/"], ["/srv"]])
def test_a_sandbox_sees_no_other_agent_s_workspace(ask: Ask, readable: list[str]) -> None:
    sandboxing = {"readable": readable}
    assert ask("echo theirs > file; pwd", agent="one", sandboxing=sandboxing)["exit_code"] == 0
    theirs = ask("pwd", agent="one")["stdout"].strip()
    assert ask(f"cat {theirs}/file", agent="other", sandboxing=sandboxing)["stdout"] == ""
    assert ask("cat file", agent="one", sandboxing=sandboxing)["stdout"] == "theirs\n"
    meant = {"readable": [*readable, theirs]}
    assert ask(f"cat {theirs}/file", agent="other", sandboxing=meant)["stdout"] == "theirs\n"


def test_a_sandbox_sees_no_workspace_that_the_configuration_gives_another(
    ask: Ask, directory: Callable[[str], Path]
) -> None:
    workspace = directory("/srv")
    (workspace / "file").write_text("theirs")
    agents = {"by_id": {"one": {"workspace": str(workspace)}}}
    wide = {"readable": ["/srv"]}
    assert ask(f"cat {workspace}/file", agent="other", agents=agents, sandboxing=wide)["stdout"] == ""
    assert ask(f"cat {workspace}/file", agent="other", sandboxing=wide)["stdout"] == "theirs"
