"""Runs commands in a bubblewrap sandbox: namespaces of their own, a read-only root, one writable place."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname

from adapters.runners.accounts import Account, running_account
from adapters.runners.mounts import Effect, Kind, Mount, Seen, mounts_for
from adapters.runners.orders import check_order
from adapters.runners.process import Ending, Launch, Streams, memory_file, supervise
from adapters.runners.workspaces import prepare
from core.approvals.binding import reverify
from core.errors import RunError
from core.model.command import Placement
from core.model.plan import RunOrder, RunResult
from core.ports import OutputSink, Resolver
from core.sandbox.plan import environment, visible

_MIB = 1024 * 1024
_TMP_BYTES = 512 * _MIB
_SMALL_BYTES = 64 * _MIB
_DISABLE_USERNS_SINCE = (0, 8)
_OLDEST = (0, 7)  # the first that can bound the size of a tmpfs


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program as found; a setuid one cannot forbid further user namespaces."""

    path: str
    version: tuple[int, ...]
    setuid: bool

    @property
    def disables_userns(self) -> bool:
        """Whether it can forbid the command to make user namespaces."""
        return self.version >= _DISABLE_USERNS_SINCE and not self.setuid


def find_bubblewrap() -> Bubblewrap:
    """Find bwrap in the system directories; raises RunError that says what to install."""
    path = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if path is None:
        raise RunError(
            "bubblewrap is not installed, and nothing runs outside a sandbox instead; "
            "install the package, on Debian: apt install bubblewrap"
        )
    found = _look_at(path, Path(path).stat().st_mtime_ns)
    if found.version < _OLDEST:
        version = ".".join(map(str, found.version))
        raise RunError(f"{path} is bubblewrap {version}; 0.7 or newer is needed, install a newer package")
    return found


