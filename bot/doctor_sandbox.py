"""Runs `bot.breakout` by the real runners and plans, and judges what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from adapters.runners.accounts import Account, host_account, running_account
from adapters.runners.bubblewrap import BubblewrapRunner
from adapters.runners.host import HostRunner
from adapters.runners.workspaces import ensure
from bot import breakout
from bot.check import Check, Status
from bot.config import LoadedConfig
from bot.site import settled
from core.approvals.binding import bind
from core.config import SandboxOverrides, Scope
from core.errors import RunError
from core.judge import Site
from core.model.command import Directory, Executable, FileIdentity, RealPath
from core.model.plan import BoundCommand, Limits, RunOrder, RunResult, SandboxPlan
from core.model.session import SessionKey
from core.ports import Runner
from core.sandbox.plan import plan_for, visible
from core.sandbox.workspace import directory_for

_SESSION = SessionKey.main("doctor")
_SECONDS = 40.0
_REAL_PREFIX = os.path.realpath(sys.base_prefix)
NAMES = {
    "workspace": "control: a command runs and can write its workspace",
    "etc": "write /etc",
    "outside": "write outside the workspace",
    "state": "read Sayso's state directory",
    "configuration": "read the configuration file",
    "program": "change the files that Sayso is run from",
    "daemon_process": "read the state through a process outside",
    "homes": "read /root and /home",
    "loopback": "reach a listener on 127.0.0.1",
    "route": "find a route to the network",
    "abstract_socket": "reach an abstract unix socket of the host",
    "daemon_socket": "reach a unix socket in the state directory",
    "see_processes": "see processes of the host",
    "signal_processes": "signal processes of the host",
    "core_pattern": "write /proc/sys/kernel/core_pattern",
    "device": "make a device node",
    "mount": "mount a file system",
    "terminal": "type into the terminal",
    "namespace": "make a new user namespace",
}
# What a held run on the host is kept from; the rest it may do, as far as its account may.
_HELD = (
    "state",
    "configuration",
    "program",
    "daemon_process",
    "daemon_socket",
    "core_pattern",
    "device",
    "mount",
)
_NETWORK = ("loopback", "route", "abstract_socket")
_CONTROL = "workspace"


class _Silence:
    def write(self, request_id: str, stream: str, data: bytes) -> None:
        """Take nothing: the result holds all that is needed."""


class _NoPrograms:
    """Attempts are bound to no program: nobody approved them, and nothing can change in between."""

    def for_one_command(self) -> Self:
        return self

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        del name, path, cwd
        return None

    def file(self, path: str) -> FileIdentity | None:
        del path
        return None

    def beginning(self, path: str, identity: FileIdentity) -> bytes | None:
        """Know none."""

    def real_path(self, path: str) -> RealPath | None:
        """Know none."""

    def real_directory(self, path: str) -> str | None:
        return path

    def directory(self, path: str) -> Directory | None:
        """Know none."""


async def attempts(loaded: LoadedConfig, site: Site) -> list[Check]:
    """Try to break out; one check for each attempt, and one that shows that anything ran at all."""
    account = running_account(site.account)
    with ExitStack() as stack:
        workspace = stack.enter_context(_workspace(site, account))
        plan = _plan(loaded, site, workspace)
        places = stack.enter_context(_places(site, plan))
        python = _python(account, partial(visible, plan))
        if not visible(plan, python):
            plan = replace(plan, readable=(*plan.readable, _REAL_PREFIX))
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=site.state_dir) as output:
            runner = BubblewrapRunner(_NoPrograms(), Path(output), site.workspace_root)
            found = await _run(runner, plan, python, places)
        left = _left_behind(places)
    return judge(found, network=plan.network, left=left)


async def host_attempts(site: Site, plan: SandboxPlan) -> list[Check]:
    """Try to reach Sayso's own state from a held run on the host, laid out as this plan says."""
    account = host_account(site.host_account)
    with ExitStack() as stack:
        workspace = stack.enter_context(_workspace(site, account))
        plan = replace(plan, workspace=workspace, limits=Limits(timeout_s=_SECONDS))
        places = stack.enter_context(_places(site, plan))
        python = _python(account, lambda _: True)
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=site.state_dir) as output:
            runner = HostRunner(_NoPrograms(), Path(output), site.workspace_root)
            found = await _run(runner, plan, python, places)
    checks = [_control(found, "host")]
    return checks + [_attempt(f"host: {NAMES[key]}", found.get(key), expected=False) for key in _HELD]


def judge(outcomes: Mapping[str, tuple[str, str]], *, network: bool, left: Sequence[str]) -> list[Check]:
    """Turn what came of each attempt into checks; an attempt that was not made is a failure."""
    checks = [_control(outcomes)]
    for key, name in NAMES.items():
        if key != _CONTROL:
            checks.append(
                _attempt(f"sandbox: {name}", outcomes.get(key), expected=network and key in _NETWORK)
            )
    if left:
        detail = f"the attempts left {', '.join(left)} on the host"
        checks.append(Check("sandbox: traces", Status.FAIL, detail, "do not run agents here; report this"))
    return checks


def _control(outcomes: Mapping[str, tuple[str, str]], where: str = "sandbox") -> Check:
    effect, words = outcomes.get(_CONTROL, ("missing", "it was not tried"))
    name = f"{where}: {NAMES[_CONTROL]}"
    if effect == "reached":
        return Check(name, Status.OK, "it did")
    return Check(name, Status.FAIL, words, "give the sandbox account a workspace that it can write to")


