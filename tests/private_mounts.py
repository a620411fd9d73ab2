"""A mount namespace of its own, where a user of the machine runs `sayso`: elsewhere nothing is seen of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.users import User, plain_env, sayso_words

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class PrivateMounts:
    """The namespace of the process that holds it."""

    pid: int

    def popen(self, user: User, *words: str, env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
        """Start `sayso` in here as a user."""
        groups = ("--groups", ",".join(map(str, user.groups))) if user.groups else ("--clear-groups",)
        become = ("setpriv", "--reuid", str(user.uid), "--regid", str(user.gid), *groups, "--")
        return subprocess.Popen(
            ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", *become, *sayso_words(), *words],
            env={**plain_env(), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=options.pop("stderr", subprocess.PIPE),
            text=True,
            **{"cwd": "/", **options},
        )

    def sayso(self, user: User, *words: str, env: dict[str, str]) -> tuple[int, str, str]:
        """Run `sayso` in here as a user to its end: status, stdout, stderr."""
        process = self.popen(user, *words, env=env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err


class DaemonInside:
    """A daemon that a user runs in a mount namespace of its own; `root` is where its files are made."""

    def __init__(
        self, mounts: PrivateMounts, user: User, root: Path, config: str, env: Mapping[str, str] = NOTHING
    ) -> None:
        self.mounts, self.user, self.root = mounts, user, root
        self.env = {"SAYSO_HOME": str(root / "home"), **env}
        for name in ("home", "workspaces", "outside"):
            (root / name).mkdir(mode=0o711 if name == "workspaces" else 0o700)
            os.chown(root / name, user.uid, user.gid)
        path = root / "config.yaml"
        path.write_text(
            f"sandboxing: {{workspaceRoot: {root}/workspaces}}\nchannels: {{web: {{port: 0}}}}\n{config}"
        )
        with (root / "log").open("w") as log:
            words = ("up", "--config", str(path))
            self.process = mounts.popen(user, *words, env=self.env, stderr=log)
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        if not self.ready.startswith("ready "):
            self.stop()
            pytest.fail((root / "log").read_text())

    def json(self, *words: str, status: int | None = 0) -> Any:
        """Run a command with --json and read the last line of its output."""
        found, out, err = self.mounts.sayso(self.user, words[0], "--json", *words[1:], env=self.env)
        assert status in (None, found), err
        return json.loads(out.strip().splitlines()[-1])

    def checks(self) -> dict[str, dict[str, str]]:
        """Let doctor look, and give what it found by its name."""
        return {row["name"]: row for row in self.json("doctor", status=None)}

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=25)


@contextmanager
def private_mounts(script: str, *words: str) -> Iterator[PrivateMounts]:
    """Give a namespace in which a shell has run this script as root, with these words as $1 and so on."""
    held = f"set -e; {script}; echo mounted; exec sleep 600"
    command = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", held, "sh", *words]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != "mounted\n":
            pytest.skip(f"no mount namespace of its own can be had here: {holder.communicate()[1].strip()}")
        yield PrivateMounts(holder.pid)
    finally:
        holder.kill()
        holder.communicate()
