"""The filter of system calls that keeps a run from what no namespace separates.

What comes through one undoes every mount: a descriptor of `/` from outside shows all that is outside. And no
list of sockets is complete: they are bound under names that are gone, in other network namespaces, later. So
`socket(AF_UNIX)` is refused as a whole, and so are pairs of datagram sockets, which can be connected anew.
Connected pairs of streams, pipes and TCP are as they were. What io_uring could do is not there either.

A sandbox has no keyrings either, because the kernel would give it those of the daemon, and of sockets only
those that a network namespace separates: not those to the machine's hypervisor, among others.
"""

from __future__ import annotations

import errno
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
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = (
    0,
    4,
    16,
    24,
)  # where they stand in struct seccomp_data
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


_TABLES: Final = {
    "x86_64": (
        _Calls(0xC000003E, 41, 53, 0, (248, 249, 250)),
        _Calls(0x40000003, 359, 360, 102, (286, 287, 288)),
    ),
    "aarch64": (
        _Calls(0xC00000B7, 198, 199, 0, (217, 218, 219)),
        _Calls(0x40000028, 281, 288, 0, (309, 310, 311)),
    ),
}
_IO_URING_SETUP: Final = 425  # on each


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
    refused = [(_IO_URING_SETUP, errno.ENOSYS)]
    # One call for all of them, whose arguments no filter sees.
    refused += [(calls.socketcall, errno.EACCES)] if calls.socketcall else []
    refused += [(number, errno.ENOSYS) for number in calls.keyrings] if sandbox else []
    block = [_load(_NUMBER), _jump(_AT_LEAST, _X32, otherwise=1), _refuse(errno.ENOSYS)]
    for number, error in refused:
        block += [_jump(_EQUAL, number, otherwise=1), _refuse(error)]
    block += _judged(calls.socket, _families(unix_sockets=unix_sockets, sandbox=sandbox))
    return [*block, *([] if unix_sockets else _judged(calls.socketpair, _PAIR)), _ALLOWED]


def _judged(number: int, judgement: list[bytes]) -> list[bytes]:
    return [_jump(_EQUAL, number, otherwise=len(judgement) + 1), _load(_FIRST_ARGUMENT), *judgement]


def _families(*, unix_sockets: bool, sandbox: bool) -> list[bytes]:
    """Judge the family of a socket."""
    rules = [] if unix_sockets else [_jump(_EQUAL, _UNIX, otherwise=1), _REFUSED]
    if not sandbox:
        return [*rules, _ALLOWED]
    for family in (*_SEPARATED, *((_UNIX,) if unix_sockets else ())):
        rules += [_jump(_EQUAL, family, otherwise=1), _ALLOWED]
    return [*rules, _refuse(errno.EAFNOSUPPORT)]


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, value=offset)


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

    options: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


@contextmanager
def sealed(*, sockets: bool, sandbox: bool = False) -> Iterator[Seal]:
    """Give the filter for a run; raises RunError where none is known.

    `sockets` lets it have Unix sockets. On the host there is none for such a run.
    """
    if sockets and not sandbox:
        yield Seal()
        return
    found = call_filter(unix_sockets=sockets, sandbox=sandbox)
    if found is None:
        raise RunError(f"there is no filter of system calls for {platform.machine()}")
    with memory_file(found) as descriptor:
        yield Seal(("--seccomp", str(descriptor)), (descriptor,))


_ALLOWED: Final = _instruction(_RETURN, value=_ALLOW)
_REFUSED: Final = _refuse(errno.EACCES)
_PAIR: Final = [
    _jump(_EQUAL, _UNIX, otherwise=7),
    _load(_SECOND_ARGUMENT),
    _instruction(_AND, value=_KIND),
    _jump(_EQUAL, _STREAM, otherwise=1),
    _ALLOWED,
    _jump(_EQUAL, _PACKETS, otherwise=1),
    _ALLOWED,
    _REFUSED,
    _ALLOWED,
]
