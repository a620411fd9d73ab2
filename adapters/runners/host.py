"""Runs commands on the host itself, for what policy and people let out of the sandbox.

A run is held in a mount namespace that has all of the host but Sayso's own state and what starts programs
for others, wherever its plan does not say why that cannot be; one that is not held has all that its account
has. A held run ends with every process of its namespace. One that is not ends with its process group, and
whatever still carries its marker in the environment.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from adapters.runners.accounts import Account, host_account
from adapters.runners.bubblewrap import (
    Bubblewrap,
    SetupError,
    find_bubblewrap,
    mount_options,
    tell_failure,
)
from adapters.runners.guardian import Guardian
from adapters.runners.held_still import HeldStill
from adapters.runners.host_namespace import devices, has_sockets, host_mounts
from adapters.runners.late_options import LateOptions
from adapters.runners.leftovers import MARKER, mark_of
from adapters.runners.orders import check_order, reverified
from adapters.runners.process import Launch, Streams, supervise
from adapters.runners.syscalls import sealed
from adapters.runners.threaded import scopes_abstract_sockets
from adapters.runners.threshold import Threshold
from adapters.runners.workspaces import check, made, prepare
from core.approvals.binding import reverify
from core.errors import RunError
from core.model.command import Placement
from core.model.plan import RunOrder, RunResult, SandboxPlan
from core.ports import OutputSink, Resolver
from core.sandbox.plan import environment

log = logging.getLogger(__name__)

_MARK_BYTES: Final = 4096
_NAMESPACE: Final = "the mount namespace of the run"
HELD: Final = ("state", "programs", "sockets", "terminals", "privileges")
# Through a socket that the operator opened, a descriptor of all that is outside may come in.
HELD_WITH_SOCKETS: Final = ("privileges",)
# Without setpriv: ask the kernel to kill us when the daemon dies, then become the command.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
os.execve(sys.argv[1], sys.argv[1:], os.environ)
"""
# How programs say that they got no rights which their file would give them.
_UNPRIVILEGED: Final = ("no new privileges", "must be setuid", "effective uid is not 0", "setuid root")
_UNWRITABLE: Final = "read-only file system"
_REFUSED: Final = "permission denied"


def guard() -> tuple[str, ...]:
    """Return what to put before a command so that it is killed when the daemon dies.

    The kernel keeps this promise for the command itself, not for its children, and not across a setuid
    program; the guardian finds the rest by their marker.
    """
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
    if setpriv:
        return (setpriv, "--pdeathsig", "KILL", "--")
    return (sys.executable, "-I", "-S", "-c", _LAUNCHER)