def _attempt(name: str, outcome: tuple[str, str] | None, *, expected: bool) -> Check:
    if outcome is None:
        return Check(name, Status.FAIL, "it was not tried", "run sayso doctor again; report this if it stays")
    effect, words = outcome
    if effect == "refused":
        return Check(name, Status.OK, f"refused: {words}")
    if expected:
        mend = "remove sandboxing.network: true, if commands need no network"
        return Check(name, Status.WARN, f"{words}; sandboxing.network allows it", mend)
    mend = "do not run agents here until this is refused; install a current kernel and bubblewrap"
    return Check(name, Status.FAIL, words, mend)


@contextmanager
def _workspace(site: Site, account: Account) -> Iterator[str]:
    path = directory_for(site.workspace_root, Scope.SESSION, _SESSION)
    ensure(path, account)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _plan(loaded: LoadedConfig, site: Site, workspace: str) -> SandboxPlan:
    plan = plan_for(
        settled(loaded.config).sandboxing,
        SandboxOverrides(),
        loaded.config.exec,
        state_dir=site.state_dir,
        protected=site.protected,
        hidden=(*site.homes, *site.workspaces),
        workspace=workspace,
        account=site.account,
        timeout_s=_SECONDS,
    )
    # Writable whatever workspaceAccess says: the control must be able to tell that something ran.
    return replace(plan, writable=(workspace,))


@contextmanager
def _places(site: Site, plan: SandboxPlan) -> Iterator[dict[str, Any]]:
    """Lay out what an escape would find: canaries, listeners, directories open to everybody."""
    state = Path(site.state_dir)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    abstract = f"sayso-doctor-{os.getpid()}"
    with ExitStack() as stack:
        hidden = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="doctor-", dir=state)))
        hidden.chmod(0o711)
        canary = hidden / "canary"
        canary.write_text("a secret of the state directory")
        canary.chmod(0o644)
        outside = [_open_directory(stack, place) for place in ("/var/tmp", site.workspace_root)]  # noqa: S108 - on purpose
        sockets = [str(path) for path in (_listen(stack, hidden / "s"), state / "sayso.sock") if path]
        _listen_at(stack, "\0" + abstract)
        yield {
            "workspace": plan.workspace,
            "outside": [*outside, "/", "/usr", "/var", "/opt", "/srv", "/dev", "/sys/fs/cgroup"],
            "canaries": [str(canary), str(state / "sayso.db"), str(state / "operator.token")],
            "program": list(site.program),
            "configuration": [path for path in site.protected if Path(path).is_file()],
            "homes": [home for home in site.homes if not visible(plan, home)],
            "expected": _on_the_way((*plan.readable, *plan.writable)),
            "port": _tcp_listener(stack),
            "abstract": abstract,
            "sockets": sockets,
            "pid_namespace": str(Path("/proc/self/ns/pid").readlink()),
            "pid": os.getpid(),
            "marker": Path("/proc/self/cmdline").read_text(),
        }


def _open_directory(stack: ExitStack, place: str) -> str:
    path = stack.enter_context(tempfile.TemporaryDirectory(prefix="sayso-doctor-", dir=place))
    Path(path).chmod(0o777)
    return path


def _listen(stack: ExitStack, path: Path) -> Path | None:
    try:
        _listen_at(stack, str(path))
    except OSError:  # the path is longer than a socket's may be; the daemon's own is tried all the same
        return None
    path.chmod(0o666)
    return path


def _listen_at(stack: ExitStack, address: str) -> None:
    listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    listener.bind(address)
    listener.listen()


def _tcp_listener(stack: ExitStack) -> int:
    listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port: int = listener.getsockname()[1]
    return port


def _on_the_way(paths: Sequence[str]) -> list[str]:
    return [str(step) for path in paths for step in (Path(path), *Path(path).parents)]


def _left_behind(places: Mapping[str, Any]) -> list[str]:
    directories = ["/etc", *places["outside"]]
    name = "sayso-breakout"
    return [str(Path(one, name)) for one in directories if Path(one, name).exists()]


async def _run(
    runner: Runner, plan: SandboxPlan, python: str, places: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
    """Make the attempts in a run by this runner; raises RunError where they did not come to their end."""
    script = await asyncio.to_thread(Path(breakout.__file__).read_text)
    stdin = json.dumps(dict(places)).encode()
    bound = BoundCommand(
        agent=_SESSION.agent,
        session=str(_SESSION),
        canonical="sayso doctor",
        cwd=plan.workspace,
        env=(),
        stdin=hashlib.sha256(stdin).hexdigest(),
        placement=runner.placement,
        plan=plan,
        executables=(),
    )
    order = RunOrder("doctor", (python, "-I", "-S", "-c", script), bound, bind(bound), stdin)
    return _outcomes(await runner.run(order, _Silence()))


def _python(account: Account, shown: Callable[[str], bool]) -> str:
    """Find a Python that the account can reach, one that is shown where it will run if there is any."""
    known = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
    found = [real for real in map(os.path.realpath, known) if Path(real).is_file()]
    reachable = [real for real in found if account.barrier(real) is None]
    if reachable:
        return next(filter(shown, reachable), reachable[0])
    raise RunError(
        f"no Python that the account {account.name} can reach, so the sandbox cannot be tried; "
        "install one in the system, on Debian: apt install python3"
    )


def _outcomes(result: RunResult) -> dict[str, tuple[str, str]]:
    try:
        said = json.loads(result.stdout)
        return {key: (effect, words) for key, (effect, words) in said.items()}
    except ValueError as error:
        words = (result.stderr or result.stdout).strip()[-400:] or f"status {result.exit_code}"
        raise RunError(f"the attempts did not run to their end: {words}") from error
