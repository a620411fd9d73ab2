"""The doctor on this machine, with its attempts in the real sandbox, and outside of any."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners.accounts import running_account
from bot import breakout
from bot.check import Check, Status
from bot.config import LoadedConfig
from bot.doctor import examine
from bot.doctor_sandbox import _python
from core.config import Config
from tests.integration.runners.kit import Place


@pytest.fixture
def home(place: Place) -> Iterator[Path]:
    yield place.state
    shutil.rmtree(place.root / "workspaces", ignore_errors=True)


def loaded(place: Place, **sandboxing: object) -> LoadedConfig:
    root = {"workspaceRoot": str(place.root / "workspaces"), **sandboxing}
    return LoadedConfig(Config.model_validate({"sandboxing": root}))


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def open_to_all(directory: Path) -> None:
    directory.chmod(0o755)


def named(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if name in check.name)


async def test_a_sound_installation_has_no_failure_and_says_what_was_refused(
    place: Place, home: Path
) -> None:
    config = home / "config.yaml"
    config.write_text("log: {}\n")
    config.chmod(0o600)
    checks = await examine(replace(loaded(place), protected_paths=(str(config),)), home)
    assert [check for check in checks if check.status is Status.FAIL] == []
    assert "refused" in named(checks, "write /etc").detail
    assert named(checks, "control").status is Status.OK
    assert all(check.mend for check in checks if check.status is not Status.OK)
    assert names_in(home) == ["config.yaml"], "the doctor clears away after itself"


async def test_network_that_is_on_is_found_by_trying(place: Place, home: Path) -> None:
    checks = await examine(loaded(place, network=True), home)
    found = named(checks, "listener on 127.0.0.1")
    assert found.status is Status.WARN
    assert "connected" in found.detail


async def test_an_open_state_directory_and_configuration_are_failures(place: Place, home: Path) -> None:
    config = home / "config.yaml"
    config.write_text("")
    config.chmod(0o666)
    open_to_all(home)
    checks = await examine(replace(loaded(place), protected_paths=(str(config),)), home)
    assert named(checks, "state directory").status is Status.FAIL
    assert named(checks, "configuration").status is Status.FAIL


async def test_a_directory_above_the_state_and_the_configuration_that_is_open_is_a_failure(
    place: Place, home: Path
) -> None:
    config = home / "config.yaml"
    config.write_text("")
    home.parent.chmod(0o777)
    checks = await examine(replace(loaded(place), protected_paths=(str(config),)), home)
    for name in ("state directory", "configuration"):
        found = named(checks, name)
        assert found.status is Status.FAIL
        assert f"other users can change {home.parent}" in found.detail
        assert found.mend


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another account to become")
@pytest.mark.parametrize("user", ["root", "no-such-account"])
async def test_an_account_that_cannot_be_used_is_a_failure_and_nothing_runs(
    place: Place, home: Path, user: str
) -> None:
    checks = await examine(loaded(place, user=user), home)
    assert named(checks, "root").status is Status.FAIL
    assert checks[-1].name == "sandbox"
    assert checks[-1].status is Status.FAIL


async def test_a_sandbox_that_is_off_is_a_warning(place: Place, home: Path) -> None:
    assert named(await examine(loaded(place, mode="off"), home), "sandbox use").status is Status.WARN


async def test_a_live_daemon_is_seen_and_a_dead_one_s_socket_too(place: Place, home: Path) -> None:
    path = home / "sayso.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        assert named(await examine(loaded(place), home), "daemon").status is Status.OK
        path.chmod(0o666)
        assert named(await examine(loaded(place), home), "daemon").status is Status.FAIL
    assert named(await examine(loaded(place), home), "daemon").status is Status.WARN


def test_with_the_right_to_mount_nothing_is_mounted() -> None:
    """In a mount namespace that is thrown away, so that a mistake here harms nobody."""
    script = (
        "import pathlib, runpy, sys\n"
        "mounts = pathlib.Path('/proc/self/mounts')\n"
        "before = mounts.read_text()\n"
        "print(runpy.run_path(sys.argv[1])['mount']({}), mounts.read_text() == before)\n"
    )
    own_mounts = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    said = subprocess.run(
        [*own_mounts, sys.executable, "-I", "-S", "-c", script, breakout.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "has the right to mount True\n"


def test_outside_a_sandbox_the_same_attempts_succeed(place: Place) -> None:
    """Otherwise a line of the doctor could be green because its attempt cannot work at all.

    Never as root: what the sandbox is there to stop would then be done to this machine.
    """
    account = running_account("nobody")
    identity = {"user": account.uid, "group": account.gid, "extra_groups": ()} if account.drop else {}
    (place.root / "mine").mkdir()
    os.chown(place.root / "mine", account.uid, account.gid)
    (place.root / "canary").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(place.root / "s"))
        unix.listen()
        (place.root / "s").chmod(0o666)
        place.root.chmod(0o755)
        (place.root / "canary").chmod(0o644)
        places = {
            "workspace": str(place.root / "mine"),
            "outside": [str(place.root / "mine")],
            "canaries": [str(place.root / "canary")],
            "configuration": [str(place.root / "canary")],
            "program": [str(place.root / "mine")],
            "homes": [str(place.root)],
            "expected": [],
            "port": listener.getsockname()[1],
            "abstract": "nothing-listens-here",
            "sockets": [str(place.root / "s")],
            "pid_namespace": str(Path("/proc/self/ns/pid").readlink()),
            "pid": os.getpid(),
            "marker": "nothing carries this",
        }
        said = subprocess.run(
            [_python(account, os.path.isabs), "-I", "-S", "-c", Path(breakout.__file__).read_text()],
            cwd="/",
            start_new_session=True,
            input=json.dumps(places),
            capture_output=True,
            text=True,
            check=True,
            **identity,
        )
    outcomes = json.loads(said.stdout)
    reached = ("workspace", "outside", "state", "configuration", "program", "homes", "loopback")
    for key in (*reached, "daemon_socket"):
        assert outcomes[key][0] == "reached", key
    for key in ("see_processes", "namespace"):
        assert outcomes[key][0] == "reached", key
    for key in ("device", "mount", "etc", "core_pattern"):
        assert outcomes[key][0] == "refused", key
    assert outcomes["abstract_socket"][0] == "refused"
    assert not Path(place.root, "mine", "sayso-breakout").exists()
