"""Keeps a command from starting until its sandbox is seen to show what it was meant to.

For a bubblewrap that takes no descriptors: it resolves paths itself, so what it mounted is compared with what
is held. It blocks once its mounts stand; the command's program has not been started then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from adapters.runners.sources import Sources, exchanged
from core.errors import BindingMismatch, RunError

_LOOK_AGAIN_S = 0.0005


class Gate:
    """Lets a run through, or raises; `descriptor` is what bwrap blocks on."""

    def __init__(self, sources: Sources, descriptor: int, opening: int) -> None:
        self._sources = sources
        self._opening = opening
        self._let_through = False
        self.descriptor = descriptor
        self.words = ("--block-fd", str(descriptor))

    @classmethod
    @contextlib.contextmanager
    def opened(cls, sources: Sources) -> Iterator[Gate]:
        """Give a closed gate for what is held."""
        with contextlib.ExitStack() as stack:
            reading, opening = os.pipe()
            stack.callback(os.close, opening)
            stack.callback(os.close, reading)
            # Open for both, so that bwrap never meets an end of file, which would let it go on: nothing
            # starts where the daemon is killed here.
            both = os.open(f"/proc/self/fd/{reading}", os.O_RDWR | os.O_CLOEXEC)
            stack.callback(os.close, both)
            yield cls(sources, both, opening)

    async def let_through(self, pid: int, alive: Callable[[], bool]) -> None:
        """Wait for the mounts of the run whose first process this is, compare, and let it start.

        Raises BindingMismatch where something was exchanged meanwhile.
        """
        try:
            while alive() and not _stands(pid):  # noqa: ASYNC110 - in another process, which tells nobody
                await asyncio.sleep(_LOOK_AGAIN_S)
            place = exchanged(pid, self._sources.all) if alive() else None
        except FileNotFoundError:
            return  # it ended by itself, and says why
        except PermissionError as error:
            raise RunError(
                f"the daemon may not look into the sandbox that it made ({error.strerror}); "
                "install a newer bubblewrap, one with --bind-fd, which needs no look"
            ) from error
        if place is not None:
            raise BindingMismatch((f"what is at {place}",))
        self._let_through = True
        os.write(self._opening, b"\n")

    def passed(self) -> bool:
        """Tell whether the command may have begun."""
        return self._let_through


def _stands(pid: int) -> bool:
    """Tell whether bwrap has entered what it mounted: only there is the /proc of its own processes."""
    try:
        return os.stat(f"/proc/{pid}/root/proc").st_dev != os.stat("/proc").st_dev  # noqa: PTH116 - asked often
    except FileNotFoundError:
        os.stat(f"/proc/{pid}")  # noqa: PTH116 - as above
        return False
