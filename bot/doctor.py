"""Is everything that protects you really on? Facts about this installation, each with what mends it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from adapters.runners.accounts import exchangeable_parent, running_account
from adapters.runners.bubblewrap import find_bubblewrap
from bot.check import Check, Status
from bot.config import LoadedConfig
from bot.config.elevation import senders_by_name
from bot.config.quorums import people_doubts, quorum_doubts
from bot.config.search_path import changeable_directories
from bot.config.standing import exposed_on
from bot.config.way import way_to
from bot.doctor_allowlist import outdated_entries
from bot.doctor_channels import channels
from bot.doctor_placement import sandbox_use
from bot.doctor_sandbox import attempts, host_attempts
from bot.doctor_sockets import agents, operators
from bot.home import mend_of_exchangeable, mend_of_open
from bot.mend import run_on
from bot.site import plan_of_host, survey
from bot.usable import shut_sockets
from core.config import Config, UnconfinedHost
from core.errors import RunError, SaysoError
from core.judge import Site

__all__ = ["Check", "Status", "examine", "search_path"]

_PYTHON = (3, 11)


async def examine(loaded: LoadedConfig, home: Path, socket: Path | None = None) -> list[Check]:
    """Look at the installation, then try to break out of the sandbox. `socket` is the operator's."""
    socket = socket or home / "sayso.sock"
    checks = [
        _python(),
        _state_directory(home),
        *_configuration(loaded),
        _one_user(loaded.config),
        *_root(loaded),
        await operators(socket),
        await agents(loaded.config.daemon.socket, socket, home),
        *await channels(socket),
        *await outdated_entries(socket),
        *_quorum(loaded),
        *_names(loaded),
        *search_path(loaded.config),
        *sandbox_use(loaded.config),
        *_shown_sockets(loaded.config),
        _bubblewrap(),
        _namespaces(),
    ]
    try:
        site = survey(loaded.config, home, loaded.protected_paths, socket=socket)
        checks += await _host(loaded, site)
        return [*checks, *await attempts(loaded, site)]
    except (SaysoError, OSError) as error:
        mend = "put this right, then run sayso doctor again; until then nothing runs in the sandbox"
        return [*checks, Check("sandbox", Status.FAIL, str(error), mend)]


async def _host(loaded: LoadedConfig, site: Site) -> list[Check]:
    """Say whether runs on the host are held from Sayso's own state; where they are, try to get at it."""
    if site.unheld is None:
        detail = "runs there have neither Sayso's state nor what starts programs for others (tried below)"
        return [
            Check("host runs", Status.OK, detail),
            *await host_attempts(site, plan_of_host(loaded.config, site)),
        ]
    if loaded.config.exec.unconfined_host is UnconfinedHost.ACCEPT:
        detail = (
            f"{site.unheld}; tools.exec.unconfinedHost: accept lets `full` run there unasked all the same"
        )
        return [Check("host runs", Status.FAIL, detail, "set tools.exec.unconfinedHost: ask")]
    mend = "nothing runs there without a person; " + (
        "set tools.exec.hostUser to an account without rights" if os.geteuid() == 0 else "mend what it names"
    )
    return [Check("host runs", Status.WARN, f"not held: {site.unheld}", mend)]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= _PYTHON:
        return Check("Python", Status.OK, found)
    return Check("Python", Status.FAIL, f"{found} is too old", "install Python 3.11 or newer")


def _state_directory(home: Path) -> Check:
    name = "state directory"
    if not home.is_dir():
        return Check(name, Status.WARN, f"{home} is not there yet", "sayso up makes it")
    found = home.stat()
    if found.st_uid != os.geteuid():
        detail = f"{home} belongs to uid {found.st_uid}, not to you (uid {os.geteuid()})"
        return Check(name, Status.FAIL, detail, "run Sayso as the user it belongs to, or set SAYSO_HOME")
    if stat.S_IMODE(found.st_mode) & 0o077:
        detail = f"{home} is open to other users (mode {stat.S_IMODE(found.st_mode):04o})"
        return Check(name, Status.FAIL, detail, mend_of_open(home))
    if above := exchangeable_parent(str(home.resolve())):
        detail = f"{home}: other users can change {above} and so exchange it"
        return Check(name, Status.FAIL, detail, mend_of_exchangeable(above))
    return Check(name, Status.OK, f"{home}, open to its owner alone")


