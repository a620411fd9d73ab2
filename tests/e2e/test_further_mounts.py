"""Devices, terminals, processes and runtime files that are mounted once more, as in the tree of a chroot."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.private_mounts import DaemonInside, private_mounts
from tests.users import User, needs_users

CONFIG = """\
agents: {main: {}}
tools: {exec: {host: gateway, security: full, ask: 'off'}}
"""
# As `schroot` and its like do it, and pieces of the same beside it.
MOUNTS = """
mount --bind /proc "$1/proc"
mount -t proc proc "$1/fresh-proc"
mount --bind /dev "$1/dev"
mount --bind /dev/pts "$1/pts"
mount --bind /run "$1/run"
mount -t tmpfs tmpfs "$1/pieces"
mkdir "$1/pieces/one" "$1/pieces/lock" "$1/pieces/net"
touch "$1/pieces/tty" "$1/pieces/zero"
mount --bind "/proc/$2" "$1/pieces/one"
mount --bind "$3" "$1/pieces/tty"
mount --bind /dev/zero "$1/pieces/zero"
mount --bind /run/lock "$1/pieces/lock"
"""
PLACES = ("proc", "fresh-proc", "dev", "pts", "run", "pieces")
REACHED = {
    "a process by another mount": "ls -d {root}/proc/{pid}",
    "a process by a mount of its own": "ls -d {root}/fresh-proc/{pid}",
    "a process that is mounted alone": "cat {root}/pieces/one/status",
}
ALWAYS = {
    "a terminal by another mount": "stty -F {root}/pts/{number}",
    "a terminal that is mounted alone": "stty -F {root}/pieces/tty",
    "devices by another mount": "stat {root}/dev/tty",
    "runtime files": "cat {root}/run/{probe}",
}
KEPT = {
    "a device that each run has": "head -c 1 {root}/pieces/zero",
    "what is shown of runtime files": "ls -d {root}/pieces/lock/{probe}",
}


class World:
    """A daemon of `nobody` in a mount namespace with such mounts, and a terminal that is its own."""

    def __init__(self, daemon: DaemonInside, names: dict[str, str]) -> None:
        self.daemon = daemon
        self.names = names

    def reached(self, script: str, *words: str) -> bool:
        """Run a script on the host, with a person's yes where one is asked, and tell whether it succeeded."""
        line = ("sh", "-c", script.format(**self.names))
        asked = self.daemon.json("exec", "--no-wait", *words, "--", *line, status=None)
        if asked["status"] == "pending":
            self.daemon.json("approve", asked["id"])
        outcome = self.daemon.json("wait", asked["id"], status=None)
        assert outcome["status"] == "finished", outcome
        assert bool(outcome["held"]) is ("--new-privileges" not in words), outcome
        return bool(outcome["exitCode"] == 0)


@contextmanager
def terminal(uid: int) -> Iterator[str]:
    ours, theirs = os.openpty()
    try:
        name = os.ttyname(theirs)
        os.chown(name, uid, -1)
        yield name
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def probe() -> Iterator[str]:
    """Put a file into /run, and one where runs are shown a part of it."""
    name = f"sayso-probe-{os.getpid()}"
    made = [Path("/run", name), Path("/run/lock", name)]
    Path("/run/lock").mkdir(exist_ok=True)
    for path in made:
        path.write_text("x")
    try:
        yield name
    finally:
        for path in made:
            path.unlink()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    nobody = pwd.getpwnam("nobody")
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="sayso-mounts-", dir="/tmp"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        root.chmod(0o755)
        for place in PLACES:
            (root / place).mkdir()
        tty = stack.enter_context(terminal(nobody.pw_uid))
        names = {"root": str(root), "pid": str(os.getpid()), "number": Path(tty).name}
        names["probe"] = stack.enter_context(probe())
        mounts = stack.enter_context(private_mounts(MOUNTS.strip(), str(root), names["pid"], tty))
        daemon = DaemonInside(mounts, User(nobody.pw_uid, nobody.pw_gid), root, CONFIG)
        stack.callback(daemon.stop)
        yield World(daemon, names)


pytestmark = [pytest.mark.daemon, needs_users]


@pytest.mark.parametrize("what", [*REACHED, *ALWAYS])
def test_what_a_held_run_has_not_is_not_shown_by_another_mount(world: World, what: str) -> None:
    script = {**REACHED, **ALWAYS}[what]
    assert not world.reached(script)
    assert world.reached(script, "--new-privileges"), "the control: nothing holds it"


@pytest.mark.parametrize("what", [*REACHED, *ALWAYS])
def test_of_these_what_a_person_allowed_has_its_user_s_processes_alone(world: World, what: str) -> None:
    assert world.reached({**REACHED, **ALWAYS}[what], "--ask", "always") is (what in REACHED)


@pytest.mark.parametrize("what", KEPT)
def test_what_each_run_has_anyway_is_left_as_it_is(world: World, what: str) -> None:
    assert world.reached(KEPT[what])
