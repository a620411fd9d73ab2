"""Runs commands on the host itself, for what policy and people let out of the sandbox.

A run is held in a mount namespace that has all of the host but Sayso's own state and what starts programs
for others, wherever its plan does not say why that cannot be; one that is not held has all that its account
has. A held run ends with every process of its namespace. One that is not ends with its process group, and
whatever still carries its marker in the environment.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.runners.accounts import Account, host_account
from adapters.runners.bubblewrap import Bubblewrap, encoded, find_bubblewrap, mount_options, tell_failure
from adapters.runners.guardian import Guardian
from adapters.runners.host_namespace import devices, host_mounts, start_up_marks
from adapters.runners.leftovers import MARKER, mark_of
from adapters.runners.orders import check_order, reverified
from adapters.runners.process import Launch, Streams, memory_file, supervise
from adapters.runners.syscalls import no_unix_sockets
from adapters.runners.threaded import scopes_abstract_sockets
from adapters.runners.workspaces import check, prepare
from core.errors import RunError
from core.model.command import Placement
from core.model.plan import RunOrder, RunResult, SandboxPlan
from core.ports import OutputSink, Resolver
from core.sandbox.plan import environment

_MARK_BYTES: Final = 4096
HELD: Final = ("state", "programs", "sockets", "terminals", "privileges")
# Without setpriv: ask the kernel to kill us when the daemon dies, then become the command.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
os.execve(sys.argv[1], sys.argv[1:], os.environ)
"""
# How programs say that they got no rights which their file would give them.
_UNPRIVILEGED: Final = ("no new privileges", "must be setuid", "effective uid is not 0", "setuid root")


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

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Run the order on the host; its process group is gone afterwards."""
        check_order(order)
        account = host_account(order.bound.plan.user)
        self._prepare(order, account)
        with _launch(order, account) as launch, Streams.opened(order, self._output_dir, sink) as streams:
            before = start_up_marks(account)
            await reverified(order, self._resolver)
            with self._guardian.over(order.request_id):
                ending = await supervise(launch, streams, order.bound.plan.limits.timeout_s)
        if not launch.contained:
            return streams.result(ending)
        tell_failure(ending, streams, "the mount namespace of the run")
        notes = (*_exchanged(before, start_up_marks(account)), *_lacking(ending.exit_code, streams))
        return streams.result(ending, held=HELD, notes=notes)

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


@contextmanager
def _launch(order: RunOrder, account: Account) -> Iterator[Launch]:
    env = {**environment(order.bound, account.name), MARKER: order.request_id}
    if order.bound.plan.unheld is not None:
        yield Launch(
            before=guard(),
            argv=order.argv,
            account=account,
            cwd=order.bound.cwd,
            env=env,
            stdin=order.stdin,
            marker=order.request_id,
        )
        return
    bwrap = find_bubblewrap()
    options = namespace_options(
        order.bound.plan, account, bwrap, env=env, cwd=order.bound.cwd, by_person=order.by_person
    )
    with memory_file(encoded(options)) as descriptor, sealed(by_person=order.by_person) as seal:
        yield Launch(
            before=(bwrap.path, *seal.options, "--args", str(descriptor)),
            argv=order.argv,
            account=account,
            cwd="/",
            env={MARKER: order.request_id},
            stdin=order.stdin,
            inherit=(*seal.descriptors, descriptor),
            contained=True,
            scoped=scopes_abstract_sockets(),
            marker=order.request_id,
        )


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
    options += ["--size", str(_MARK_BYTES), "--tmpfs", mark_of(env.get(MARKER, ""))]
    options += mount_options(host_mounts(plan, account, by_person=by_person))
    options += ["--clearenv"]
    options += [word for name, value in env.items() for word in ("--setenv", name, value)]
    return [*options, "--chdir", cwd]


@dataclass(frozen=True, slots=True)
class Seal:
    """What keeps a run from Unix sockets: options of bwrap, and the descriptors that they name."""

    options: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


@contextmanager
def sealed(*, by_person: bool) -> Iterator[Seal]:
    """Give the filter of system calls for a held run; raises RunError where none is known."""
    if by_person:
        yield Seal()
        return
    found = no_unix_sockets()
    if found is None:
        raise RunError(f"there is no filter of system calls for {platform.machine()}")
    with memory_file(found) as descriptor:
        yield Seal(("--seccomp", str(descriptor)), (descriptor,))


def _exchanged(
    before: Mapping[str, tuple[int, ...] | None], after: Mapping[str, tuple[int, ...] | None]
) -> Iterator[str]:
    changed = sorted(path for path, mark in after.items() if mark != before.get(path))
    if changed:
        yield (
            f"while it ran, {', '.join(changed)} was made or changed, which other programs of this user read "
            "or run later: look at it"
        )


def _lacking(exit_code: int, streams: Streams) -> Iterator[str]:
    said = streams.stderr.text()[0].lower()
    if exit_code != os.EX_OK and any(words in said for words in _UNPRIVILEGED):
        yield (
            "it seems to have called a program that takes rights its caller has not (sudo and its like), and "
            "a held run gives none: sayso exec --new-privileges asks for a run that does"
        )
