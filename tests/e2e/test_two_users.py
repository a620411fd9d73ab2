"""The daemon as one user, agents as another: what the agents' own socket is for."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.users import User, needs_users

GROUP = "games"
CONFIG = """\
sandboxing: {{workspaceRoot: {root}/workspaces}}
daemon: {{socket: {{path: {root}/run/agent.sock, group: games}}}}
channels: {{web: {{port: 0}}}}
"""
EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"

pytestmark = needs_users


class Deployment:
    """A daemon of `nobody`, and agents of another user in its group."""

    def __init__(self, root: Path) -> None:
        entry, group = pwd.getpwnam("nobody"), grp.getgrnam(GROUP).gr_gid
        self.root = root
        self.home = root / "home"
        self.socket = root / "run" / "agent.sock"
        self.operator = User(entry.pw_uid, entry.pw_gid, (group,))
        self.agent = User(61234, group)  # the kernel needs no account for a user
        self.stranger = User(pwd.getpwnam("bin").pw_uid, pwd.getpwnam("bin").pw_gid)
        self.log = root / "daemon.log"
        self.process: subprocess.Popen[str] | None = None
        self.ready = ""

    def start(self) -> Deployment:
        for path, mode in (
            (self.home, 0o700),
            (self.socket.parent, 0o750),
            (self.root / "workspaces", 0o711),
        ):
            path.mkdir(mode=mode)
            os.chown(path, self.operator.uid, self.operator.gid)
        self.config.write_text(CONFIG.format(root=self.root))
        with self.log.open("w") as log:
            self.process = self.operator.popen(*self.up, env=self.own, stderr=log)
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        assert self.ready.startswith("ready "), self.log.read_text()
        return self

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.communicate(timeout=25)
            self.process = None

    @property
    def config(self) -> Path:
        return self.root / "overlay.yaml"

    @property
    def up(self) -> tuple[str, ...]:
        return "up", "--config", str(EXAMPLE), "--config", str(self.config)

    @property
    def own(self) -> dict[str, str]:
        return {"SAYSO_HOME": str(self.home)}

    @property
    def token(self) -> str:
        return (self.home / "agents" / "main.token").read_text().strip()

    @property
    def operator_token(self) -> str:
        return (self.home / "operator.token").read_text().strip()

    @property
    def agents(self) -> dict[str, str]:
        return {"SAYSO_SOCKET": str(self.socket), "SAYSO_TOKEN": self.token}

    def decide(self, *words: str) -> Any:
        status, out, err = self.operator.sayso(*words, "--json", env=self.own)
        assert status == 0, err
        return json.loads(out.strip().splitlines()[-1])


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    root = Path(tempfile.mkdtemp(prefix="sayso-users-", dir="/tmp"))
    root.chmod(0o755)
    made = Deployment(root)
    try:
        yield made.start()
    finally:
        made.stop()
        shutil.rmtree(root, ignore_errors=True)


def test_an_agent_of_another_user_asks_and_the_operator_decides(
    deployment: Deployment, wait_for: Callable[..., Any], finish: Callable[..., tuple[int, str, str]]
) -> None:
    sockets = f"ready socket={deployment.home}/sayso.sock agentSocket={deployment.socket} page=http://"
    assert deployment.ready.startswith(sockets)
    status, out, err = deployment.agent.sayso("exec", "--", "git", "--version", env=deployment.agents)
    assert (status, out.startswith("git version")) == (0, True), err

    asking = deployment.agent.popen("exec", "--", "uname", env=deployment.agents)
    pending = wait_for(lambda: deployment.decide("pending") or None)
    deployment.decide("approve", pending[0]["id"])
    assert finish(asking)[:2] == (0, "Linux\n")
    assert deployment.decide("show", pending[0]["id"])["peer"]["uid"] == deployment.agent.uid


def test_the_agent_decides_nothing_whatever_it_holds(deployment: Deployment) -> None:
    leaked = {"SAYSO_OPERATOR_TOKEN": deployment.operator_token}
    home = f"{deployment.home}/sayso.sock"
    status, _, err = deployment.agent.sayso("lock", "--socket", home, env=leaked)
    assert (status, "Permission denied" in err) == (69, True), err
    status, _, err = deployment.agent.sayso("lock", "--socket", str(deployment.socket), env=leaked)
    assert (status, "the operator's token was not sent" in err) == (69, True), err
    own = {**leaked, **deployment.own}
    status, _, err = deployment.operator.sayso("lock", "--socket", str(deployment.socket), env=own)
    assert (status, "takes agents alone" in err) == (77, True), err
    assert deployment.decide("status")["locked"] is False
    status, _, err = deployment.operator.sayso("lock", env={**leaked, **deployment.own})
    assert status == 0, f"the control: on the operator's socket it counts; {err}"


def test_who_is_not_in_the_group_cannot_connect(deployment: Deployment) -> None:
    status, out, err = deployment.stranger.sayso("exec", "--", "git", "--version", env=deployment.agents)
    assert (status, out) == (69, "")
    assert "Permission denied" in err
    assert "daemon.socket.group" in err
    assert deployment.agent.sayso("exec", "--", "git", "--version", env=deployment.agents)[0] == 0


def test_status_and_doctor_tell_both_sockets(deployment: Deployment) -> None:
    status = deployment.decide("status")
    assert (status["socket"], status["agentSocket"]) == (
        f"{deployment.home}/sayso.sock",
        str(deployment.socket),
    )
    _, out, _ = deployment.operator.sayso("status", env=deployment.own)
    assert str(deployment.socket) in out
    words = ("doctor", "--json", "--config", str(deployment.config))
    _, out, err = deployment.operator.sayso(*words, env=deployment.own)
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["daemon"]["status"] == "ok", err
    assert rows["agents' socket"]["status"] == "ok"
    assert rows["agents' socket"]["detail"] == f"{deployment.socket}, for its user and group {GROUP}"


def test_the_doctor_looks_at_what_the_daemon_runs_with_unless_told_otherwise(deployment: Deployment) -> None:
    files = deployment.decide("status")["configuration"]
    assert files[-1] == str(deployment.config)
    told = ("doctor", "--json", *(word for file in files for word in ("--config", file)))
    _, out, _ = deployment.operator.sayso(*told, env=deployment.own)
    _, same, err = deployment.operator.sayso("doctor", "--json", env=deployment.own)
    assert f"what the daemon runs with, {' '.join(files)}" in err
    assert [row["name"] for row in json.loads(same)] == [row["name"] for row in json.loads(out)]
    deployment.stop()
    _, _, err = deployment.operator.sayso("doctor", "--json", env=deployment.own)
    assert "no daemon that tells its own: this looks at the defaults" in err


def test_a_daemon_that_is_not_in_the_group_cannot_let_it_in(deployment: Deployment) -> None:
    deployment.stop()
    outside = replace(deployment.operator, groups=())
    status, out, err = outside.sayso(*deployment.up, env=deployment.own)
    assert (status, out) == (78, "")
    assert f"daemon.socket.group: the daemon's user nobody is not in {GROUP}" in err
    assert "usermod --append --groups" in err


def test_a_place_that_the_daemon_s_user_cannot_get_to(deployment: Deployment) -> None:
    deployment.stop()
    closed = deployment.root / "closed"
    closed.mkdir(mode=0o700)
    for below in ("agent.sock", "run/agent.sock", "run/deeper/agent.sock"):
        deployment.config.write_text(f"daemon: {{socket: {{path: {closed}/{below}}}}}\n")
        status, out, err = deployment.operator.sayso(*deployment.up, env=deployment.own)
        assert (status, out) == (78, "")
        assert err.startswith(f"sayso: cannot start: daemon.socket.path: {closed}") or "Permission" in err
        assert "Traceback" not in err
