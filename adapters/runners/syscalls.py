"""The filter of system calls that keeps a run from Unix sockets that lead out of it.

What comes through one undoes every mount: a descriptor of `/` from outside shows all that is outside. And no
list of sockets is complete: they are bound under names that are gone, in other network namespaces, later. So
`socket(AF_UNIX)` is refused as a whole, and so are pairs of datagram sockets, which can be connected anew.
Connected pairs of streams, pipes and TCP are as they were. What io_uring could do is not there either.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

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
# Architecture ▶ the numbers of socket, socketpair and socketcall (0: there is none) on it; io_uring_setup is
# 425 on each.
_TABLES: Final = {
    "x86_64": ((0xC000003E, 41, 53, 0), (0x40000003, 359, 360, 102)),
    "aarch64": ((0xC00000B7, 198, 199, 0), (0x40000028, 281, 288, 0)),
}
_IO_URING_SETUP: Final = 425


@cache
def no_unix_sockets() -> bytes | None:
    """Return the filter as bwrap's `--seccomp` reads it; None for a machine whose calls are not known."""
    tables = _TABLES.get(platform.machine())
    if tables is None:
        return None
    program: list[bytes] = [_load(_ARCHITECTURE)]
    for architecture, socket, socketpair, socketcall in tables:
        block = _block(socket, socketpair, socketcall)
        program += [_jump(_EQUAL, architecture, otherwise=len(block)), *block]
    return b"".join((*program, _refuse(errno.ENOSYS)))


def _block(socket: int, socketpair: int, socketcall: int) -> list[bytes]:
    """Judge a call of one architecture."""
    refused = [(socketcall, errno.EACCES)] if socketcall else []
    block = [_load(_NUMBER), _jump(_AT_LEAST, _X32, otherwise=1), _refuse(errno.ENOSYS)]
    for number, error in ((_IO_URING_SETUP, errno.ENOSYS), *refused):
        block += [_jump(_EQUAL, number, otherwise=1), _refuse(error)]
    return [*block, *_judged(socket, [_REFUSED]), *_judged(socketpair, _PAIR), _ALLOWED]


def _judged(number: int, judgement: list[bytes]) -> list[bytes]:
    """Judge a call by its first argument: what makes no Unix socket is allowed."""
    unix = [_load(_FIRST_ARGUMENT), _jump(_EQUAL, _UNIX, otherwise=len(judgement)), *judgement, _ALLOWED]
    return [_jump(_EQUAL, number, otherwise=len(unix)), *unix]


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
    """What keeps a run from Unix sockets: options of bwrap, and the descriptors that they name."""

    options: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


@contextmanager
def sealed(*, sockets: bool) -> Iterator[Seal]:
    """Give the filter for a run, or none where it may have sockets; raises RunError where none is known."""
    if sockets:
        yield Seal()
        return
    found = no_unix_sockets()
    if found is None:
        raise RunError(f"there is no filter of system calls for {platform.machine()}")
    with memory_file(found) as descriptor:
        yield Seal(("--seccomp", str(descriptor)), (descriptor,))


_ALLOWED: Final = _instruction(_RETURN, value=_ALLOW)
_REFUSED: Final = _refuse(errno.EACCES)
_PAIR: Final = [
    _load(_SECOND_ARGUMENT),
    _instruction(_AND, value=_KIND),
    _jump(_EQUAL, _STREAM, otherwise=1),
    _ALLOWED,
    _jump(_EQUAL, _PACKETS, otherwise=1),
    _ALLOWED,
    _REFUSED,
]
