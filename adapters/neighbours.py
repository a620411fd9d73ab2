"""Tells whether a TCP connection comes from a process that Sayso holds, or from one beside the daemon."""

from __future__ import annotations

import os
from collections.abc import Collection

from adapters.tcp_ends import Address, is_own, owner_of
from adapters.user_namespaces import lives_apart

_ROUNDS = 8
_APART = (
    "Refused: this comes from a process in another user namespace than Sayso's. Sandboxes and runs that "
    "Sayso holds have one of their own; so have browsers from Flatpak and in containers. "
)
_UNKNOWN = (
    "Refused: which process this comes from cannot be found out, so it could be a run that Sayso holds. What "
    "ssh forwards for the account of Sayso's runs cannot be told from one while there are such. "
)
_CLOSED = (
    "Refused: this comes from an address of this machine, and no open socket here is its other end: it was "
    "closed, or address translation on this machine changed it. "
)
_NEXT = (
    "Open the page in a browser that runs beside Sayso, or as another user than its runs, or answer with "
    "`sayso approve` and `sayso deny` on this machine."
)


class Neighbours:
    """Knows as which users held runs may come: others on this machine, and other machines, are let be."""

    def __init__(self, run_users: Collection[int]) -> None:
        self._run_users = run_users

    def refusal_of(self, theirs: Address, ours: Address) -> str | None:
        """Say why a caller cannot be the operator; None where it lives beside the daemon or elsewhere."""
        owner = owner_of(theirs, ours)
        if owner is None or not owner.inode:
            return _CLOSED + _NEXT if is_own(theirs[0]) else None
        if owner.uid not in self._run_users:
            return None
        link = f"socket:[{owner.inode}]"
        beside, apart = self._processes()
        if any(_holds(pid, link, every_thread=True) for pid in apart):
            return _APART + _NEXT
        closed = False
        for pid in sorted(beside, reverse=True):
            holds = _holds(pid, link, every_thread=False)
            if holds:
                return None
            closed |= holds is None
        # What keeps its descriptors closed to the daemon (as sshd does) may hold it. It is believed to where
        # nothing lives that could hide it: in flight between sockets of its own it would be in no process.
        # Twice, because numbers of processes begin anew; and still open, for who had it could have ended.
        if closed and not apart and not self._processes()[1] and owner_of(theirs, ours) == owner:
            return None
        return _UNKNOWN + _NEXT

    def _processes(self) -> tuple[list[int], list[int]]:
        """List what these users have beside the daemon, and apart from it or gone before it was seen.

        All of these users: a socket can be held by others than who made it.
        """
        beside: list[int] = []
        apart: list[int] = []
        gone: list[int] = []
        seen: set[int] = set()
        for _ in range(_ROUNDS):  # what was gone may have left others
            new = {int(name) for name in os.listdir("/proc") if name.isdecimal()} - seen  # noqa: PTH208 - names
            seen |= new
            owners = {pid: _owner(pid) for pid in new}
            for pid in (pid for pid in new if owners[pid] in self._run_users):
                (beside if lives_apart(pid) is False else apart).append(pid)
            if not (gone := [pid for pid in new if owners[pid] is None]):
                break
        return beside, apart + gone


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - asked for every process
    except OSError:
        return None


def _holds(pid: int, link: str, *, every_thread: bool) -> bool | None:
    """Tell whether a process has a socket open; None where it lets nobody see.

    Threads can have descriptors of their own, and of a first thread that has ended none can be seen.
    """
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int)  # noqa: PTH208 - as above
    except PermissionError:
        return None
    except OSError:  # it has ended
        return False
    seen: bool | None = None
    for thread in threads:
        links = _links(f"/proc/{pid}/task/{thread}/fd")
        if links is None:
            continue
        if link in links:
            return True
        seen = False
        if links and not every_thread:
            break
    return seen


def _links(directory: str) -> list[str] | None:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return None
    except OSError:  # this thread has ended
        return []
    try:
        names = os.listdir(descriptor)  # noqa: PTH208 - as above
        return [link for name in names if (link := _link(name, descriptor))]
    except OSError:  # it has ended meanwhile
        return []
    finally:
        os.close(descriptor)


def _link(name: str, directory: int) -> str:
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:  # closed meanwhile
        return ""
