"""Everything a runner needs, laid out on the real machine; imported by the tests of both runners."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from adapters.runners.accounts import homes, running_account
from adapters.runners.bubblewrap import BubblewrapRunner
from adapters.runners.host import HostRunner
from adapters.runners.leftovers import marked
from adapters.runners.workspaces import ensure
from core.approvals.binding import bind
from core.config import ExecSettings, SandboxOverrides, SandboxSettings, Scope
from core.model.command import Directory, Executable, FileIdentity
from core.model.plan import BoundCommand, RunOrder, SandboxPlan
from core.model.session import SessionKey
from core.sandbox.plan import host_plan, plan_for
from core.sandbox.workspace import directory_for


class Recorder:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, bytes]] = []
        self.first = asyncio.Event()

    def write(self, request_id: str, stream: str, data: bytes) -> None:
        self.heard.append((request_id, stream, data))
        self.first.set()

    def text(self, stream: str) -> str:
        return b"".join(data for _, name, data in self.heard if name == stream).decode()


class Files:
    """A resolver over real files, for absolute names only."""

    def for_one_command(self) -> Files:
        return self

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        del path, cwd
        if not Path(name).exists():
            return None
        found = Path(name).stat()
        identity = FileIdentity(
            found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        )
        return Executable(name, name, os.path.realpath(name), identity)

    def directory(self, path: str) -> Directory | None:
        try:
            found = Path(path).stat()
        except OSError:
            return None
        return Directory(path, found.st_dev, found.st_ino)

    def real_directory(self, path: str) -> str | None:
        return os.path.realpath(path)


@dataclass
class Place:
    """A state directory, a workspace root and two runners of their own."""

    root: Path
    plan: SandboxPlan
    sandbox: BubblewrapRunner
    host: HostRunner
    on_the_host: SandboxPlan
    unheld: SandboxPlan
    files: Files = field(default_factory=Files)
    count: int = 0

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def output(self) -> Path:
        return self.state / "output"

    @property
    def workspace(self) -> Path:
        return Path(self.plan.workspace)

    def runner(self, name: str) -> BubblewrapRunner | HostRunner:
        return self.sandbox if name == "bubblewrap" else self.host

    def order(
        self,
        *argv: str,
        runner: str = "bubblewrap",
        plan: Callable[[SandboxPlan], SandboxPlan] = lambda plan: plan,
        cwd: str | None = None,
        env: tuple[tuple[str, str], ...] = (),
        stdin: bytes | None = None,
        programs: tuple[str, ...] = (),
    ) -> RunOrder:
        self.count += 1
        base = {"bubblewrap": self.plan, "host": self.on_the_host, "unheld": self.unheld}[runner]
        found = tuple(self.files.find(program, path=(), cwd="/") for program in programs)
        bound = BoundCommand(
            agent="main",
            session="agent:main:main",
            canonical=" ".join(argv),
            cwd=cwd or base.workspace,
            env=env,
            stdin=None if stdin is None else hashlib.sha256(stdin).hexdigest(),
            placement=self.runner(runner).placement,
            plan=plan(base),
            executables=tuple(one for one in found if one),
        )
        return RunOrder(f"run-{os.getpid()}-{id(self)}-{self.count}", argv, bound, bind(bound), stdin)

    def shell(self, script: str, **options: object) -> RunOrder:
        return self.order("/bin/sh", "-c", script, **options)

    def seconds(self, seconds: float) -> Callable[[SandboxPlan], SandboxPlan]:
        return lambda plan: replace(plan, limits=replace(plan.limits, timeout_s=seconds))


def close(place: Place) -> None:
    """Make the workspace one that the operator named, below a directory that only its account can pass."""
    above = place.workspace.parent
    if os.geteuid() == 0:
        shutil.chown(above, "nobody")
    above.chmod(0o700)
    place.sandbox._workspace_root = str(place.root / "elsewhere")


@contextmanager
def place_on_disk(parent: str = "/var/tmp") -> Iterator[Place]:
    # Not pytest's own directory: the account that runs commands must be able to get there.
    root = Path(tempfile.mkdtemp(prefix="sayso-test-", dir=parent))
    root.chmod(0o711)
    (root / "state").mkdir(mode=0o700)
    account = running_account("nobody")
    workspace = directory_for(str(root / "workspaces"), Scope.SESSION, SessionKey.main("main"))
    ensure(workspace, account)
    user = account.name if account.drop else None
    state = str(root / "state")
    plan = plan_for(
        SandboxSettings(),
        SandboxOverrides(),
        ExecSettings(),
        state_dir=state,
        protected=(),
        hidden=homes(),
        workspace=workspace,
        account=user,
        timeout_s=30,
    )
    held, unheld = (
        host_plan(
            ExecSettings(),
            own=(state,),
            program=(),
            workspace=workspace,
            account=user,
            unheld=why,
            timeout_s=30,
        )
        for why in (None, "a test")
    )
    files, output, workspaces = Files(), root / "state" / "output", str(root / "workspaces")
    try:
        yield Place(
            root,
            plan,
            BubblewrapRunner(files, output, workspaces),
            HostRunner(files, output, workspaces),
            held,
            unheld,
            files,
        )
    finally:
        shutil.rmtree(root)


def processes_with(text: str) -> list[int]:
    """Return processes whose command line holds a text, this one left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if text.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


__all__ = ["Files", "Place", "Recorder", "marked", "place_on_disk", "processes_with"]
