"""A daemon and its agents as different users of the machine, for tests that root runs."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SAYSO = "import sys; from bot.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class User:
    """A user by number, with the groups it is in; it needs no account."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @property
    def identity(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups}

    def popen(self, *words: str, env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
        """Start `sayso` as this user."""
        return subprocess.Popen(
            [*sayso_words(), *words],
            env={**plain_env(), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=options.pop("stderr", subprocess.PIPE),
            text=True,
            **{"cwd": "/", **options},
            **self.identity,
        )

    def sayso(self, *words: str, env: dict[str, str]) -> tuple[int, str, str]:
        """Run `sayso` as this user to its end: status, stdout, stderr."""
        process = self.popen(*words, env=env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err


def sayso_words() -> tuple[str, ...]:
    """Give what starts `sayso` for every user, in `plain_env`."""
    return python_for_all(), "-P", "-c", SAYSO


def plain_env() -> dict[str, str]:
    """Give the environment of a user who has set nothing, and the modules that Sayso is."""
    return {"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "PYTHONPATH": _modules(), "HOME": "/nonexistent"}


def _modules() -> str:
    return f"{ROOT}:{sysconfig.get_path('purelib')}"


@functools.cache
def python_for_all() -> str:
    """Find a Python of this version that every user can start; one below /root is root's alone."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    nobody = {"user": 65534, "group": 65534, "extra_groups": ()}
    try_out = "import bot.daemon"
    for path in dict.fromkeys(
        (sys.executable, *filter(None, map(shutil.which, (version, f"/usr/bin/{version}"))))
    ):
        try:
            tried = subprocess.run(
                [path, "-P", "-c", try_out],
                env={"PYTHONPATH": _modules()},
                cwd="/",
                capture_output=True,
                **nobody,
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return path
    pytest.skip(f"no {version} here that other users than root can start Sayso with")


needs_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
