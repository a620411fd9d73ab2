"""Runs commands on the host itself, for what policy and people let out of the sandbox.

Nothing confines such a run. It ends with its process group, and whatever still carries its marker in the
environment; a process that leaves the group and clears its environment survives.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from adapters.runners.accounts import Account, own_account, running_account
from adapters.runners.leftovers import MARKER
from adapters.runners.orders import check_order
from adapters.runners.process import Launch, Streams, supervise
from adapters.runners.workspaces import check, prepare
from core.approvals.binding import reverify
from core.errors import RunError
from core.model.command import Placement
from core.model.plan import RunOrder, RunResult
from core.ports import OutputSink, Resolver
from core.sandbox.plan import environment

# Without setpriv: ask the kernel to kill us when the daemon dies, then become the command.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
os.execve(sys.argv[1], sys.argv[1:], os.environ)
"""


def guard() -> tuple[str, ...]:
    """Return what to put before a command so that it is killed when the daemon dies.

    The kernel keeps this promise for the command itself, not for its children, and not across a setuid
    program; `kill_leftovers` at the next start finds the rest.
    """
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
    if setpriv:
        return (setpriv, "--pdeathsig", "KILL", "--")
    return (sys.executable, "-I", "-S", "-c", _LAUNCHER)


class HostRunner:
    """A runner without a sandbox; it becomes `plan.user` where the daemon is root and the plan names one."""

    placement = Placement.HOST
    name = "host"

    def __init__(self, resolver: Resolver, output_dir: Path, workspace_root: str) -> None:
        self._resolver = resolver
        self._output_dir = output_dir
        self._workspace_root = workspace_root

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Run the order on the host; its process group is gone afterwards."""
        check_order(order)
        bound = order.bound
        account: Account = running_account(bound.plan.user) if bound.plan.user else own_account()
        self._prepare(order, account)
        launch = Launch(
            before=guard(),
            argv=order.argv,
            account=account,
            cwd=bound.cwd,
            env={**environment(bound, account.name), MARKER: order.request_id},
            stdin=order.stdin,
            marker=order.request_id,
        )
        with Streams.opened(order, self._output_dir, sink) as streams:
            await asyncio.to_thread(reverify, order, self._resolver)  # it reads files of any size
            ending = await supervise(launch, streams, bound.plan.limits.timeout_s)
        return streams.result(ending)

    def _prepare(self, order: RunOrder, account: Account) -> None:
        bound = order.bound
        if Path(bound.plan.workspace).exists():
            check(bound.plan.workspace, account)  # it may belong to the sandbox account
        else:
            prepare(bound.plan.workspace, account, self._workspace_root)
        if not Path(bound.cwd).is_dir():
            raise RunError(f"cwd {bound.cwd} is not a directory")
        program = order.argv[0]
        if program.startswith("/") and not Path(program).is_file():
            raise RunError(f"{program} is not there any more")
