"""One state directory, one workspace, and the daemon that is killed on it."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SAYSO = Path(sys.executable).parent / "sayso"
EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
NURSERY = Path(__file__).with_name("nursery.py")
TIMEOUT_MS = 4_000
# Who answers, by the uid that the kernel tells the daemon. Only root can connect as several of them.
PEOPLE = {os.geteuid(): "ann", **({60_001: "bea", 60_002: "cem"} if os.geteuid() == 0 else {})}
MARKERS = (
    "mark0",
    "mark1",
    "mark2",
    "mark3",
    "free",
)  # `free` is on the allowlist, the others are asked about
# One short line, appended by one write: lines of runs at the same time do not mix.
_MARKER = '#!/bin/sh\necho "$1" >> marks\n{slow}'
_OVERLAY = """
sandboxing: {{workspaceRoot: {root}/workspaces}}
people: {people}
approvals: {{exec: {{timeout: {timeout}, maxOpen: 1000, maxPerMinute: 10000, required: {required}}}}}
agents:
  second: {{workspace: {work}}}
  third: {{workspace: {work}}}
  main: {{workspace: {work}, exec: {{allowlist: [{{pattern: {work}/free, argPattern: ".*"}}]}}}}
"""


class Site:
    """Starts the daemon, kills it, and reads what the runs left."""

    def __init__(self, root: Path, required: int = 1) -> None:
        self.root = root
        self.required = required
        self.home = root / "home"
        self.work = root / "work"
        self.log = root / "daemon.log"
        self.overlay = root / "overlay.yaml"
        self._nursery: asyncio.subprocess.Process | None = None
        self._daemon: int | None = None  # a pidfd: it never names another process
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
        """Start the daemon, and do not wait until it serves."""
        if self._nursery is None:
            self._nursery = await self._new_nursery()
        assert self._nursery.stdin
        self._nursery.stdin.write(b"start\n")
        said = await self._said()
        assert said.startswith("pid "), said
        self._daemon = os.pidfd_open(int(said.split()[1]))

    async def ready(self) -> bool:
        """Wait until it serves; False where it ended before."""
        said = await self._said()
        if said.startswith("ended "):
            self._gone()
        return said.startswith("ready ")

    def strike(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, without waiting for its end."""
        if self._daemon is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._daemon, number)

    async def end(self, number: int = signal.SIGKILL) -> int | None:
        """Send it a signal and wait for its end; returns its status, None where it was gone."""
        if self._daemon is None:
            return None
        self.strike(number)
        while not (said := await self._said()).startswith("ended "):
            pass
        self._gone()
        return int(said.split()[1])

    async def clear(self) -> None:
        """End all that was started."""
        if self._nursery is not None:
            await self.end()
            self._nursery.kill()
            await self._nursery.communicate()

    def _gone(self) -> None:
        if self._daemon is not None:
            os.close(self._daemon)
        self._daemon = None

    async def _said(self) -> str:
        assert self._nursery
        assert self._nursery.stdout
        line = await asyncio.wait_for(self._nursery.stdout.readline(), 30)
        assert line, f"the nursery ended: {self.log.read_text()}"
        return line.decode()

    async def _new_nursery(self) -> asyncio.subprocess.Process:
        with self.log.open("a") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, NURSERY, "--config", EXAMPLE, "--config", self.overlay, "--port", "0"),
                env=self.env,
                cwd=self.root,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

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
        people = json.dumps({person: [f"cli:{uid}"] for uid, person in PEOPLE.items()})
        places = {"root": self.root, "work": self.work}
        self.overlay.write_text(
            _OVERLAY.format(**places, timeout=TIMEOUT_MS, required=self.required, people=people)
        )
        for name in MARKERS:
            script = self.work / name
            script.write_text(_MARKER.format(slow="sleep 0.2\n" if name in ("mark1", "free") else ""))
            script.chmod(0o755)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.work, nobody.pw_uid, nobody.pw_gid)


@contextmanager
def site(base: str, required: int = 1) -> Iterator[Site]:
    """Make a place that the sandbox's account can pass through."""
    root = Path(tempfile.mkdtemp(prefix="sayso-torture-", dir=base))
    root.chmod(0o711)
    try:
        yield Site(root, required)
    finally:
        shutil.rmtree(root, ignore_errors=True)
