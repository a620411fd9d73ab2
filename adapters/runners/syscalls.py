"""The filter of system calls for runs that a rule alone admits: no Unix socket can be made or asked for.

No list of sockets is complete: they are bound under names that are gone, in other network namespaces, later.
So `socket(AF_UNIX)` is refused as a whole; pairs of connected sockets, pipes and TCP are as they were. What
io_uring could do in its stead is not there either.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache
from typing import Final

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # of classic BPF, on whole words
_INSTRUCTION: Final = struct.Struct("HBBI")
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # where they stand in struct seccomp_data
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_UNIX: Final = 1
_X32: Final = 0x40000000  # numbers from here on are those of another way to call the same kernel
# Architecture ▶ the numbers of socket and socketcall (0: there is none) on it; io_uring_setup is 425 on each.
_TABLES: Final = {
    "x86_64": ((0xC000003E, 41, 0), (0x40000003, 359, 102)),
    "aarch64": ((0xC00000B7, 198, 0), (0x40000028, 281, 0)),
}
_IO_URING_SETUP: Final = 425


@cache
def no_unix_sockets() -> bytes | None:
    """Return the filter as bwrap's `--seccomp` reads it; None for a machine whose calls are not known."""
    tables = _TABLES.get(platform.machine())
    if tables is None:
        return None
    program: list[bytes] = [_load(_ARCHITECTURE)]
    for architecture, socket, socketcall in tables:
        block = _block(socket, socketcall)
        program += [_jump(_EQUAL, architecture, otherwise=len(block)), *block]
    return b"".join((*program, _refuse(errno.ENOSYS)))


def _block(socket: int, socketcall: int) -> list[bytes]:
    """Judge a call of one architecture."""
    refused = [(socketcall, errno.EACCES)] if socketcall else []
    block = [_load(_NUMBER), _jump(_AT_LEAST, _X32, otherwise=1), _refuse(errno.ENOSYS)]
    for number, error in ((_IO_URING_SETUP, errno.ENOSYS), *refused):
        block += [_jump(_EQUAL, number, otherwise=1), _refuse(error)]
    block += [_jump(_EQUAL, socket, otherwise=3), _load(_FIRST_ARGUMENT)]
    block += [_jump(_EQUAL, _UNIX, otherwise=1), _refuse(errno.EACCES), _instruction(_RETURN, value=_ALLOW)]
    return block


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, value=offset)


def _jump(code: int, value: int, *, otherwise: int) -> bytes:
    """Go on where it holds, and `otherwise` so many instructions further."""
    return _instruction(code, value=value, no=otherwise)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, value=_ERROR | error)


def _instruction(code: int, *, value: int, no: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, 0, no, value)
