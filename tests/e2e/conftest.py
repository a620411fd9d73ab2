"""A daemon as a process: started, asked, killed and started again, as its users would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SAYSO = Path(sys.executable).parent / "sayso"
EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"


def wait_for(look: Callable[[], Any], seconds: float = 15.0) -> Any:
    """Look again and again until there is something; fails the test where there is not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := look()) is not None and found is not False:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came within {seconds} s from {look}")


class Daemon:
    """One state directory and the daemon on it."""

    def __init__(self, root: Path, config: str = "") -> None:
        self.root = root
        self.home = root / "home"
        self.config = root / "overlay.yaml"
        self.config.write_text(f"sandboxing: {{workspaceRoot: {root}/workspaces}}\n{config}")
        # Root is held by nothing, so that nothing on the host would be admitted.
        self.account = root / "account.yaml"
        self.account.write_text("tools: {exec: {hostUser: nobody}}\n" if os.geteuid() == 0 else "{}\n")
        self.process: subprocess.Popen[str] | None = None
        self.ready = ""
        self.log = root / "daemon.log"

    @property
    def program(self) -> Path:
        return SAYSO

    @property
    def example(self) -> Path:
        return EXAMPLE

    @property
    def configs(self) -> list[str]:
        """The files of the configuration, as flags."""
        return [word for path in (EXAMPLE, self.account, self.config) for word in ("--config", str(path))]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SAYSO_HOME": str(self.home), "NO_COLOR": "1"}

    def start(self, *flags: str) -> Daemon:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [SAYSO, "up", *self.configs, "--port", "0", *flags],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.root,
            )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        assert self.ready.startswith("ready "), f"{self.ready!r}; log: {self.log.read_text()}"
        return self

    @property
    def page(self) -> str:
        return next(word.removeprefix("page=") for word in self.ready.split() if word.startswith("page="))

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)
        self._close()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(25)
        self._close()
        return status

    def _close(self) -> None:
        assert self.process is not None
        if self.process.stdout:
            self.process.stdout.close()
        self.process = None

    def sayso(self, *args: str, status: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end and check its exit status."""
        done = subprocess.run(
            [SAYSO, *args],
            env={**self.env, **options.pop("env", {})},
            capture_output=True,
            text=True,
            timeout=60,
            cwd=options.pop("cwd", self.root),
            stdin=subprocess.DEVNULL,
            **options,
        )
        if status is not None:
            assert done.returncode == status, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args: str, status: int | None = 0) -> Any:
        """Run a command with --json and read the last line of its output."""
        done = self.sayso(args[0], "--json", *args[1:], status=status)
        return json.loads(done.stdout.strip().splitlines()[-1])

    def ask(self, *args: str) -> subprocess.Popen[str]:
        """Start `sayso exec` in the background."""
        return subprocess.Popen(
            [SAYSO, "exec", *args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root,
        )

    def pending(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many requests wait, and return them."""

        def look() -> list[dict[str, Any]] | None:
            found = self.json("pending")
            return found if len(found) == count else None

        return wait_for(look)


def finish(process: subprocess.Popen[str], seconds: float = 30) -> tuple[int, str, str]:
    """Wait for a background command: status, stdout, stderr."""
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


@pytest.fixture(name="finish")
def finish_fixture() -> Callable[..., tuple[int, str, str]]:
    return finish


@pytest.fixture(name="wait_for")
def wait_for_fixture() -> Callable[..., Any]:
    return wait_for


@pytest.fixture
def reachable_tmp() -> Iterator[Path]:
    """A directory that the sandbox's account can pass through; pytest's own is private."""
    path = Path(tempfile.mkdtemp(prefix="sayso-e2e-", dir="/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_daemon(reachable_tmp: Path) -> Iterator[Callable[..., Daemon]]:
    made: list[Daemon] = []

    def make(config: str = "") -> Daemon:
        root = reachable_tmp / f"d{len(made)}"
        root.mkdir(mode=0o711)
        made.append(Daemon(root, config))
        return made[-1]

    yield make
    for daemon in made:
        if daemon.process is not None:
            daemon.kill()


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    return make_daemon().start()
