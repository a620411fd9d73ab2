"""Starts a process from a thread of its own, which can close what lies outside to it before it begins.

A Landlock domain belongs to a thread and to all that it starts, so each run can have one of its own; what
asks to die with its parent (PDEATHSIG) dies with the thread that started it, which therefore waits.
"""

from __future__ import annotations

import _thread
import asyncio
import ctypes
import struct
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from adapters.runners.libc import libc, system_call

_CREATE_RULESET: Final = 444  # the same number on every architecture
_RESTRICT_SELF: Final = 446
_ABI: Final = 1  # the flag by which the kernel tells its version
_SCOPES_SINCE: Final = 6
_ABSTRACT_SOCKETS: Final = 1
_RULESET: Final = struct.Struct("QQQ")  # rights over files, over ports, and what is scoped
_NO_NEW_PRIVILEGES: Final = 38


class ThreadedProcess:
    """A subprocess as asyncio's: `pid`, `returncode`, `wait()`; `fault` is what it was killed for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.fault: Exception | None = None
        self.returncode: int | None = None
        self.ended = asyncio.Event()

    async def wait(self) -> int | None:
        """Wait for its end."""
        await self.ended.wait()
        return self.returncode

    def end(self, returncode: int) -> None:
        """Learn that it has ended."""
        self.returncode = returncode
        self.ended.set()


async def start(
    argv: Sequence[str],
    *,
    scoped: bool,
    meanwhile: Callable[[subprocess.Popen[bytes]], None],
    **options: Any,  # noqa: ANN401 - of Popen
) -> ThreadedProcess:
    """Start a process; `scoped` keeps it from abstract sockets that were not made by itself.

    `meanwhile` has it first, in its own thread; what it raises kills the process. Raises OSError where it
    cannot be started, or not so.
    """
    loop = asyncio.get_running_loop()
    begun: asyncio.Future[ThreadedProcess] = loop.create_future()

    def tell(call: Callable[..., object], *args: object) -> None:
        try:
            loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            return

    def live() -> None:
        try:
            if scoped:
                _close_abstract_sockets()
            child = subprocess.Popen(argv, **options)
        except (OSError, subprocess.SubprocessError) as error:
            tell(_fail, begun, error)
            return
        process = ThreadedProcess(child.pid)
        tell(_settle, begun, process)
        try:
            meanwhile(child)
        except Exception as error:  # noqa: BLE001 - raised again where the process is waited for
            process.fault = error
            child.kill()
        tell(process.end, child.wait())

    _thread.start_new_thread(live, ())  # threading.Thread would have this one wait until it has begun
    return await begun


def _settle(begun: asyncio.Future[ThreadedProcess], process: ThreadedProcess) -> None:
    if not begun.done():
        begun.set_result(process)


def _fail(begun: asyncio.Future[ThreadedProcess], error: Exception) -> None:
    if not begun.done():
        begun.set_exception(error)


@cache
def scopes_abstract_sockets() -> bool:
    """Tell whether this kernel can keep a process from the abstract sockets of others (Linux 6.12)."""
    return system_call(_CREATE_RULESET, None, 0, _ABI) >= _SCOPES_SINCE


def _close_abstract_sockets() -> None:
    if libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if system_call(_RESTRICT_SELF, _ruleset(), 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")


@cache
def _ruleset() -> int:
    """Make the one of this process, from which each thread makes a domain of its own."""
    attributes = _RULESET.pack(0, 0, _ABSTRACT_SOCKETS)
    ruleset = system_call(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    return ruleset