def _configuration(loaded: LoadedConfig) -> Iterator[Check]:
    for path in map(Path, loaded.protected_paths):
        if not path.is_file():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if exposed := exposed_on(str(path), way_to(str(path))):
            yield Check("configuration", Status.FAIL, exposed.what, exposed.mend)
        elif mode & 0o044:
            detail = f"{path} can be read by other users (mode {mode:04o})"
            yield Check(
                "configuration", Status.WARN, detail, f"{run_on(path, 'chmod 600')}, if it holds secrets"
            )
        else:
            yield Check("configuration", Status.OK, f"{path}, mode {mode:04o}")


def _one_user(config: Config) -> Check:
    if os.geteuid() == 0:
        return Check("users", Status.OK, "agents that run as another user cannot read the state of root")
    detail = (
        "an agent that runs as this user can read Sayso's files and use the operator's token; "
        "only what it asks Sayso to run is confined"
    )
    if config.operator.local == "passphrase":
        detail = (
            "an agent that runs as this user can read and change Sayso's files; without the passphrase the "
            "operator's token is worth nothing to it, and only what it asks Sayso to run is confined"
        )
    return Check("users", Status.WARN, detail, "run the daemon as a user of its own, apart from the agents")


def _root(loaded: LoadedConfig) -> Iterator[Check]:
    if os.geteuid() != 0:
        return
    user = loaded.config.sandboxing.user
    try:
        running_account(user)
    except RunError as error:
        yield Check("root", Status.FAIL, str(error), "set sandboxing.user to an account without rights")
        return
    on_host = loaded.config.exec.host_user or "root"
    detail = (
        f"the daemon runs as root; bubblewrap is never started so, each command becomes {user} first, and "
        f"works in a directory of that account; what runs on the host runs as {on_host}"
    )
    yield Check("root", Status.WARN, detail, "run the daemon as a user of its own without rights")
    if user == "nobody":
        detail = "commands run as nobody, an account that other services may use too"
        mend = "useradd --system --no-create-home sayso-run, and set sandboxing.user to it"
        yield Check("sandbox account", Status.WARN, detail, mend)


def _quorum(loaded: LoadedConfig) -> Iterator[Check]:
    for doubt in people_doubts(loaded.config):
        yield Check("people", Status.WARN, doubt, "change it under people, then run sayso reload")
    for doubt in quorum_doubts(loaded.config):
        mend = (
            "name more people under people, with ids that approvers name too, or lower what is required; "
            "config.example.yaml explains both"
        )
        yield Check("people", Status.WARN, doubt, mend)


def search_path(config: Config) -> Iterator[Check]:
    """Check that only root can put programs where commands are looked for."""
    found = [Check("search path", Status.WARN, what, how) for what, how in changeable_directories(config)]
    closed = "only root can write to the directories in which commands are looked for"
    yield from found or [Check("search path", Status.OK, closed)]


def _names(loaded: LoadedConfig) -> Iterator[Check]:
    for path, text in senders_by_name(loaded.config):
        what = f"{path}: {text!r} trusts whoever bears that name, which others can take"
        yield Check("senders", Status.WARN, what, "write the id: sayso history and sayso show tell it")


def _shown_sockets(config: Config) -> Iterator[Check]:
    """Name the sockets that are shown to sandboxes and that these cannot use."""
    for key, text in shut_sockets(config):
        mend = "close what it names to other users, or take the socket off the list"
        yield Check("sandbox sockets", Status.WARN, f"{key}: {text}", mend)


def _bubblewrap() -> Check:
    try:
        found = find_bubblewrap()
    except RunError as error:
        mend = "install a current bubblewrap that is not setuid (on Debian: apt install bubblewrap)"
        return Check("bubblewrap", Status.FAIL, str(error), mend)
    version = ".".join(map(str, found.version))
    if found.disables_userns:
        return Check("bubblewrap", Status.OK, f"{found.path} {version}")
    detail = f"{found.path} {version} cannot forbid further namespaces"
    return Check("bubblewrap", Status.WARN, detail, "install bubblewrap 0.8 or newer")


def _namespaces() -> Check:
    """Read the switches; whether they really work is what the attempts show."""
    name = "user namespaces"
    blocked = {
        "/proc/sys/user/max_user_namespaces": "0",
        "/proc/sys/kernel/unprivileged_userns_clone": "0",
    }
    for path, off in blocked.items():
        if Path(path).exists() and Path(path).read_text().strip() == off:
            key = path.removeprefix("/proc/sys/").replace("/", ".")
            mend = f"sysctl {key}={'10000' if 'max' in key else '1'}"
            return Check(name, Status.FAIL, f"{key} is 0, so no sandbox can be made", mend)
    return Check(name, Status.OK, "the kernel's switches allow them")
