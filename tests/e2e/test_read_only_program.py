"""Sayso where nobody can write its program: it starts, decides and runs, and leaves nothing there."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.private_mounts import DaemonInside, private_mounts
from tests.users import ROOT, User, needs_users, python_for_all

READ_ONLY = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"'
PLACES = {"no right to write": ":", "read-only mount": READ_ONLY}
CONFIG = """\
agents: {main: {}}
tools:
  exec:
    security: allowlist
    ask: on-miss
    allowlist: [{pattern: /usr/bin/true}, {pattern: /usr/bin/true, placement: host}]
    HOST_USER
  elevated: {enabled: true, allowFrom: ['web:operator']}
"""
OF_THE_COPY = "def version():\n    return 'of the copy'\n"
WRITES = "import sys; open(sys.argv[1] + '/trace', 'w')"

pytestmark = needs_users


def files(program: Path) -> list[str]:
    return sorted(str(path.relative_to(program)) for path in program.rglob("*"))


@pytest.fixture
def program() -> Iterator[Path]:
    """Copy the program to where only root can write, without anything compiled."""
    root = Path(tempfile.mkdtemp(prefix="sayso-read-only-", dir="/tmp"))
    root.chmod(0o755)
    for package in ("core", "adapters", "bot"):
        shutil.copytree(
            ROOT / package, root / "program" / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    (root / "program").chmod(0o755)
    (root / "program" / "bot" / "version.py").write_text(OF_THE_COPY)
    yield root / "program"
    shutil.rmtree(root)


@pytest.fixture
def started(program: Path) -> Iterator[Callable[[str, str], DaemonInside]]:
    with ExitStack() as stack:

        def start(script: str, account: str) -> DaemonInside:
            mounts = stack.enter_context(private_mounts(script, str(program)))
            user = User(pwd.getpwnam(account).pw_uid, pwd.getpwnam(account).pw_gid)
            config = CONFIG.replace("HOST_USER", "hostUser: nobody" if account == "root" else "")
            env = {"PYTHONPATH": f"{program}:{sysconfig.get_path('purelib')}"}
            made = DaemonInside(mounts, user, program.parent, config, env)
            stack.callback(made.stop)
            return made

        yield start


def refused_to_write(inside: DaemonInside, program: Path) -> bool:
    """Try to write there as the daemon could."""
    enter = (
        "nsenter",
        f"--mount=/proc/{inside.mounts.pid}/ns/mnt",
        "setpriv",
        "--reuid",
        str(inside.user.uid),
    )
    command = [*enter, "--clear-groups", "--", python_for_all(), "-c", WRITES, str(program)]
    return subprocess.run(command, capture_output=True, cwd="/").returncode != 0


@pytest.mark.parametrize(
    ("place", "account"),
    [("no right to write", "nobody"), ("read-only mount", "nobody"), ("read-only mount", "root")],
)
def test_it_starts_decides_and_runs(
    program: Path, started: Callable[[str, str], DaemonInside], place: str, account: str
) -> None:
    before = files(program)
    inside = started(PLACES[place], account)
    assert refused_to_write(inside, program)
    status = inside.json("status")
    assert (status["version"], status["host"]["held"]) == ("of the copy", True), status["host"]

    assert inside.json("exec", "--", "true")["placement"] == "sandbox"
    parsed = inside.json("exec", "-c", "for i in 1 2; do true $i; done", status=77)["decision"]
    assert parsed["rule"] == "exec.compound-command"
    assert inside.json("exec", "-c", "true && rm -r /usr", "--no-wait")["status"] == "pending"
    (question,) = inside.json("pending")
    inside.json("deny", question["id"])
    assert inside.json("wait", question["id"], status=77)["status"] == "denied"

    inside.json("elevated", "agent:main:main", "on", "--reason", "to try it")
    on_host = inside.json("exec", "--", "true")
    assert (on_host["placement"], on_host["exitCode"]) == ("host", 0)
    assert "programs" in on_host["held"]

    assert inside.json("reload")["ok"]
    page = urlsplit(next(word for word in inside.ready.split() if word.startswith("page="))[5:])
    with closing(HTTPConnection(page.netloc, timeout=10)) as connection:
        connection.request("GET", "/")
        assert b"Sayso" in connection.getresponse().read()
    checks = inside.checks()
    assert checks["sandbox: change the files that Sayso is run from"]["status"] == "ok"
    assert checks["host: change the files that Sayso is run from"]["status"] == "ok"
    assert files(program) == before


def test_the_control_where_it_can_be_written_it_is(
    program: Path, started: Callable[[str, str], DaemonInside]
) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(program, nobody.pw_uid, nobody.pw_gid)
    inside = started(":", "nobody")
    assert not refused_to_write(inside, program)
