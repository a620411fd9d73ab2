"""Unix accounts: who runs a command, whose homes are hidden, what an account can reach."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from adapters.runners.groups import members_of
from core.errors import RunError

_FIRST_PERSON = 1000
_OVERFLOW = 65534
_SETPRIV = ("/usr/bin/setpriv", "/bin/setpriv")


@dataclass(frozen=True, slots=True)
class Account:
    """A Unix account; `drop` is true where the daemon is root and must become it before it runs anything.

    `groups` are the further groups of whoever logs in so; `home` is empty where nobody knows one.
    """

    name: str
    uid: int
    gid: int
    drop: bool
    groups: tuple[int, ...] = ()
    home: str = ""

    @property
    def identity(self) -> dict[str, Any]:
        """What subprocesses are given to become this account; nothing where this process is it."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups} if self.drop else {}

    @property
    def becoming(self) -> tuple[str, ...]:
        """What is put before a command so that it becomes this account; nothing where this process is it.

        To become another by `identity`, all of this process' memory would be copied first.
        """
        if not self.drop:
            return ()
        groups = ("--groups", ",".join(map(str, self.groups))) if self.groups else ("--clear-groups",)
        return (
            _setpriv(),
            "--pdeathsig",
            "KILL",
            "--reuid",
            str(self.uid),
            "--regid",
            str(self.gid),
            *groups,
            "--",
        )

    def may(self, path: str, permission: int) -> bool:
        """Tell whether this account has `os.R_OK`, `os.W_OK` or `os.X_OK` on a path; in doubt it has."""
        if not self.drop:
            return os.access(path, permission)
        status = os.stat(path)  # noqa: PTH116 - asked for every run
        mine = status.st_gid == self.gid or status.st_gid in self.groups
        for owned, shift in ((status.st_uid == self.uid, 6), (mine, 3)):
            if owned and status.st_mode >> shift & permission == permission:
                return True
            if owned:
                return has_list(path)
        return status.st_mode & permission == permission or has_list(path)

    def may_change(self, directory: str) -> bool:
        """Tell whether this account may be able to rename what lies in a directory; a doubt counts as yes."""
        if not self.drop:
            return os.access(directory, os.W_OK)
        status = os.stat(directory)  # noqa: PTH116 - asked for each run on the host
        return status.st_uid == self.uid or bool(status.st_mode & 0o022) or has_list(directory)

    def may_put(self, path: str) -> bool:
        """Tell whether this account may be able to write a file, or put another in its place; in doubt yes.

        No directory on the way to it is a link.
        """
        way = [*map(str, reversed(Path(path).parents)), path]
        for directory, below in pairwise(way):
            if self._may_exchange(directory, below):
                return True
            if not self._may_alter(directory, os.X_OK):
                return False
        return self._may_alter(path, os.W_OK)

    def _may_exchange(self, directory: str, entry: str) -> bool:
        if not self._may_alter(directory, os.W_OK):
            return False
        try:
            above, found = os.stat(directory), os.stat(entry)  # noqa: PTH116 - as above
        except OSError:
            return True
        return not above.st_mode & stat.S_ISVTX or self.uid in (0, above.st_uid, found.st_uid)

    def _may_alter(self, path: str, permission: int) -> bool:
        """Tell whether this account has a permission on a path, or can give it to itself."""
        try:
            return os.stat(path).st_uid == self.uid or self.may(path, permission)  # noqa: PTH116 - as above
        except OSError:
            return False

    def barrier(self, path: str) -> str | None:
        """Return the first directory above a path that this account cannot pass, or None."""
        at = path.find("/", 1)
        while at > 0:
            parent = path[:at]
            if os.path.isdir(parent) and not self.may(parent, os.X_OK):  # noqa: PTH112 - asked for every run
                return parent
            at = path.find("/", at + 1)
        return None


def _setpriv() -> str:
    found = next((path for path in _SETPRIV if os.access(path, os.X_OK)), None)
    if found is None:
        raise RunError(
            "setpriv is not installed, by which a daemon of root becomes others; apt install util-linux"
        )
    return found


