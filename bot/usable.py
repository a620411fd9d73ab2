"""Whether this machine has what a configuration names: told by `sayso config check` and at the start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from adapters.ingress.unix_socket import refuse_other_file
from adapters.runners.accounts import Account, host_account, running_account
from adapters.runners.meeting import is_socket, meeting_place
from adapters.runners.workspaces import check
from bot.agent_socket import look_ahead, place_of
from bot.config import LoadedConfig
from bot.site import settled
from core.config import Config
from core.errors import RunError, StartError
from core.model.plan import Limits, SandboxPlan, WorkspaceAccess


def refuse_bad_socket(loaded: LoadedConfig, home: Path) -> None:
    """Raise StartError for a place of the agents' socket that somebody named and no start could use."""
    place = place_of(loaded.config.daemon.socket, os.environ)
    if place is None or not place.configured:
        return
    try:
        look_ahead(place, home)
        refuse_other_file(place.path)
    except StartError as error:
        raise StartError(f"daemon.socket.path: {error}{_at(loaded, 'daemon.socket.path')}") from None


def warnings_of_machine(loaded: LoadedConfig) -> Iterator[str]:
    """Tell of accounts and workspaces that are not there, or that no run can use."""
    found = (*_accounts(loaded.config), *_workspaces(loaded.config), *shut_sockets(loaded.config))
    for key, text in found:
        yield f"{key}{_at(loaded, key)}: {text.removeprefix(f'{key}: ')}"


def shut_sockets(config: Config) -> Iterator[tuple[str, str]]:
    """Find the sockets that `sandboxing.readable` names and runs cannot use, with key and reason."""
    config = settled(config)
    try:
        account = running_account(config.sandboxing.user)
    except RunError:
        return
    named = [(index, path) for index, path in enumerate(config.sandboxing.readable) if is_socket(path)]
    whose = _met_by_others(config, account) if named else {}
    for index, path in named:
        for place, runs in whose.items():
            text = (
                f"{path} is a socket that {runs} cannot use: others can get to {place}, which is shared with "
                "the host, and could hand in through a socket what they can open (chmod o-rwx closes a "
                "directory to others)"
            )
            yield f"sandboxing.readable[{index}]", text


def _met_by_others(config: Config, account: Account) -> dict[str, str]:
    """Name each place where runs and others could meet at a socket, and whose runs."""
    if place := meeting_place(_shared(config), account):
        return {place: "sandboxed runs"}
    found: dict[str, str] = {}
    for name, agent in config.agents.by_id.items():
        access = agent.sandbox.workspace_access or config.sandboxing.workspace_access
        if agent.workspace is None or access is WorkspaceAccess.NONE:
            continue  # one of Sayso's own, which nobody else gets to
        if place := meeting_place(_shared(config, agent.workspace), account):
            found[place] = f"sandboxed runs of {name}"
    return found


def _shared(config: Config, *workspace: str) -> SandboxPlan:
    shown, masked = config.sandboxing.readable, config.sandboxing.masked
    network = config.sandboxing.network
    return SandboxPlan("bubblewrap", "/", workspace, shown, masked, network=network, env=(), limits=Limits())


def _at(loaded: LoadedConfig, key: str) -> str:
    where = loaded.where(key)
    return f" ({where})" if where else ""


def _accounts(config: Config) -> Iterator[tuple[str, str]]:
    if os.geteuid() != 0:
        return
    given = {"sandboxing.user": config.sandboxing.user, "tools.exec.hostUser": config.exec.host_user}
    for key, account_of in (("sandboxing.user", running_account), ("tools.exec.hostUser", host_account)):
        try:
            account_of(given[key])
        except RunError as error:
            yield key, str(error)


def _workspaces(config: Config) -> Iterator[tuple[str, str]]:
    try:
        account = running_account(config.sandboxing.user)
    except RunError:
        return
    for name, agent in config.agents.by_id.items():
        access = agent.sandbox.workspace_access or config.sandboxing.workspace_access
        if agent.workspace is None or access is WorkspaceAccess.NONE:
            continue
        try:
            check(os.path.realpath(agent.workspace), account, write=access is WorkspaceAccess.RW)
        except (RunError, OSError) as error:
            yield f"agents.{name}.workspace", str(error)
