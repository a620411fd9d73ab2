"""The agents' own socket: where it lies, who can reach it, and that nobody can put another in its place."""

from __future__ import annotations

import grp
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.ingress.unix_socket import PATH_LIMIT, UnixSocketIngress
from adapters.runners.accounts import is_own, own_name
from bot.client import SERVICE_SOCKET
from bot.mend import run_on
from core.config import SocketSettings
from core.errors import StartError

log = logging.getLogger(__name__)

_NAME = Path(SERVICE_SOCKET).name
_FOLDER = Path(SERVICE_SOCKET).parent.name
_ELSEWHERE = (
    "choose a directory that is Sayso's alone, "
    f"e.g. daemon.socket.path: {SERVICE_SOCKET} or one below the home"
)
_NAME_ONE = f"name one, in a directory of the daemon's user: daemon.socket.path: {SERVICE_SOCKET}"


@dataclass(frozen=True, slots=True)
class Group:
    """Who may connect beside the daemon's user."""

    name: str
    id: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where the agents' socket belongs, links resolved; `configured` where somebody named the path."""

    path: Path
    group: Group | None
    configured: bool

    @property
    def directory(self) -> Path:
        """What only the daemon's user may change."""
        return self.path.parent


async def open_agent_socket(
    operators: UnixSocketIngress, settings: SocketSettings, home: Path, env: Mapping[str, str]
) -> UnixSocketIngress | None:
    """Open it beside the operator's; None without a place for it. Raises StartError for a configured one."""
    place = place_of(settings, env)
    if place is None:
        if settings.shared_with:
            log.warning("daemon.socket.group lets nobody in: the agents' socket has no place; %s", _NAME_ONE)
        return None
    try:
        _look_at_operators(place, operators.path)
        prepare(place, home)
        agents = operators.for_agents(place.path, group=place.group.name if place.group else None)
        await agents.open()
    except StartError as error:
        if place.configured:
            raise StartError(f"daemon.socket.path: {error}") from None
        log.warning("agents get no socket of their own: %s; or name a place: daemon.socket.path", error)
        return None
    return agents


def place_of(settings: SocketSettings, env: Mapping[str, str]) -> Place | None:
    """Tell where the socket belongs; raises StartError for a group that cannot be let in."""
    named = named_path(settings, env)
    group = _group(settings.shared_with) if settings.shared_with else None
    if named is None:
        return None
    # Bound where the links lead today: one that is changed later leads nobody from the checked directory.
    return Place(_without_links(named), group, settings.path is not None)


def named_path(settings: SocketSettings, env: Mapping[str, str]) -> Path | None:
    """Tell where the socket is looked for, links and all."""
    return Path(settings.path) if settings.path else default_path(env)


def default_path(env: Mapping[str, str]) -> Path | None:
    """Tell where a service has its runtime files, else a login; only the daemon's user's own count."""
    for given in env.get("RUNTIME_DIRECTORY", "").split(":"):
        if given.startswith("/") and Path(given).name == _FOLDER:
            return Path(given) / _NAME
    service = Path(SERVICE_SOCKET)
    if _is_ours_alone(service.parent):
        return service
    login = env.get("XDG_RUNTIME_DIR", "")
    if login.startswith("/") and _is_ours_alone(Path(login)):
        return Path(login) / _FOLDER / _NAME
    return None


def prepare(place: Place, home: Path) -> None:
    """Make the directory where it is missing, open it to the group; raises StartError if that is unsafe."""
    look_ahead(place, home)
    try:
        if not place.directory.exists():
            place.directory.mkdir(mode=0o700)
        _look_at_owner(place)
        if place.group and not _lets_pass(place.directory, place.group) and _holds_nothing_else(place):
            os.chown(place.directory, -1, place.group.id)
            place.directory.chmod(_mode(place.directory) & 0o705 | 0o010)
        _look_at_way(place)
    except OSError as error:
        raise StartError(
            f"{place.directory} cannot hold a socket: {error.strerror}; {_mend(place)}"
        ) from None


def look_ahead(place: Place, home: Path) -> None:
    """Raise StartError for what no start could use, and change nothing."""
    _look_at_path(place, home)
    try:
        if place.directory.exists():
            _look_at_owner(place)
        else:
            place.directory.parent.stat()
    except OSError as error:
        raise StartError(
            f"{place.directory} cannot hold a socket: {error.strerror}; {_mend(place)}"
        ) from None


