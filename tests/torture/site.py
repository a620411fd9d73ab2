"""One state directory, one workspace, and the daemon that is killed on it."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAYSO = Path(sys.executable).parent / "sayso"
EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
TIMEOUT_MS = 4_000
MARKERS = ("mark0", "mark1", "mark2", "mark3", "free")  # `free` is on the allowlist, the others are asked about
# One short line, appended by one write: lines of runs at the same time do not mix.
_MARKER = '#!/bin/sh\necho "$1" >> marks\n{slow}'
_OVERLAY = """
sandboxing: {{workspaceRoot: {root}/workspaces}}
approvals: {{exec: {{timeout: {timeout}}}}}
agents:
  second: {{workspace: {work}}}
  third: {{workspace: {work}}}
  main: {{workspace: {work}, exec: {{allowlist: [{{pattern: {work}/free, argPattern: ".*"}}]}}}}
"""


class Site:
    """Starts the daemon, kills it, and reads what the runs left."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.work = root / "work"
        self.log = root / "daemon.log"
        self.overlay = root / "overlay.yaml"
        self._process: asyncio.subprocess.Process | None = None
        self._furnish()

    @property
    def env(self) -> dict[str, str]:
        """The environment of everything that belongs to this place."""
        # Without its compiled modules a start takes twice as long.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "SAYSO_HOME": str(self.home), "NO_COLOR": "1"}

    @property
    def socket(self) -> Path:
        return self.home / "sayso.sock"

    def token(self, name: str) -> str:
        """Read a token: of `operator`, or of an agent."""
        path = self.home / (f"{name}.token" if name == "operator" else f"agents/{name}.token")
        return path.read_text().strip()

    async def spawn(self) -> None:
        """Start the daemon, and do not wait for it."""
        with self.log.open("a") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(SAYSO, "up", "--config", EXAMPLE, "--config", self.overlay, "--port", "0"),
                env=self.env,
                cwd=self.root,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

    async def ready(self) -> bool:
        """Wait until it serves; False where it was killed before."""
        assert self._process
        assert self._process.stdout
        line = await asyncio.wait_for(self._process.stdout.readline(), 30)
        return line.startswith(b"ready ")

    def strike(self) -> None:
        """Kill it, at once, without waiting for its end."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def end(self, number: int = signal.SIGKILL) -> int:
        """Send it a signal and wait for its end; returns the status."""
        assert self._process
        if self._process.returncode is None:
            self._process.send_signal(number)
        await asyncio.wait_for(self._process.communicate(), 30)
        assert self._process.returncode is not None
        return self._process.returncode

    async def sayso(self, *arguments: str) -> tuple[int, str]:
        """Run a command of the client to its end: status, and both outputs."""
        process = await asyncio.create_subprocess_exec(
            *(SAYSO, *arguments),
            env=self.env,
            cwd=self.work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, out.decode(errors="replace")

    def marks(self) -> Counter[str]:
        """Count what the runs wrote, by the word each was given."""
        marks = self.work / "marks"
        return Counter(marks.read_text().split()) if marks.exists() else Counter()

    def _furnish(self) -> None:
        self.work.mkdir(mode=0o755)
        self.overlay.write_text(_OVERLAY.format(root=self.root, work=self.work, timeout=TIMEOUT_MS))
        for name in MARKERS:
            script = self.work / name
            script.write_text(_MARKER.format(slow="sleep 0.2\n" if name in ("mark1", "free") else ""))
            script.chmod(0o755)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.work, nobody.pw_uid, nobody.pw_gid)


@contextmanager
def site(base: str) -> Iterator[Site]:
    """Make a place that the sandbox's account can pass through."""
    root = Path(tempfile.mkdtemp(prefix="sayso-torture-", dir=base))
    root.chmod(0o711)
    try:
        yield Site(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
