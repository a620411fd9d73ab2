"""A daemon of an ordinary user of the machine, started by root, and its commands as that user."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Daemon
from tests.users import User


def nobody() -> User:
    """Give the user `nobody`."""
    entry = pwd.getpwnam("nobody")
    return User(entry.pw_uid, entry.pw_gid)


class DaemonOfUser(Daemon):
    """`home` and workspaces are made for the user; the configuration is where the test puts it."""

    def __init__(self, root: Path, user: User, config: str = "") -> None:
        super().__init__(root, config)
        self.user = user
        self.account.write_text("{}\n")
        self._make(self.home, 0o700)
        self._make(root / "workspaces", 0o711)

    def live_in(self, home: Path) -> None:
        """Keep the state elsewhere."""
        self.home = home
        self._make(home, 0o700)

    def _make(self, path: Path, mode: int) -> None:
        path.mkdir(mode=mode)
        os.chown(path, self.user.uid, self.user.gid)

    @property
    def env(self) -> dict[str, str]:
        return {"SAYSO_HOME": str(self.home)}

    def start(self, *flags: str) -> DaemonOfUser:
        with self.log.open("a") as log:
            self.process = self.user.popen(
                "up", *self.configs, "--port", "0", *flags, env=self.env, stderr=log
            )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        assert self.ready.startswith("ready "), self.log.read_text()
        return self

    def sayso(self, *args: str, status: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        assert not options
        found, out, err = self.user.sayso(*args, env=self.env)
        assert status in (None, found), f"{args}: {found}\n{out}\n{err}"
        return subprocess.CompletedProcess(args, found, out, err)

    def ask(self, *args: str) -> subprocess.Popen[str]:
        return self.user.popen("exec", *args, env=self.env, cwd=self.root)

    def end(self) -> None:
        if self.process is not None:
            self.kill()
