"""The filter of system calls that keeps a run from what no namespace separates.

What comes through one undoes every mount: a descriptor of `/` from outside shows all that is outside. And no
list of sockets is complete: they are bound under names that are gone, in other network namespaces, later. So
`socket(AF_UNIX)` is refused as a whole, and so are pairs of datagram sockets, which can be connected anew.
Connected pairs of streams, pipes and TCP are as they were. What io_uring could do is not there either.

No run makes a file setuid, or setgid for those who may execute it: whoever gets to that would be the run's
account, with all that this may read outside of the run. So a setgid directory can only be inherited.

A sandbox has no keyrings either, because the kernel would give it those of the daemon, and of sockets only
those that a network namespace separates: not those to the machine's hypervisor, among others.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from adapters.runners.process import memory_file
from core.errors import RunError

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # of classic BPF, on whole words
_INSTRUCTION: Final = struct.Struct("HBBI")
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where they stand in struct seccomp_data
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_UNIX: Final = 1
_KIND: Final = 0xF  # of a socket's type, without its flags
_STREAM, _PACKETS = 1, 5
_X32: Final = 0x40000000  # numbers from here on are those of another way to call the same kernel
_SEPARATED: Final = (2, 10, 16)  # the internet's two families, and netlink: what a network namespace has


class _Calls(NamedTuple):
    """The numbers of calls on one architecture; 0 where there is none of the name."""

    architecture: int
    socket: int
    socketpair: int
    socketcall: int
    keyrings: tuple[int, int, int]
    modes: tuple[tuple[int, int], ...]  # each with the place of the mode among its arguments
    opens: tuple[tuple[int, int], ...]  # each with the place of its flags, behind which its mode stands


_TABLES: Final = {
    "x86_64": (
        _Calls(
            *(0xC000003E, 41, 53, 0, (248, 249, 250)),
            modes=((90, 1), (91, 1), (268, 2), (85, 1), (133, 1), (259, 2)),
            opens=((2, 1), (257, 2)),
        ),
        _Calls(
            *(0x40000003, 359, 360, 102, (286, 287, 288)),
            modes=((15, 1), (94, 1), (306, 2), (8, 1), (14, 1), (297, 2)),
            opens=((5, 1), (295, 2)),
        ),
    ),
    "aarch64": (
        _Calls(
            *(0xC00000B7, 198, 199, 0, (217, 218, 219)),
            modes=((52, 1), (53, 2), (33, 2)),
            opens=((56, 2),),
        ),
        _Calls(
            *(0x40000028, 281, 288, 0, (309, 310, 311)),
            modes=((15, 1), (94, 1), (333, 2), (8, 1), (14, 1), (324, 2)),
            opens=((5, 1), (322, 2)),
        ),
    ),
}
_IO_URING_SETUP, _OPENAT2, _FCHMODAT2 = 425, 437, 452  # on each
_MAKES: Final = os.O_CREAT | 0o20000000  # __O_TMPFILE, which is the same on each
_SETUID, _SETGID, _GROUP_EXECUTES = 0o4000, 0o2000, 0o0010


@cache
def call_filter(*, unix_sockets: bool, sandbox: bool) -> bytes | None:
    """Return the filter as bwrap's `--seccomp` reads it; None for a machine whose calls are not known."""
    tables = _TABLES.get(platform.machine())
    if tables is None:
        return None
    program: list[bytes] = [_load(_ARCHITECTURE)]
    for calls in tables:
        block = _block(calls, unix_sockets=unix_sockets, sandbox=sandbox)
        program += [_jump(_EQUAL, calls.architecture, otherwise=len(block)), *block]
    return b"".join((*program, _refuse(errno.ENOSYS)))


