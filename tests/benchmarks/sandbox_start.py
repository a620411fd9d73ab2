"""How much the runner adds to bubblewrap: `true` in the same sandbox, with and without Sayso around it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from operator import truediv
from pathlib import Path

from adapters.runners.accounts import Account, homes, running_account
from adapters.runners.bubblewrap import BubblewrapRunner, find_bubblewrap, options_for
from adapters.runners.sources import Sources
from adapters.runners.workspaces import ensure
from core.approvals.binding import bind
from core.config import ExecSettings, SandboxOverrides, SandboxSettings, Scope
from core.model.command import Directory, Executable, Placement
from core.model.plan import BoundCommand, RunOrder, RunStatus
from core.model.session import SessionKey
from core.sandbox.plan import plan_for
from core.sandbox.workspace import directory_for
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import directory

ROUNDS = 60
TRUE = "/bin/true"


class _Silence:
    def write(self, request_id: str, stream: str, data: bytes) -> None:
        """Nothing is written by `true`."""


class _NoFiles:
    def for_one_command(self) -> _NoFiles:
        return self

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        """No program is bound in this measurement."""
        raise AssertionError(name, path, cwd)

    def directory(self, path: str) -> Directory | None:
        """None is bound."""
        del path

    def real_directory(self, path: str) -> str | None:
        """Paths here are real already."""
        return path


def measure() -> list[Figure]:
    """Measure both, and the runner's time as a multiple of the bare one's."""
    with directory() as place:
        account = running_account("nobody")
        order = _order(place, account)
        runner = BubblewrapRunner(_NoFiles(), place / "output", str(place / "workspaces"))
        bare, through = asyncio.run(_alternate(order, account, runner))
    return [
        Figure("bare bubblewrap, true from start to end", "ms", bare),
        Figure("the same through the runner", "ms", through),
        Figure("the runner over bare bubblewrap", "times", list(map(truediv, through, bare)), at_most=1.5),
    ]


async def _alternate(
    order: RunOrder, account: Account, runner: BubblewrapRunner
) -> tuple[list[float], list[float]]:
    """Take turns, so that a busy moment of the machine weighs on both."""
    bwrap = replace(find_bubblewrap(), takes_descriptors=False)
    with Sources.opened() as sources:
        command = [bwrap.path, *options_for(order, account, bwrap, sources), "--", *order.argv]
    bare: list[float] = []
    through: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        _bare(command, account)
        between = time.perf_counter()
        result = await runner.run(order, _Silence())
        through.append((time.perf_counter() - between) * 1000)
        bare.append((between - began) * 1000)
        if (result.status, result.exit_code) != (RunStatus.FINISHED, 0):
            raise RuntimeError(f"true did not run: {result}")
    return bare, through


def _bare(command: list[str], account: Account) -> None:
    identity = {"user": account.uid, "group": account.gid, "extra_groups": ()} if account.drop else {}
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", **identity)


def _order(place: Path, account: Account) -> RunOrder:
    workspace = directory_for(str(place / "workspaces"), Scope.SESSION, SessionKey.main("bench"))
    ensure(workspace, account)
    plan = plan_for(
        SandboxSettings(),
        SandboxOverrides(),
        ExecSettings(),
        state_dir=str(place / "state"),
        protected=(),
        hidden=homes(),
        workspace=workspace,
        account=account.name if account.drop else None,
        timeout_s=None,
    )
    bound = BoundCommand(
        "bench", "agent:bench:main", TRUE, workspace, (), None, Placement.SANDBOX, plan, executables=()
    )
    return RunOrder("bench", (TRUE,), bound, bind(bound))
