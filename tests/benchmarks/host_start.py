"""What a held run on the host adds to bubblewrap with the same options: `true`, pair by pair."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from dataclasses import replace
from operator import sub
from pathlib import Path

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.runners.accounts import Account, host_account
from adapters.runners.bubblewrap import find_bubblewrap
from adapters.runners.host import HostRunner, namespace_options
from adapters.runners.syscalls import sealed
from core.approvals.binding import bind
from core.config import ExecSettings
from core.model.command import Placement
from core.model.plan import BoundCommand, RunOrder, RunStatus
from core.sandbox.plan import host_plan
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import directory

ROUNDS = 100
TRUE = "/bin/true"
SYSTEM = {"PATH": "/usr/bin:/bin"}


class _Silence:
    def write(self, request_id: str, stream: str, data: bytes) -> None:
        """Nothing is written by `true`."""


def measure() -> list[Figure]:
    """Measure the bare program, then of both kinds of runs the bare namespace and the runner."""
    with directory() as place:
        account = host_account("nobody")
        runner = HostRunner(FilesystemResolver(), place / "output", str(place / "workspaces"))
        order = _order(place, account)
        alone = [_bare([TRUE], account) for _ in range(ROUNDS)]
        by_rule = _figures("a rule let", order, account, runner)
        by_person = _figures("a person let", replace(order, by_person=True), account, runner)
    return [Figure("bare exec of true", "ms", alone), *by_rule, *by_person]


def _figures(who: str, order: RunOrder, account: Account, runner: HostRunner) -> list[Figure]:
    bare, through = asyncio.run(_alternate(order, account, runner))
    return [
        Figure(f"bare bubblewrap as for what {who} run on the host", "ms", bare),
        Figure(f"what {who} run on the host, through the runner", "ms", through),
        Figure("the runner over bubblewrap, pair by pair", "ms", list(map(sub, through, bare)), at_most=1.0),
    ]


async def _alternate(
    order: RunOrder, account: Account, runner: HostRunner
) -> tuple[list[float], list[float]]:
    """Take turns, so that a busy moment of the machine weighs on both."""
    bwrap = find_bubblewrap()
    options = namespace_options(
        order.bound.plan, account, bwrap, env=SYSTEM, cwd="/", by_person=order.by_person
    )
    bare: list[float] = []
    through: list[float] = []
    for _ in range(ROUNDS):
        with sealed(sockets=False) as seal:
            command = [bwrap.path, *seal.options, *options, "--", TRUE]
            bare.append(_bare(command, account, seal.descriptors))
        began = time.perf_counter()
        result = await runner.run(order, _Silence())
        through.append((time.perf_counter() - began) * 1000)
        if (result.status, result.exit_code) != (RunStatus.FINISHED, 0):
            raise RuntimeError(f"true did not run: {result}")
    return bare, through


def _bare(command: list[str], account: Account, inherit: tuple[int, ...] = ()) -> float:
    whole = [*account.becoming, *command]
    began = time.perf_counter()
    subprocess.run(
        whole, check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", pass_fds=inherit
    )
    return (time.perf_counter() - began) * 1000


def _order(place: Path, account: Account) -> RunOrder:
    workspace = place / "workspace"
    workspace.mkdir()
    os.chown(workspace, account.uid, account.gid)
    (place / "state").mkdir()
    plan = host_plan(
        ExecSettings(),
        own=(str(place / "state"),),
        program=(),
        workspace=str(workspace),
        account=account.name if account.drop else None,
        unheld=None,
        timeout_s=None,
    )
    bound = BoundCommand(
        "bench", "agent:bench:main", TRUE, str(workspace), (), None, Placement.HOST, plan, executables=()
    )
    return RunOrder("bench", (TRUE,), bound, bind(bound))
