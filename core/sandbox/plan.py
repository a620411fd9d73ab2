"""What policy makes of a run: mounts, network, environment, limits. Pure: no file is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from posixpath import normpath

from core.config import ExecSettings, SandboxOverrides, SandboxSettings
from core.errors import ConfigError
from core.model.plan import BoundCommand, Limits, SandboxPlan, WorkspaceAccess
from core.sandbox.workspace import SYSTEM_ROOT

SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# What ordinary programs need of the host, and all that a sandbox shows of it unasked. Data, services and
# their sockets lie elsewhere; of /var only what programs of the system look up there.
SYSTEM = (
    *("/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/sys", "/usr"),
    *(
        "/gnu/store",
        "/nix/store",
        "/var/cache/fontconfig",
        "/var/lib/alternatives",
        "/var/lib/ca-certificates",
    ),
    *("/var/lib/dpkg", "/var/lib/ghostscript", "/var/lib/pacman", "/var/lib/rpm", "/var/lib/texmf"),
)
# Each sandbox has its own of these, so what the host has there is never visible.
PRIVATE = ("/dev", "/proc", "/run", "/tmp", "/var/tmp")  # noqa: S108 - the sandbox's own, made empty for it
_ALWAYS_MASKED = ("/root", "/home", SYSTEM_ROOT)


def plan_for(
    settings: SandboxSettings,
    overrides: SandboxOverrides,
    exec_settings: ExecSettings,
    *,
    state_dir: str,
    protected: Sequence[str],
    hidden: Sequence[str],
    workspace: str,
    account: str | None,
    timeout_s: float | None,
) -> SandboxPlan:
    """Lay out a run in the sandbox; raises ConfigError for a path that would show Sayso's own state.

    `hidden` are homes and the workspaces of all agents: of these a run sees its own workspace alone.
    """
    own = _paths((state_dir, *protected))
    readable = _paths(settings.readable)
    _refuse_own_state(readable, own)
    access = overrides.workspace_access or settings.workspace_access
    read_only = access is WorkspaceAccess.RO
    shown = {workspace, *readable}
    # An operator who names a home or a workspace as readable means it; Sayso's own state is never meant.
    unless_meant = [path for path in _paths((*_ALWAYS_MASKED, *hidden)) if path not in shown]
    masked = {*own, *unless_meant, *_paths(settings.masked)} - {"/"}
    return SandboxPlan(
        backend=(overrides.backend or settings.backend).value,
        workspace=workspace,
        writable=() if read_only else (workspace,),
        readable=tuple(sorted({*readable, workspace} if read_only else readable)),
        masked=tuple(sorted(masked)),
        network=settings.network,
        env=_base_environment(exec_settings, workspace, account),
        limits=_limits(exec_settings, timeout_s),
        user=account,
    )


def host_plan(
    exec_settings: ExecSettings,
    *,
    own: Sequence[str],
    program: Sequence[str],
    shown: Sequence[str] = (),
    workspace: str,
    account: str | None,
    unheld: str | None,
    timeout_s: float | None,
) -> SandboxPlan:
    """Lay out a run on the host: all is there but what is Sayso's `own`, and its `program` cannot be changed.

    `shown` can be read, wherever it lies.
    `unheld` says why none of this can be had, so that the run has all that its account has.
    """
    return SandboxPlan(
        backend="host",
        workspace=workspace,
        writable=("/",),
        readable=() if unheld else tuple(sorted(_paths(shown))),
        masked=() if unheld else tuple(sorted(_paths(own))),
        read_only=() if unheld else tuple(sorted(_paths(program))),
        sockets=() if unheld else tuple(sorted(_paths(exec_settings.host_sockets))),
        network=True,
        env=_base_environment(exec_settings, workspace, account),
        limits=_limits(exec_settings, timeout_s),
        user=account,
        unheld=unheld,
    )


def _limits(settings: ExecSettings, timeout_s: float | None) -> Limits:
    longest = settings.timeout_seconds
    return Limits(timeout_s=float(min(timeout_s or longest, longest)), output_bytes=settings.max_output_bytes)


def digest(plan: SandboxPlan) -> str:
    """Return what tells this plan from every other."""
    text = json.dumps(asdict(plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def visible(plan: SandboxPlan, path: str) -> bool:
    """Tell whether the sandbox shows what the host has at this path; the nearest rule above it decides."""
    path = normpath(path)
    shown = dict.fromkeys((*plan.readable, *plan.writable), True)
    built_in = {"/": False} | dict.fromkeys(SYSTEM, True) | dict.fromkeys(PRIVATE, False)
    rules = built_in | shown | dict.fromkeys(plan.masked, False)
    above = [rule for rule in rules if _within(path, rule)]
    return path == "/" or (path.startswith("/") and rules[max(above, key=len)])


def environment(bound: BoundCommand, user: str) -> Mapping[str, str]:
    """Return the whole environment of a run: the plan's, what the agent added, what it may not choose."""
    names = {"USER": user, "LOGNAME": user}
    return {**names, **dict(bound.plan.env), **dict(bound.env), "SAYSO_SESSION": bound.session}


def _base_environment(
    settings: ExecSettings, workspace: str, account: str | None
) -> tuple[tuple[str, str], ...]:
    names = {"USER": account, "LOGNAME": account} if account else {}
    base = {
        "PATH": ":".join((*settings.path_prepend, *SYSTEM_PATH)),
        "HOME": workspace,
        **names,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    }
    return tuple(base.items())


def _paths(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(normpath(path) for path in paths)


def _within(path: str, directory: str) -> bool:
    return directory in ("/", path) or path.startswith(f"{directory}/")


def _refuse_own_state(readable: Iterable[str], own: Sequence[str]) -> None:
    for path in readable:
        for secret in own:
            if _within(path, secret):
                raise ConfigError(
                    f"sandboxing.readable: {path} lies in {secret}, which belongs to Sayso itself and is "
                    "never shown to a sandbox; remove it from the list"
                )