class HostRunner:
    """A runner without a sandbox; it becomes `plan.user` where the daemon is root and the plan names one."""

    placement = Placement.HOST
    name = "host"

    def __init__(
        self, resolver: Resolver, output_dir: Path, workspace_root: str, guardian: Guardian | None = None
    ) -> None:
        self._resolver = resolver
        self._output_dir = output_dir
        self._workspace_root = workspace_root
        self._guardian = guardian or Guardian()

    def make_workspace(self, plan: SandboxPlan) -> bool:
        """Make the workspace where that is Sayso's to make and is not there; tell whether it was made now."""
        return made(plan.workspace, host_account(plan.user), self._workspace_root)

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Run the order on the host; its process group is gone afterwards."""
        check_order(order)
        account = host_account(order.bound.plan.user)
        self._make_workspace(order, account)
        with Streams.opened(order, self._output_dir, sink) as streams:
            try:
                return await self._once(order, account, streams)
            except SetupError as error:
                # What was to be hidden or opened may be gone by the time that it is mounted.
                log.info("%s: %s; it is started once more", order.request_id, error)
                return await self._once(order, account, streams)

    async def _once(self, order: RunOrder, account: Account, streams: Streams) -> RunResult:
        with HeldStill.holding(order.held_still) as still:
            if order.bound.plan.unheld is None:
                return await self._held(order, account, still, streams)
            _check_places(order, account)
            await reverified(order, self._resolver, still)
            launch = _unheld(order, account, still)
            with self._guardian.over(order.request_id):
                ending = await supervise(launch, streams, order.bound.plan.limits.timeout_s)
            return streams.result(ending, killed=still.told(begun=ending.begun))

    async def _held(self, order: RunOrder, account: Account, still: HeldStill, streams: Streams) -> RunResult:
        bwrap = find_bubblewrap()

        def meanwhile(process: subprocess.Popen[bytes]) -> None:
            _check_places(order, account)
            options = _options(order, account, bwrap)
            reverify(order, self._resolver)
            still.check()
            late.give(options)
            still.guard(process, threshold.passed)

        sockets = has_sockets(order.bound.plan, by_person=order.by_person)
        with (
            LateOptions.awaited() as late,
            Threshold.laid() as threshold,
            sealed(sockets=sockets) as seal,
        ):
            before = (bwrap.path, *seal.options, *threshold.words, *late.words)
            launch = Launch(
                # The mark is made by the last of the late options: without them, bwrap ends here.
                before=(*before, "--chmod", "0755", mark_of(order.request_id)),
                argv=order.argv,
                account=account,
                cwd="/",
                env={MARKER: order.request_id},
                stdin=order.stdin,
                meanwhile=meanwhile,
                begins=threshold.passed,
                inherit=(*seal.descriptors, threshold.descriptor, *late.descriptors),
                contained=True,
                scoped=scopes_abstract_sockets(),
                # Of what a rule alone admits, nothing outlives the first process of its own namespace.
                marker=order.request_id if order.by_person else None,
            )
            with self._guardian.over(order.request_id):
                ending = await supervise(launch, streams, order.bound.plan.limits.timeout_s)
        killed = still.told(begun=ending.begun)
        tell_failure(ending, streams, _NAMESPACE)
        lacking = tuple(_lacking(order, ending.exit_code, streams))
        return streams.result(ending, HELD_WITH_SOCKETS if sockets else HELD, killed, lacking)

    def _make_workspace(self, order: RunOrder, account: Account) -> None:
        workspace = order.bound.plan.workspace
        if not os.path.exists(workspace):  # noqa: PTH110 - for every run; it may be the sandbox account's
            prepare(workspace, account, self._workspace_root, key=order.workspace_key)


def _check_places(order: RunOrder, account: Account) -> None:
    check(order.bound.plan.workspace, account, key=order.workspace_key)
    if not Path(order.bound.cwd).is_dir():
        raise RunError(f"cwd {order.bound.cwd} is not a directory")
    program = order.argv[0]
    if program.startswith("/") and not Path(program).is_file():
        raise RunError(f"{program} is not there any more")


def _unheld(order: RunOrder, account: Account, still: HeldStill) -> Launch:
    return Launch(
        before=guard(),
        argv=order.argv,
        account=account,
        cwd=order.bound.cwd,
        env=_environment(order, account),
        stdin=order.stdin,
        meanwhile=still.guard,
        marker=order.request_id,
    )


def _options(order: RunOrder, account: Account, bwrap: Bubblewrap) -> list[str]:
    try:
        return namespace_options(
            order.bound.plan,
            account,
            bwrap,
            env=_environment(order, account),
            cwd=order.bound.cwd,
            by_person=order.by_person,
        )
    except OSError as error:
        raise SetupError(f"{_NAMESPACE} could not be set up: {error.filename}: {error.strerror}") from error


def _environment(order: RunOrder, account: Account) -> dict[str, str]:
    return {**environment(order.bound, account.name), MARKER: order.request_id}


def namespace_options(
    plan: SandboxPlan,
    account: Account,
    bwrap: Bubblewrap,
    *,
    env: Mapping[str, str],
    cwd: str,
    by_person: bool = False,
) -> list[str]:
    """Return bwrap's options for a held run; raises RunError where it would be held by nothing."""
    if account.uid == 0:
        raise RunError("no mount namespace holds root; set tools.exec.hostUser")
    options = ["--unshare-user", *(["--disable-userns"] if bwrap.disables_userns else [])]
    options += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--dev-bind", "/", "/"]
    options += ["--dev", "/dev"]
    # What a person allowed may see and signal the processes of its user; a rule alone gives nobody that.
    options += [] if by_person else ["--unshare-pid", "--proc", "/proc"]
    options += [word for path in devices(account) for word in ("--dev-bind-try", path, path)]
    options += mount_options(host_mounts(plan, account, by_person=by_person, cwd=cwd))
    options += ["--clearenv"]
    options += [word for name, value in env.items() for word in ("--setenv", name, value)]
    options += ["--chdir", cwd]
    # Last, so that whoever sees it knows that nothing is missing.
    return [*options, "--size", str(_MARK_BYTES), "--tmpfs", mark_of(env.get(MARKER, ""))]


def _lacking(order: RunOrder, exit_code: int, streams: Streams) -> Iterator[str]:
    said = streams.stderr.text()[0].lower()
    if exit_code != os.EX_OK and any(words in said for words in _UNPRIVILEGED):
        yield (
            "it seems to have called a program that takes rights its caller has not (sudo and its like), and "
            "a held run gives none: sayso exec --new-privileges asks for a run that does"
        )
    if exit_code != os.EX_OK and _UNWRITABLE in said and not order.by_person:
        yield (
            "it seems to have written where what a rule alone admits cannot, to the home outside of its "
            "directories of work or beside Sayso's own files: sayso exec --ask always asks a person, who can "
            "allow it"
        )
    if exit_code != os.EX_OK and _REFUSED in said and "socket" in said:
        yield (
            "it seems to have wanted a Unix socket, and a held run has none: tools.exec.hostSockets opens "
            "some to what a person allows"
        )