@functools.cache
def _look_at(path: str, _changed: int) -> Bubblewrap:
    try:
        said = subprocess.run(
            [path, "--version"], env={}, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{path} --version does not run: {error}") from error
    number = re.search(r"\d+(?:\.\d+)+", said.stdout)
    version = tuple(int(part) for part in number[0].split(".")) if number else (0,)
    return Bubblewrap(path, version, bool(Path(path).stat().st_mode & 0o4000))


def arguments(
    mounts: Sequence[Mount],
    *,
    env: Mapping[str, str],
    cwd: str,
    network: bool,
    disable_userns: bool,
    resolver_file: str | None = None,
) -> list[str]:
    """Write bwrap's options for a sandbox; the status descriptor and the command are added by the caller."""
    options = ["--unshare-all", "--unshare-user"]
    options += ["--share-net"] if network else []
    options += ["--disable-userns"] if disable_userns else []
    options += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    options += ["--ro-bind", "/", "/", *_private_places(), *mount_options(mounts)]
    if network and resolver_file:
        options += ["--ro-bind", resolver_file, resolver_file]
    options += [word for path in _to_close(mounts) for word in ("--remount-ro", path)]
    options += ["--clearenv"]
    options += [word for name, value in env.items() for word in ("--setenv", name, value)]
    return [*options, "--chdir", cwd]


def _private_places() -> list[str]:
    sized = {"/tmp": _TMP_BYTES, "/var/tmp": _TMP_BYTES, "/run": _SMALL_BYTES}  # noqa: S108 - the sandbox's own
    options = [word for path, size in sized.items() for word in ("--size", str(size), "--tmpfs", path)]
    options += ["--dev", "/dev", "--size", str(_SMALL_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - as above
    options += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    return options


def mount_options(mounts: Sequence[Mount]) -> list[str]:
    """Write bwrap's options for mounts, in their order."""
    options: list[str] = []
    for mount in mounts:
        match mount.effect:
            case Effect.HIDE_DIRECTORY:
                options += ["--size", str(_SMALL_BYTES), "--tmpfs", mount.path]
            case Effect.HIDE_FILE:
                options += ["--ro-bind", "/dev/null", mount.path]
            case Effect.SHOW:
                options += ["--ro-bind", mount.path, mount.path]
            case Effect.OPEN:
                options += ["--bind", mount.path, mount.path]
            case Effect.PIN:
                options += ["--dev-bind", mount.path, mount.path]
    return options


def _to_close(mounts: Sequence[Mount]) -> list[str]:
    hidden = [mount.path for mount in mounts if mount.effect is Effect.HIDE_DIRECTORY]
    return ["/dev", *hidden]


class BubblewrapRunner:
    """A runner over bubblewrap; `workspace_root` is where Sayso makes workspaces of its own."""

    placement = Placement.SANDBOX
    name = "bubblewrap"

    def __init__(self, resolver: Resolver, output_dir: Path, workspace_root: str) -> None:
        self._resolver = resolver
        self._output_dir = output_dir
        self._workspace_root = workspace_root

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Run the order in its sandbox; no process of it is left afterwards."""
        check_order(order)
        plan = order.bound.plan
        bwrap = find_bubblewrap()
        account = running_account(plan.user)
        prepare(plan.workspace, account, self._workspace_root, write=bool(plan.writable))
        _check_visible(order)
        options = memory_file(encoded(options_for(order, account, bwrap)))
        with options as descriptor, Streams.opened(order, self._output_dir, sink) as streams:
            launch = Launch(
                before=(bwrap.path, "--args", str(descriptor)),
                argv=order.argv,
                account=account,
                cwd="/",
                env={},
                stdin=order.stdin,
                inherit=(descriptor,),
                contained=True,
            )
            await asyncio.to_thread(reverify, order, self._resolver)  # it reads files of any size
            ending = await supervise(launch, streams, plan.limits.timeout_s)
        tell_failure(ending, streams, "the sandbox")
        return streams.result(ending)


def options_for(order: RunOrder, account: Account, bwrap: Bubblewrap) -> list[str]:
    """Return bwrap's options for an order, as its account will meet the files."""
    plan = order.bound.plan
    return arguments(
        mounts_for(plan, lambda path: look(path, account)),
        env=environment(order.bound, account.name),
        cwd=order.bound.cwd,
        network=plan.network,
        disable_userns=bwrap.disables_userns,
        resolver_file=_resolver_file() if plan.network else None,
    )


def look(path: str, account: Account) -> Seen:
    """Look at a path as the account will meet it."""
    real = os.path.realpath(path)
    barrier = account.barrier(real)
    kind = Kind.DIRECTORY if Path(real).is_dir() else Kind.FILE if Path(real).exists() else Kind.MISSING
    return Seen(kind, real, barrier)


def _resolver_file() -> str | None:
    real = os.path.realpath("/etc/resolv.conf")
    return real if real.startswith("/run/") and Path(real).exists() else None


def _check_visible(order: RunOrder) -> None:
    plan, cwd, program = order.bound.plan, order.bound.cwd, order.argv[0]
    if not visible(plan, cwd):
        raise RunError(f"cwd {cwd} is not visible in the sandbox; the workspace is {plan.workspace}")
    if program.startswith("/") and not visible(plan, os.path.realpath(program)):
        place = dirname(program)
        raise RunError(
            f"{program} is not visible in the sandbox; add {place} to sandboxing.readable to show it there"
        )


def encoded(options: Sequence[str]) -> bytes:
    """Write options as `--args` reads them."""
    return b"".join(os.fsencode(option) + b"\0" for option in options)


def tell_failure(ending: Ending, streams: Streams, what: str) -> None:
    """Raise RunError, in the words of bwrap, where it ended before it ran the command."""
    if ending.reported or ending.timed_out or ending.killed_from_outside:
        return
    words = streams.stderr.text()[0].strip() or f"it ended with status {ending.exit_code} and said nothing"
    hint = ""
    if "namespace" in words or "uid map" in words:
        hint = (
            "; this kernel may forbid unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces)"
        )
    raise RunError(f"{what} could not be set up: {words}{hint}")
