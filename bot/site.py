"""What is true of this machine, found out at start and at each reload."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from adapters.runners.accounts import host_account, own_home, own_name, running_account
from adapters.runners.guardian import UNGUARDED, Guardian
from adapters.runners.host_trial import why_not_held
from bot.agent_socket import named_path, place_of
from bot.apart import Sockets, refuse_entangled
from core.config import Config
from core.errors import ConfigError, RunError, StartError
from core.judge import Site
from core.model.plan import SandboxPlan
from core.sandbox.plan import host_plan
from core.sandbox.workspace import default_root

_PACKAGES = Path(__file__).parent.parent
_SYSTEM = frozenset(("/", "/usr"))  # of root alone, and too much to be closed to others


def survey(
    config: Config,
    home: Path,
    protected: Sequence[str],
    *,
    socket: Path | None = None,
    guardian: Guardian = UNGUARDED,
) -> Site:
    """Find the homes to mask, the accounts that run commands, where workspaces lie, and what is held.

    `socket` is the operator's; the guardian is told of what is tried. Raises ConfigError for a workspace that
    holds, or lies in, what no command may touch or another works in.
    """
    is_root = os.geteuid() == 0
    state_dir = os.path.realpath(home)
    mine = os.path.realpath(own_home())
    homes = {"/home", "/root", mine} - {"/", "/nonexistent"}
    root = config.sandboxing.workspace_root or default_root(state_dir, is_root=is_root)
    named = named_path(config.daemon.socket, os.environ)
    sockets = Sockets(str(named) if named else None, str(socket) if socket else None)
    refuse_entangled(config, str(home), root, protected, sockets)
    _not_opened(config, (state_dir, *protected))
    workspace_root = os.path.realpath(root)
    found = Site(
        state_dir=state_dir,
        workspace_root=workspace_root,
        homes=tuple(sorted(path for path in homes if Path(path).is_dir())),
        home=mine,
        protected=(*(() if str(home) == state_dir else (str(home),)), *protected),
        account=config.sandboxing.user if is_root else None,
        host_account=config.exec.host_user if is_root else None,
        own_account=own_name(),
        program=program_files(),
        shown=_agent_sockets(config),
        workspaces=tuple(dict.fromkeys((workspace_root, *_workspaces(settled(config)).values()))),
    )
    return replace(found, unheld=_tried(plan_of_host(config, found), guardian))


def run_users(config: Config) -> Iterator[int]:
    """Give as which users runs are that something holds; nothing holds root."""
    for account_of, name in (
        (running_account, config.sandboxing.user),
        (host_account, config.exec.host_user),
    ):
        with suppress(RunError):  # said elsewhere, and nothing runs so
            if uid := account_of(name).uid:
                yield uid


def look_anew() -> None:
    """Forget what was found out about runs on the host, so that it is tried again."""
    _tried.cache_clear()


def program_files() -> tuple[str, ...]:
    """List the directories that Sayso is run from: its packages, its environment, and the Python of that."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    found = (
        str(_PACKAGES),
        sys.prefix,
        sys.base_prefix,
        *site.getsitepackages(),
        *user,
        *filter(None, given),
    )
    real = {os.path.realpath(path) for path in found if os.path.exists(path)}  # noqa: PTH110 - or unreachable
    own = [path for path in real if path not in _SYSTEM and not path.startswith("/usr/lib/")]
    return tuple(sorted(path for path in own if not any(_is_above(other, path) for other in own)))


def _agent_sockets(config: Config) -> tuple[str, ...]:
    """Give the directory of the agents' own socket, which a run may connect to and not change."""
    try:
        place = place_of(config.daemon.socket, os.environ)
    except StartError as error:
        raise ConfigError(str(error)) from None
    return () if place is None else (str(place.directory),)


def _is_above(directory: str, path: str) -> bool:
    return path != directory and path.startswith(f"{directory.rstrip('/')}/")


def plan_of_host(config: Config, found: Site, unheld: str | None = None) -> SandboxPlan:
    """Lay out a run on the host that belongs to no session."""
    return host_plan(
        config.exec,
        own=(found.state_dir, *found.protected),
        program=found.program,
        shown=found.shown,
        workspace="/",
        account=found.host_account,
        unheld=unheld,
        timeout_s=None,
    )


@lru_cache(maxsize=64)
def _tried(plan: SandboxPlan, guardian: Guardian) -> str | None:
    try:
        return why_not_held(plan, guardian)
    except RunError as error:
        raise ConfigError(str(error)) from None


def _not_opened(config: Config, own: Sequence[str]) -> None:
    for path in config.exec.host_sockets:
        real = os.path.realpath(path)
        for place in own:
            if real == place or _is_above(place, real) or _is_above(real, place):
                raise ConfigError(
                    f"tools.exec.hostSockets: {path} and Sayso's own {place} lie in one another, and no "
                    "command may reach that; take it off the list"
                )


def settled(config: Config) -> Config:
    """Resolve the links in the operator's own paths of sandboxes, once: those made later are not followed."""
    sandboxing = config.sandboxing
    real = {
        "workspace_root": sandboxing.workspace_root and os.path.realpath(sandboxing.workspace_root),
        "readable": tuple(map(os.path.realpath, sandboxing.readable)),
        "masked": tuple(map(os.path.realpath, sandboxing.masked)),
    }
    agents = dict(config.agents.by_id)
    for name, path in _workspaces(config).items():
        agents[name] = agents[name].model_copy(update={"workspace": os.path.realpath(path)})
    return config.model_copy(
        update={
            "sandboxing": sandboxing.model_copy(update=real),
            "agents": config.agents.model_copy(update={"by_id": agents}),
        }
    )


def _workspaces(config: Config) -> Mapping[str, str]:
    named = {name: agent.workspace for name, agent in config.agents.by_id.items()}
    return {name: path for name, path in named.items() if path is not None}
