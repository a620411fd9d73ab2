"""A start that is refused leaves the machine as it was."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import SAYSO


def refused(root: Path, config: str, home: Path) -> str:
    (root / "c.yaml").write_text(config)
    done = subprocess.run(
        [SAYSO, "up", "--config", str(root / "c.yaml"), "--port", "0"],
        env={**os.environ, "SAYSO_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 78, done.stderr
    return done.stderr


FOUND_LATE = pytest.mark.parametrize(
    "config",
    [
        "daemon: {socket: {path: /proc/agent.sock}}\n",
        "daemon: {socket: {group: no-such-group}}\n",
        "operator: {local: passphrase}\n",
        "tools: {exec: {hostSockets: [/]}}\n",
        pytest.param(
            "tools: {exec: {hostUser: no-such-account}}\n",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="of root alone"),
        ),
    ],
)


@FOUND_LATE
def test_a_first_start_that_is_refused_leaves_nothing(reachable_tmp, config):
    refused(reachable_tmp, config, reachable_tmp / "above" / "home")
    assert not (reachable_tmp / "above").exists()


@FOUND_LATE
def test_what_was_there_before_stays(reachable_tmp, config):
    home = reachable_tmp / "home"
    (home / "agents").mkdir(mode=0o700, parents=True)
    home.chmod(0o700)
    (home / "agents" / "other.token").write_text("kept")
    (home / "notes").write_text("kept")
    refused(reachable_tmp, config, home)
    left = sorted(str(path.relative_to(home)) for path in home.rglob("*"))
    assert left == ["agents", "agents/other.token", "notes"]
    assert (home / "agents" / "other.token").read_text() == "kept"


def test_a_daemon_that_ran_before_loses_nothing(daemon):
    daemon.stop()
    before = sorted(path.name for path in daemon.home.rglob("*"))
    refused(daemon.root, "daemon: {socket: {path: /proc/agent.sock}}\n", daemon.home)
    assert set(before) <= {path.name for path in daemon.home.rglob("*")}
    daemon.start()
    daemon.sayso("exec", "--", "git", "--version")


def test_a_directory_open_to_others_is_refused_before_anything_is_made_in_it(reachable_tmp):
    home = reachable_tmp / "home"
    home.mkdir()
    home.chmod(0o755)
    assert f"chmod 700 {home}" in refused(reachable_tmp, "{}", home)
    assert list(home.iterdir()) == []
    assert (home.stat().st_mode & 0o777) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="they belong to root")
@pytest.mark.parametrize("home", ["/etc", "/tmp", "/usr/share"])
def test_nobody_is_told_to_close_a_directory_of_the_system(reachable_tmp, home):
    said = refused(reachable_tmp, "{}", Path(home))
    assert "choose one that is Sayso's alone" in said
    assert "chmod" not in said
