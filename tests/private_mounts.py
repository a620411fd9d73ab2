"""A mount namespace of its own, where a user of the machine runs `sayso`: elsewhere nothing is seen of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.users import User, plain_env, sayso_words


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
