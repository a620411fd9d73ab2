"""Runs commands in a bubblewrap sandbox: own namespaces, the system read-only, one writable place."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from posixpath import dirname

from adapters.runners.accounts import Account, running_account
from adapters.runners.gate import Gate
from adapters.runners.guardian import Guardian
from adapters.runners.held_still import HeldStill
from adapters.runners.leftovers import MARKER
from adapters.runners.meeting import meeting_place, wanted_socket
from adapters.runners.mounts import Effect, Kind, Mount, Seen, mounts_for
from adapters.runners.orders import check_order, reverified
from adapters.runners.private import without_private
from adapters.runners.process import Ending, Launch, Streams, memory_file, supervise
from adapters.runners.sources import Sources
from adapters.runners.syscalls import sealed
from adapters.runners.threaded import scopes_abstract_sockets
from adapters.runners.threshold import Threshold
from adapters.runners.workspaces import made, prepare
from core.errors import RunError
from core.model.command import Placement
from core.model.plan import RunOrder, RunResult, SandboxPlan
from core.ports import OutputSink, Resolver
from core.sandbox.plan import SYSTEM, environment, visible

_MIB = 1024 * 1024
_TMP_BYTES = 512 * _MIB
_SMALL_BYTES = 64 * _MIB
_DISABLE_USERNS_SINCE = (0, 8)
_PLACES = ("/usr/local/bin/bwrap", "/usr/bin/bwrap", "/bin/bwrap")
_OLDEST = (0, 7)  # the first that can bound the size of a tmpfs


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program as found."""

    path: str
    version: tuple[int, ...]
    takes_descriptors: bool

    @property
    def disables_userns(self) -> bool:
        """Whether it can forbid the command to make user namespaces."""
        return self.version >= _DISABLE_USERNS_SINCE


def find_bubblewrap() -> Bubblewrap:
    """Find bwrap in the system directories; raises RunError that says what to install."""
    path = next((path for path in _PLACES if os.access(path, os.X_OK)), None)
    if path is None:
        raise RunError(
            "bubblewrap is not installed, and nothing runs outside a sandbox instead; "
            "install the package, on Debian: apt install bubblewrap"
        )
    status = os.stat(path)  # noqa: PTH116 - for every run
    if status.st_mode & stat.S_ISUID:
        raise RunError(
            f"{path} is setuid root, and such a bubblewrap refuses what sandboxes and held runs need; "
            f"take that away (chmod u-s {path}), or install a package without it"
        )
    found = _look_at(path, status.st_mtime_ns)
    if found.version < _OLDEST:
        version = ".".join(map(str, found.version))
        raise RunError(f"{path} is bubblewrap {version}; 0.7 or newer is needed, install a newer package")
    return found


@functools.cache
def _look_at(path: str, _changed: int) -> Bubblewrap:
    number = re.search(r"\d+(?:\.\d+)+", _said(path, "--version"))
    version = tuple(int(part) for part in number[0].split(".")) if number else (0,)
    # The version does not tell: distributions have brought this option to older ones as a security update.
    takes_descriptors = "--ro-bind-fd " in _said(path, "--help")
    return Bubblewrap(path, version, takes_descriptors)


