"""Tries to leave a sandbox. Runs inside of it as a program of its own, with the standard library only.

It reads from stdin where to try, and writes to stdout what came of each attempt: `refused` with the system's
words, or `reached` with what it got. It must do no harm where it succeeds, even as root and outside of any
sandbox: it opens, looks, asks for what cannot come about, and takes back what it made.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Places = dict[str, Any]
_NEW_USER_NAMESPACE = 0x10000000
_NAME = "sayso-breakout"


class Refused(Exception):  # noqa: N818 - the good outcome
    """The attempt was stopped, in words."""


def workspace(places: Places) -> str:
    """Positive control: what must work."""
    path = Path(places["workspace"], _NAME)
    path.write_text("written")
    text = path.read_text()
    path.unlink()
    return text


def etc(_: Places) -> str:
    """Write to the system's settings."""
    return _create("/etc")


def outside(places: Places) -> str:
    """Write anywhere else, even where every user of the machine may."""
    return _first(_create, places["outside"])


def state(places: Places) -> str:
    """Read the state directory."""
    return _first(_read, places["canaries"])


def configuration(places: Places) -> str:
    """Read the configuration."""
    return _first(_read, places["configuration"])


def program(places: Places) -> str:
    """Change the files that Sayso is run from."""
    return _first(_create, places["program"])


def daemon_process(places: Places) -> str:
    """Look at the state through a process outside."""
    return _first(lambda path: _read(f"/proc/{places['pid']}/root{path}"), places["canaries"])


def homes(places: Places) -> str:
    """List the homes."""
    return _first(lambda home: _list(home, places["expected"]), places["homes"])


def loopback(places: Places) -> str:
    """Reach a listener of the host."""
    with socket.create_connection(("127.0.0.1", places["port"]), timeout=2):
        return f"connected to 127.0.0.1:{places['port']}"


def route(_: Places) -> str:
    """Find a way to the outside; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return f"has a route, from {probe.getsockname()[0]}"


def abstract_socket(places: Places) -> str:
    """Reach an abstract unix socket of the host."""
    return _connect("\0" + places["abstract"])


def daemon_socket(places: Places) -> str:
    """Reach a unix socket in the state directory."""
    return _first(_connect, places["sockets"])


def see_processes(places: Places) -> str:
    """See the processes of the host."""
    if str(Path("/proc/self/ns/pid").readlink()) == places["pid_namespace"]:
        return "shares the host's process namespace"
    seen = [entry for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - names are wanted
    for pid in seen:
        with contextlib.suppress(OSError):
            if places["marker"].encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return f"sees the daemon's side as process {pid}"
    raise Refused(f"only its own {len(seen)} processes are there")


def signal_processes(places: Places) -> str:
    """Signal a process of the host; signal 0 only asks whether it could."""
    if str(Path("/proc/self/ns/pid").readlink()) != places["pid_namespace"]:
        raise Refused("process ids of the host name nothing in its namespace")
    os.kill(places["pid"], 0)
    return f"may signal process {places['pid']}"


def core_pattern(_: Places) -> str:
    """Open the kernel setting by which a crash runs a program as root."""
    with Path("/proc/sys/kernel/core_pattern").open("r+"):
        return "opened /proc/sys/kernel/core_pattern for writing"


def device(places: Places) -> str:
    """Make a device node for the first disk."""
    path = Path(places["workspace"], _NAME)
    os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(8, 0))
    path.unlink()
    return "made a node for the first disk"


def mount(_: Places) -> str:
    """Ask for a mount that cannot come about: the kernel judges the right to mount before the kind."""
    try:
        _call("mount", b"none", b"/", b"sayso-no-such-kind", 0, None)
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise
    return "has the right to mount"


def namespace(_: Places) -> str:
    """Make a user namespace, the first step of many kernel exploits."""
    _call("unshare", _NEW_USER_NAMESPACE)
    return "made a user namespace"


def terminal(_: Places) -> str:
    """Reach a terminal, into which it could type; nothing is typed."""
    for descriptor in (0, 1, 2):
        if os.isatty(descriptor):
            return f"descriptor {descriptor} is a terminal"
    with Path("/dev/tty").open("r+b", buffering=0):
        return "has a controlling terminal"


ATTEMPTS: tuple[Callable[[Places], str], ...] = (
    workspace,
    etc,
    outside,
    state,
    configuration,
    program,
    daemon_process,
    homes,
    loopback,
    route,
    abstract_socket,
    daemon_socket,
    see_processes,
    signal_processes,
    core_pattern,
    device,
    mount,
    terminal,
    namespace,
)


def main() -> None:
    """Try everything and tell what came of it."""
    signal.alarm(30)
    places = json.load(sys.stdin)
    json.dump({attempt.__name__: _outcome(attempt, places) for attempt in ATTEMPTS}, sys.stdout)


def _outcome(attempt: Callable[[Places], str], places: Places) -> tuple[str, str]:
    try:
        return "reached", attempt(places)
    except OSError as error:
        return "refused", error.strerror or str(error)
    except Refused as error:
        return "refused", str(error)


def _first(attempt: Callable[[str], str], paths: list[str]) -> str:
    """Give the first success, else the last refusal."""
    last: Exception = Refused("there is nothing to try")
    for path in paths:
        try:
            return attempt(path)
        except (OSError, Refused) as error:
            last = error
    raise last


def _create(directory: str) -> str:
    path = Path(directory, _NAME)
    path.touch(exist_ok=False)
    path.unlink()
    return f"wrote {path}"


def _read(path: str) -> str:
    data = Path(path).read_bytes()
    if not data:
        raise Refused("it is empty inside")
    return f"read {len(data)} bytes of {path}"


def _list(directory: str, expected: list[str]) -> str:
    names = {str(path) for path in Path(directory).iterdir()} - set(expected)
    if not names:
        raise Refused("it is empty inside")
    return f"saw {min(names)}"


def _connect(address: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        probe.connect(address)
        return f"connected to {address.replace(chr(0), '@')}"


def _call(name: str, *arguments: Any) -> None:  # noqa: ANN401 - what a C function takes
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


if __name__ == "__main__":
    main()