def look_at_directory(place: Place, home: Path) -> None:
    """Check that only the daemon's user can change it and that the group gets there; raises StartError."""
    _look_at_path(place, home)
    try:
        _look_at_owner(place)
        _look_at_way(place)
    except OSError as error:
        raise StartError(
            f"{place.directory} cannot hold a socket: {error.strerror}; {_mend(place)}"
        ) from None


def _look_at_owner(place: Place) -> None:
    directory = place.directory
    found = directory.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise StartError(f"{directory} is no directory; choose another place")
    if found.st_uid != os.geteuid():
        whose = "is a directory of the system" if found.st_uid == 0 else f"belongs to uid {found.st_uid}"
        raise StartError(
            f"{directory} {whose}, and only the daemon's user (uid {os.geteuid()}) may be able to put a "
            f"socket there; {_ELSEWHERE}"
        )
    if found.st_mode & 0o022:
        mend = f"close it: {run_on(directory, 'chmod go-w')}" if is_own(directory) else _ELSEWHERE
        raise StartError(
            f"others can change {directory} (mode {_mode(directory):04o}) and put a socket of their own "
            f"there; {mend}"
        )


def _look_at_way(place: Place) -> None:
    group = place.group
    barrier = _barrier(place.directory, group) if group else None
    if group and barrier:
        through = f"let it through ({run_on(barrier, f'chgrp {group.name}', 'chmod g+x')}), or "
        raise StartError(
            f"group {group.name} cannot pass {barrier} (mode {_mode(barrier):04o}); "
            f"{through if is_own(barrier) else ''}{_ELSEWHERE}"
        )


def _look_at_path(place: Place, home: Path) -> None:
    path = place.path
    length = len(os.fsencode(path))
    if length > PATH_LIMIT:
        raise StartError(f"{path} has {length} bytes and may have {PATH_LIMIT}; choose a shorter path")
    if path.is_relative_to(os.path.realpath(home)):
        raise StartError(
            f"{path} lies in SAYSO_HOME ({home}), where no other user can reach it; choose a directory "
            f"apart from it, such as {Path(SERVICE_SOCKET).parent}"
        )
    if changeable := _exchangeable(place.directory):
        close = f"close it ({run_on(changeable, 'chmod go-w')}), or " if is_own(changeable) else ""
        raise StartError(f"others can change {changeable} and so exchange {path}; {close}{_ELSEWHERE}")


def _exchangeable(directory: Path) -> Path | None:
    """Return the first directory above that others could exchange.

    Members of the daemon's own group count as others: agents may be among them.
    """
    for above in reversed(directory.parents):
        try:
            found = above.lstat()
        except OSError:  # it is missing or closed to us: making or opening what lies below tells it
            return None
        open_to_others = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in (0, os.geteuid()) or open_to_others:
            return above
    return None


def _look_at_operators(place: Place, operators: Path) -> None:
    if place.path == _without_links(operators):
        raise StartError(f"{place.path} is the operator's socket already (up --socket); choose another")


def _group(name: str) -> Group:
    try:
        group = Group(name, grp.getgrnam(name).gr_gid)
    except KeyError:
        raise StartError(
            f"daemon.socket.group: there is no group {name!r} on this machine; make it (groupadd --system "
            f"{name}) or name another"
        ) from None
    if os.geteuid() != 0 and group.id not in (os.getegid(), *os.getgroups()):
        raise StartError(
            f"daemon.socket.group: the daemon's user {own_name()} is not in {name}, so it cannot let that "
            f"group in; add it (usermod --append --groups {name} {own_name()}) and start it anew"
        )
    return group


def _without_links(path: Path) -> Path:
    """Follow the links on the way to a socket, and none that lies in its place."""
    return Path(os.path.realpath(path.parent)) / path.name


def _is_ours_alone(directory: Path) -> bool:
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _lets_pass(directory: Path, group: Group) -> bool:
    found = directory.stat()
    return bool(found.st_mode & (stat.S_IXGRP if found.st_gid == group.id else stat.S_IXOTH))


def _holds_nothing_else(place: Place) -> bool:
    return {entry.name for entry in place.directory.iterdir()} <= {place.path.name}


def _barrier(directory: Path, group: Group) -> Path | None:
    """Return the first directory on the way that the group cannot pass, or None."""
    for above in reversed(directory.parents):
        if not above.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH):  # members may be in its group, too
            return above
    return None if _lets_pass(directory, group) else directory


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _mend(place: Place) -> str:
    """Say how the directory is made; one that is there already is left as it is."""
    if os.path.lexists(place.directory):
        return _ELSEWHERE
    group = f" -g {place.group.name}" if place.group else ""
    return f"make it: {run_on(place.directory, f'install -d -o {own_name()}{group} -m 0750')}"