def running_account(user: str | None) -> Account:
    """Return who runs sandboxed commands; raises RunError where root would have to."""
    if os.geteuid() != 0:
        return Account(own_name(), os.geteuid(), os.getegid(), drop=False)
    if user is None:
        raise RunError("the daemon runs as root and no sandbox account is set; set sandboxing.user")
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise RunError(f"sandboxing.user: {_no_account(user)}") from None
    if entry.pw_uid == 0:
        raise RunError(
            f"sandboxing.user: {user!r} is root; a sandbox started by root can be left, name another account"
        )
    return Account(user, entry.pw_uid, entry.pw_gid, drop=True)


def host_account(user: str | None) -> Account:
    """Return who runs commands on the host: this process' own account, or the one that root becomes.

    Raises RunError where there is no such account, or it has the rights of root.
    """
    if os.geteuid() != 0 or user is None:
        home = os.environ.get("HOME", "") if os.geteuid() else "/root"
        return Account(
            own_name(), os.geteuid(), os.getegid(), drop=False, home=_home_of(os.geteuid()) or home
        )
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise RunError(f"tools.exec.hostUser: {_no_account(user)}") from None
    if entry.pw_uid == 0:
        raise RunError("tools.exec.hostUser: root is whom nothing holds; name an account without rights")
    groups = tuple(group for group in os.getgrouplist(user, entry.pw_gid) if group != entry.pw_gid)
    return Account(user, entry.pw_uid, entry.pw_gid, drop=True, groups=groups, home=entry.pw_dir)


def _no_account(name: str) -> str:
    if uid_for_name(name):
        return uid_for_name(name)
    return f"there is no account {name!r} on this machine; create it or name another"


def uid_for_name(text: str) -> str:
    """Say what is wrong with a uid where an account's name belongs; nothing for what is none."""
    if not (text.isascii() and text.isdecimal()) or _is_name(text):
        return ""
    try:
        return f"must be an account's name, not a uid; uid {text} is {pwd.getpwuid(int(text)).pw_name}"
    except (KeyError, OverflowError):
        return f"must be an account's name, not a uid; uid {text} has no account on this machine"


def _is_name(text: str) -> bool:
    try:
        pwd.getpwnam(text)
    except KeyError:
        return False
    return True


def _home_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return ""


def has_list(path: str) -> bool:
    """Tell whether a directory has an access list, which says more than its mode."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return False


def own_home() -> str:
    """Return the home of this process's account; of a uid without an account, what HOME says."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        home = os.environ.get("HOME", "")
        return home if home.startswith("/") else "/nonexistent"


def is_own(directory: str | Path) -> bool:
    """Tell whether a person can be told to change the mode of a directory: it serves this account alone.

    To root everything belongs, so there only what lies in its home or holds nothing yet counts.
    """
    try:
        found = Path(directory).stat()
        if found.st_uid != os.geteuid() or found.st_mode & stat.S_ISVTX:
            return False
        return (
            os.geteuid() != 0 or Path(own_home()) in Path(directory).parents or not os.listdir(directory)  # noqa: PTH208 - one look
        )
    except OSError:
        return False


def homes() -> tuple[str, ...]:
    """Return the home directories of people (and root) on this machine, as real paths."""
    return tuple(sorted({str(Path(home).resolve()) for home in _homes()} - {"/"}))


def _homes() -> Iterator[str]:
    for entry in pwd.getpwall():
        person = entry.pw_uid == 0 or (entry.pw_uid >= _FIRST_PERSON and entry.pw_uid != _OVERFLOW)
        if person and Path(entry.pw_dir).is_dir():
            yield entry.pw_dir
    yield own_home()


def own_name() -> str:
    """Return the name of this process' account, its number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def exchangeable_parent(path: str) -> str | None:
    """Return the first directory above a path that somebody else could exchange under us, or None."""
    trusted = {0, os.geteuid()}
    for parent in Path(path).parents:
        if not parent.exists():
            continue
        status = parent.lstat()
        open_to_others = others_may_write(status, parent) and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in trusted or open_to_others:
            return str(parent)
    return None


def others_may_write(status: os.stat_result, path: str | Path) -> bool:
    """Tell whether others than root and this process' user may write what is at a path.

    Many systems give each person a group of their own and make what they create writable to it.
    """
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and (has_list(str(path)) or not _is_own_group(status.st_gid))


def _is_own_group(gid: int) -> bool:
    """Tell whether nobody else is in a group; one without a name is known by this process being in it."""
    members = members_of(gid)
    return gid == os.getegid() if members is None else members <= {0, os.geteuid()}
