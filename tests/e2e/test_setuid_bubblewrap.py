"""A bubblewrap that is setuid root: nothing is held nor boxed by it, and Sayso says so."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.private_mounts import DaemonInside, private_mounts
from tests.users import User, needs_users

BWRAP = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin") or "/usr/bin/bwrap"
WHY = f"{BWRAP} is setuid root"
CONFIG = """\
agents: {{main: {{}}}}
tools:
  exec:
    host: {host}
    security: allowlist
    ask: on-miss
    allowlist: [{{pattern: /usr/bin/touch, placement: host}}, {{pattern: /usr/bin/touch}}]
"""

pytestmark = needs_users


@pytest.fixture
def with_bubblewrap() -> Iterator[Callable[..., DaemonInside]]:
    """Start a daemon of an ordinary account, where bubblewrap is a copy with a mode of its own."""
    root = Path(tempfile.mkdtemp(prefix="sayso-setuid-", dir="/tmp"))
    root.chmod(0o755)
    nobody = pwd.getpwnam("nobody")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)

        def make(mode: int, host: str = "gateway", script: str = 'mount --bind "$1" "$2"') -> DaemonInside:
            copy = root / "bwrap"
            shutil.copy(BWRAP, copy)
            os.chown(copy, 0, 0)
            copy.chmod(mode)
            mounts = stack.enter_context(private_mounts(script, str(copy), BWRAP))
            user, env = User(nobody.pw_uid, nobody.pw_gid), {"PATH": f"{root}:/usr/bin:/bin"}
            made = DaemonInside(mounts, user, root, CONFIG.format(host=host), env)
            stack.callback(made.stop)
            return made

        yield make


def test_nothing_on_the_host_is_admitted_without_a_person(
    with_bubblewrap: Callable[..., DaemonInside],
) -> None:
    world = with_bubblewrap(0o4755)
    host = world.json("status")["host"]
    assert not host["held"]
    assert WHY in host["why"]
    trace = world.root / "outside" / "trace"
    asked = world.json("exec", "--no-wait", "--", "touch", str(trace))
    assert asked["status"] == "pending"
    card = world.json("show", asked["id"])
    assert WHY in json.dumps(card)
    assert not trace.exists()
    world.json("approve", asked["id"])
    assert world.json("wait", asked["id"])["held"] == []
    assert trace.exists()
    checks = world.checks()
    assert checks["host runs"]["status"] == "warn"
    assert checks["host runs"]["detail"].startswith("not held: ")
    assert WHY in checks["host runs"]["detail"]
    assert (checks["bubblewrap"]["status"], WHY in checks["bubblewrap"]["detail"]) == ("fail", True)


def test_without_that_bit_the_same_runs_unasked_and_held(
    with_bubblewrap: Callable[..., DaemonInside],
) -> None:
    world = with_bubblewrap(0o755)
    assert world.json("status")["host"]["held"]
    trace = world.root / "outside" / "trace"
    ran = world.json("exec", "--", "touch", str(trace))
    assert (ran["status"], "state" in ran["held"], trace.exists()) == ("finished", True, True)
    checks = world.checks()
    assert (checks["host runs"]["status"], checks["bubblewrap"]["status"]) == ("ok", "ok")


def test_one_that_is_only_found_by_the_search_path_of_the_daemon_is_none(
    with_bubblewrap: Callable[..., DaemonInside],
) -> None:
    world = with_bubblewrap(0o4755, script=":")
    assert world.json("status")["host"]["held"]
    check = world.checks()["bubblewrap"]
    assert (check["status"], check["detail"].split()[0]) == ("ok", BWRAP)


@pytest.mark.parametrize(("mode", "expected"), [(0o4755, ("failed", None)), (0o755, ("finished", 0))])
def test_nothing_runs_in_a_sandbox_that_it_would_make(
    with_bubblewrap: Callable[..., DaemonInside], mode: int, expected: tuple[str, int | None]
) -> None:
    world = with_bubblewrap(mode, host="sandbox")
    ran = world.json("exec", "--", "touch", "/tmp/trace", status=None)
    assert (ran["status"], ran["exitCode"]) == expected
    assert (WHY in ran["reason"]) is (mode == 0o4755)
