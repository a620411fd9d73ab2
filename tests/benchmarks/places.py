"""Where benchmarks work: a directory of their own, and a daemon on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SAYSO = Path(sys.executable).parent / "sayso"
EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
# Where everything is let through to the sandbox at once, what is measured is Sayso, not a person.
NOBODY_IS_ASKED = "tools: {exec: {security: full, ask: 'off'}}"
SOMEBODY_IS_ASKED = (
    "tools: {exec: {security: allowlist, ask: on-miss}}\n"
    "approvals: {exec: {maxOpen: 100000, maxPerMinute: 100000, timeout: 3600000}}"
)
_KB_PER_MB = 1000 / 1.024


@contextmanager
def directory() -> Iterator[Path]:
    """Make a directory on a disk, which the sandbox's account can pass through."""
    place = Path(tempfile.mkdtemp(prefix="sayso-bench-", dir="/var/tmp"))
    place.chmod(0o711)
    try:
        yield place
    finally:
        shutil.rmtree(place)


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """A daemon as a process."""

    pid: int
    root: Path
    env: dict[str, str]

    @property
    def socket(self) -> Path:
        return self.root / "home" / "sayso.sock"

    @property
    def token(self) -> str:
        """The token of the agent `main`."""
        return (self.root / "home" / "agents" / "main.token").read_text().strip()

    def memory(self) -> dict[str, float]:
        """Read in MB the resident memory, and the share that counts shared pages by how many share them."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()[1:]
        pairs = (line.split()[:2] for line in lines)
        return {name.rstrip(":"): int(kb) / _KB_PER_MB for name, kb in pairs}

    def sayso(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the client, which must succeed."""
        return subprocess.run(
            [SAYSO, *arguments],
            env=self.env,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )


@contextmanager
def daemon(config: str = NOBODY_IS_ASKED) -> Iterator[RunningDaemon]:
    """Start a daemon, wait until it is ready, and stop it in the end."""
    with directory() as root, (root / "daemon.log").open("w") as log:
        overlay = root / "overlay.yaml"
        overlay.write_text(f"sandboxing: {{workspaceRoot: {root}/workspaces}}\n{config}\n")
        env = {**os.environ, "SAYSO_HOME": str(root / "home")}
        command = [SAYSO, "up", "--config", EXAMPLE, "--config", overlay, "--port", "0"]
        with subprocess.Popen(
            command,
            env=env,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process:
            try:
                _await_ready(process, root / "daemon.log")
                yield RunningDaemon(process.pid, root, env)
            finally:
                process.terminate()


def _await_ready(process: subprocess.Popen[str], log: Path) -> None:
    if not process.stdout.readline().startswith("ready "):
        raise RuntimeError(f"no daemon: {log.read_text()}")
