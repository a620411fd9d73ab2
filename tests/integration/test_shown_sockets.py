"""A socket that `sandboxing.readable` names and runs cannot use: `sayso config check` and doctor say why."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.runners.accounts import running_account
from tests.integration.conftest import SAYSO

Say = Callable[..., Any]


@pytest.fixture
def root() -> Iterator[Path]:
    """A place that the account of sandboxed runs can get to."""
    made = Path(tempfile.mkdtemp(prefix="sayso-shown-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def workspace(root: Path) -> Path:
    account = running_account("nobody")
    made = root / "work"
    made.mkdir()
    os.chown(made, account.uid, account.gid)
    return made


@pytest.fixture
def named(root: Path) -> Iterator[Path]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "service.sock"))
        yield root / "service.sock"


@pytest.fixture
def say(root: Path) -> Say:
    config = root / "config.yaml"
    (root / "home").mkdir(mode=0o700)

    def say(text: str, *words: str) -> Any:
        config.write_text(text)
        done = subprocess.run(
            [SAYSO, *words, "--json", "--config", config],
            env={**os.environ, "SAYSO_HOME": str(root / "home")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return json.loads(done.stdout)

    return say


def settings(readable: str, workspace: Path | None = None, **sandboxing: str) -> str:
    more = "".join(f", {key}: {value}" for key, value in sandboxing.items())
    agents = f"agents: {{main: {{workspace: {workspace}}}}}\n" if workspace else ""
    return f"sandboxing: {{readable: [{readable}], workspaceAccess: rw{more}}}\n{agents}"


def told(answer: Any) -> list[str]:
    return [warning for warning in answer["warnings"] if "is a socket that" in warning]


def test_a_workspace_that_others_get_to_is_named_with_its_agent(
    say: Say, named: Path, workspace: Path, root: Path
) -> None:
    workspace.chmod(0o755)
    text = settings(f"{root}/config.yaml, {named}", workspace)
    (warning,) = told(say(text, "config", "check"))
    assert warning.startswith(f"sandboxing.readable[1] ({root}/config.yaml:1): {named} is a socket that ")
    assert f"sandboxed runs of main cannot use: others can get to {workspace}, which is shared" in warning
    assert "chmod o-rwx" in warning
    (check,) = [row for row in say(text, "doctor") if row["name"] == "sandbox sockets"]
    assert check["status"] == "warn"
    assert str(named) in check["detail"]


@pytest.mark.parametrize("case", ["closed", "none", "no socket", "a workspace of Sayso's own"])
def test_nothing_is_said_where_runs_can_use_it_or_there_is_none(
    say: Say, named: Path, workspace: Path, case: str
) -> None:
    workspace.chmod(0o755)
    if case == "closed":
        workspace.parent.chmod(0o700)
    readable = {"none": "", "no socket": str(workspace.parent / "config.yaml")}.get(case, str(named))
    text = settings(readable, None if case.endswith("own") else workspace)
    assert told(say(text, "config", "check")) == []


def test_what_all_runs_share_with_others_is_told_once(say: Say, named: Path, workspace: Path) -> None:
    workspace.chmod(0o755)
    (warning,) = told(say(settings(f"{named}, {named.parent}", workspace), "config", "check"))
    assert "a socket that sandboxed runs cannot use" in warning
    assert str(named.parent) in warning