def _block(calls: _Calls, *, unix_sockets: bool, sandbox: bool) -> list[bytes]:
    """Judge a call of one architecture."""
    refused = [(_IO_URING_SETUP, errno.ENOSYS), (_OPENAT2, errno.ENOSYS)]
    # One call for all of them, whose arguments no filter sees.
    refused += [(calls.socketcall, errno.EACCES)] if calls.socketcall else []
    refused += [(number, errno.ENOSYS) for number in calls.keyrings] if sandbox else []
    block = [_load(_NUMBER), _jump(_AT_LEAST, _X32, otherwise=1), _refuse(errno.ENOSYS)]
    for number, error in refused:
        block += [_jump(_EQUAL, number, otherwise=1), _refuse(error)]
    block += _judged(calls.socket, _families(unix_sockets=unix_sockets, sandbox=sandbox))
    block += [] if unix_sockets else _judged(calls.socketpair, _PAIR)
    for number, place in (*calls.modes, (_FCHMODAT2, 2)):
        block += _judged(number, _mode(place))
    for number, place in calls.opens:
        block += _judged(
            number, [_load_argument(place), _instruction(_AND, value=_MAKES), *_ZERO, *_mode(place + 1)]
        )
    return [*block, _ALLOWED]


def _judged(number: int, judgement: list[bytes]) -> list[bytes]:
    return [_jump(_EQUAL, number, otherwise=len(judgement)), *judgement]


def _mode(place: int) -> list[bytes]:
    """Judge the mode that a file is given."""
    effective = _SETGID | _GROUP_EXECUTES
    return [
        _load_argument(place),
        _instruction(_AND, value=_SETUID | effective),
        _jump(_EQUAL, effective, otherwise=1),
        _refuse(errno.EPERM),
        _instruction(_AND, value=_SETUID),
        *_ZERO,
        _refuse(errno.EPERM),
    ]


def _families(*, unix_sockets: bool, sandbox: bool) -> list[bytes]:
    """Judge the family of a socket."""
    rules = [_load_argument(0)]
    rules += [] if unix_sockets else [_jump(_EQUAL, _UNIX, otherwise=1), _REFUSED]
    if not sandbox:
        return [*rules, _ALLOWED]
    for family in (*_SEPARATED, *((_UNIX,) if unix_sockets else ())):
        rules += [_jump(_EQUAL, family, otherwise=1), _ALLOWED]
    return [*rules, _refuse(errno.EAFNOSUPPORT)]


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, value=offset)


def _load_argument(place: int) -> bytes:
    """Load the lower half of an argument, which is all of what is looked at here."""
    return _load(_ARGUMENTS + 8 * place)


def _jump(code: int, value: int, *, otherwise: int) -> bytes:
    """Go on where it holds, and `otherwise` so many instructions further."""
    return _instruction(code, value=value, no=otherwise)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, value=_ERROR | error)


def _instruction(code: int, *, value: int, no: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, 0, no, value)


@dataclass(frozen=True, slots=True)
class Seal:
    """What a filter takes: options of bwrap, and the descriptors that they name."""

    options: tuple[str, ...]
    descriptors: tuple[int, ...]


@contextmanager
def sealed(*, sockets: bool, sandbox: bool = False) -> Iterator[Seal]:
    """Give the filter for a run; raises RunError where none is known.

    `sockets` lets it have Unix sockets.
    """
    found = call_filter(unix_sockets=sockets, sandbox=sandbox)
    if found is None:
        raise RunError(f"there is no filter of system calls for {platform.machine()}")
    with memory_file(found) as descriptor:
        yield Seal(("--seccomp", str(descriptor)), (descriptor,))


_ALLOWED: Final = _instruction(_RETURN, value=_ALLOW)
_REFUSED: Final = _refuse(errno.EACCES)
_ZERO: Final = [_jump(_EQUAL, 0, otherwise=1), _ALLOWED]
_PAIR: Final = [
    _load_argument(0),
    _jump(_EQUAL, _UNIX, otherwise=7),
    _load_argument(1),
    _instruction(_AND, value=_KIND),
    _jump(_EQUAL, _STREAM, otherwise=1),
    _ALLOWED,
    _jump(_EQUAL, _PACKETS, otherwise=1),
    _ALLOWED,
    _REFUSED,
    _ALLOWED,
]