def _said(path: str, option: str) -> str:
    try:
        said = subprocess.run([path, option], env={}, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{path} {option} does not run: {error}") from error
    return said.stdout


def arguments(
    mounts: Sequence[Mount],
    *,
    env: Mapping[str, str],
    cwd: str,
    network: bool,
    disable_userns: bool,
    links: Mapping[str, str],
    descriptors: Mapping[str, int],
) -> list[str]:
    """Write bwrap's options for a sandbox; the status descriptor and the command are added by the caller.

    `links` are made as they are on the host. What `descriptors` names is mounted by its descriptor.
    """
    options = ["--unshare-all", "--unshare-user"]
    options += ["--share-net"] if network else []
    options += ["--disable-userns"] if disable_userns else []
    options += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    options += [word for path, target in links.items() for word in ("--symlink", target, path)]
    options += [word for mount in mounts for word in _mount_options(mount, descriptors)]
    options += [word for path in _to_close(mounts) for word in ("--remount-ro", path)]
    options += ["--clearenv"]
    options += [word for name, value in env.items() for word in ("--setenv", name, value)]
    return [*options, "--chdir", cwd]


def _mount_options(mount: Mount, descriptors: Mapping[str, int]) -> list[str]:
    match mount.effect:
        case Effect.OWN:
            return _own(mount.path)
        case Effect.HIDE_DIRECTORY:
            return ["--size", str(_SMALL_BYTES), "--tmpfs", mount.path]
        case Effect.HIDE_FILE:
            return ["--ro-bind", "/dev/null", mount.path]
        case Effect.PIN | Effect.WORK:
            option = "--dev-bind-try" if mount.effect is Effect.WORK else "--dev-bind"
            return [option, mount.path, mount.path]
        case Effect.SHOW | Effect.OPEN:
            option = "--ro-bind" if mount.effect is Effect.SHOW else "--bind"
            if mount.path in descriptors:
                return [f"{option}-fd", str(descriptors[mount.path]), mount.path]
            return [option, mount.path, mount.path]


def mount_options(mounts: Sequence[Mount]) -> list[str]:
    """Write bwrap's options for mounts by path, in their order."""
    return [word for mount in mounts for word in _mount_options(mount, {})]


def _own(path: str) -> list[str]:
    match path:
        case "/dev":
            shm = "/dev/shm"  # noqa: S108 - the sandbox's own
            return ["--dev", path, "--size", str(_SMALL_BYTES), "--tmpfs", shm]
        case "/proc":
            return ["--proc", path, "--ro-bind", "/proc/sys", "/proc/sys"]
    size = _SMALL_BYTES if path == "/run" else _TMP_BYTES
    return ["--size", str(size), "--tmpfs", path]


def _to_close(mounts: Sequence[Mount]) -> list[str]:
    hidden = [mount.path for mount in mounts if mount.effect is Effect.HIDE_DIRECTORY]
    return ["/dev", *hidden, "/"]


class BubblewrapRunner:
    """A runner over bubblewrap; `workspace_root` is where Sayso makes workspaces of its own."""

    placement = Placement.SANDBOX
    name = "bubblewrap"

    def __init__(
        self, resolver: Resolver, output_dir: Path, workspace_root: str, guardian: Guardian | None = None
    ) -> None:
        self._resolver = resolver
        self._output_dir = output_dir
        self._workspace_root = workspace_root
        self._guardian = guardian or Guardian()

    def make_workspace(self, plan: SandboxPlan) -> bool:
        """Make the workspace where that is Sayso's to make and is not there; tell whether it was made now."""
        return made(plan.workspace, running_account(plan.user), self._workspace_root)

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Run the order in its sandbox; no process of it is left afterwards."""
        check_order(order)
        plan = order.bound.plan
        bwrap = find_bubblewrap()
        account = running_account(plan.user)
        root, key = self._workspace_root, order.workspace_key
        prepare(plan.workspace, account, root, key=key, write=bool(plan.writable))
        with (
            Sources.opened() as sources,
            Streams.opened(order, self._output_dir, sink) as streams,
            HeldStill.holding(order.held_still) as still,
        ):
            options = options_for(order, account, bwrap, sources)
            meeting = meeting_place(plan, account)
            with (
                _ready(bwrap, options, sources) as (before, inherit, threshold),
                sealed(sockets=meeting is None, sandbox=True) as seal,
            ):
                launch = Launch(
                    before=(*before, *seal.options),
                    argv=order.argv,
                    account=account,
                    cwd="/",
                    env={MARKER: order.request_id},
                    stdin=order.stdin,
                    meanwhile=partial(still.guard, begins=threshold.passed),
                    begins=threshold.passed,
                    inherit=(*inherit, *seal.descriptors),
                    contained=True,
                    scoped=scopes_abstract_sockets(),
                    gate=threshold if isinstance(threshold, Gate) else None,
                )
                await reverified(order, self._resolver, still)
                with self._guardian.over(order.request_id):
                    ending = await supervise(launch, streams, plan.limits.timeout_s)
        killed = still.told(begun=ending.begun)
        tell_failure(ending, streams, "the sandbox")
        wanted = () if meeting is None else tuple(wanted_socket(ending, streams, meeting))
        return streams.result(ending, killed=killed, notes=wanted)


@contextlib.contextmanager
def _ready(
    bwrap: Bubblewrap, options: Sequence[str], sources: Sources
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...], Threshold | Gate]]:
    """Give how to start bwrap, what it inherits, and what it passes: a gate where it takes no descriptors."""
    with contextlib.ExitStack() as stack:
        policy = stack.enter_context(memory_file(encoded(options)))
        before = (bwrap.path, "--args", str(policy))
        if bwrap.takes_descriptors:
            threshold = stack.enter_context(Threshold.laid())
            inherit = (policy, threshold.descriptor, *sources.descriptors)
            yield (*before, *threshold.words), inherit, threshold
            return
        # These are not inherited: nobody would close them, and a way out of the sandbox leads through each.
        gate = stack.enter_context(Gate.opened(sources))
        yield (*before, *gate.words), (policy, gate.descriptor), gate


def options_for(order: RunOrder, account: Account, bwrap: Bubblewrap, sources: Sources) -> list[str]:
    """Return bwrap's options for an order, as its account will meet the files; holds what it will show.

    Raises RunError where the order's own directory or program is not among that.
    """
    plan = without_private(order.bound.plan, account)
    _check_visible(order, plan)
    mounts = mounts_for(plan, lambda path: look(path, account))
    resolver_file = _resolver_file() if plan.network else None
    mounts = (*mounts, *([Mount(Effect.SHOW, resolver_file)] if resolver_file else []))
    shown = [mount.path for mount in mounts if mount.effect in (Effect.SHOW, Effect.OPEN)]
    held = {path: sources.hold(path).descriptor for path in shown}
    return arguments(
        mounts,
        env=environment(order.bound, account.name),
        cwd=order.bound.cwd,
        network=plan.network,
        disable_userns=bwrap.disables_userns,
        links={} if "/" in held else _links(),
        descriptors=held if bwrap.takes_descriptors else {},
    )


def _links() -> dict[str, str]:
    with os.scandir("/") as entries:
        found = {entry.path: str(Path(entry).readlink()) for entry in entries if entry.is_symlink()}
    links = {path: target for path, target in found.items() if path in SYSTEM}
    return {**links, "/var/run": "/run"}


def look(path: str, account: Account) -> Seen:
    """Look at a path as the account will meet it."""
    real = os.path.realpath(path)
    if path in SYSTEM:  # no account is kept out of these
        return Seen(Kind.DIRECTORY if Path(real).is_dir() else Kind.MISSING, real)
    barrier = account.barrier(real)
    kind = Kind.DIRECTORY if Path(real).is_dir() else Kind.FILE if Path(real).exists() else Kind.MISSING
    return Seen(kind, real, barrier)


def _resolver_file() -> str | None:
    real = os.path.realpath("/etc/resolv.conf")
    return real if real.startswith("/run/") and Path(real).exists() else None


def _check_visible(order: RunOrder, plan: SandboxPlan) -> None:
    cwd, program = order.bound.cwd, order.argv[0]
    if not visible(plan, cwd):
        raise RunError(
            f"cwd {cwd} is not visible in the sandbox; the workspace is {plan.workspace}, "
            "and sandboxing.readable shows further directories"
        )
    if program.startswith("/") and not visible(plan, os.path.realpath(program)):
        place = dirname(program)
        raise RunError(
            f"{program} is not visible in the sandbox; add {place} to sandboxing.readable to show it there"
        )


def encoded(options: Sequence[str]) -> bytes:
    """Write options as `--args` reads them."""
    return b"".join(os.fsencode(option) + b"\0" for option in options)


class SetupError(RunError):
    """What a run was to be held in could not be set up, and surely nothing of it ran."""


def tell_failure(ending: Ending, streams: Streams, what: str) -> None:
    """Raise RunError, in the words of bwrap, where it ended before it ran the command."""
    if ending.reported or ending.timed_out or ending.killed_from_outside:
        return
    said = ending.said_before or streams.stderr.text()[0]
    words = said.strip() or f"it ended with status {ending.exit_code} and said nothing"
    hint = ""
    if "namespace" in words or "uid map" in words:
        hint = (
            "; this kernel may forbid unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces)"
        )
    elif "Race condition" in words:
        hint = "; a directory that it shows was exchanged meanwhile, and nothing was run"
    kind = RunError if ending.begun else SetupError
    raise kind(f"{what} could not be set up: {words}{hint}")
