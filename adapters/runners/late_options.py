"""Options that bwrap is given while it starts, so that they are worked out while it is loaded.

It reads a pipe to its end before it reads them, and they are whole before the pipe is closed. Should the daemon
die before, there are none: what needs them must not start without.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from adapters.runners.bubblewrap import encoded
from adapters.runners.process import memory_file


class LateOptions:
    """Where bwrap waits for options; `descriptors` are what it inherits for that."""

    def __init__(self, waiting: int, file: int, opening: contextlib.ExitStack) -> None:
        self._file = file
        self._opening = opening
        self.descriptors = (waiting, file)
        self.options = ("--args", str(waiting), "--args", str(file))

    @classmethod
    @contextlib.contextmanager
    def awaited(cls) -> Iterator[LateOptions]:
        """Give options that are still to come."""
        with memory_file(b"") as file, contextlib.ExitStack() as stack, contextlib.ExitStack() as opening:
            waiting, end = os.pipe()
            stack.callback(os.close, waiting)
            opening.callback(os.close, end)
            yield cls(waiting, file, opening)

    def give(self, options: Sequence[str]) -> None:
        """Give them all, and let bwrap go on."""
        data = memoryview(encoded(options))
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, data[written:], written)
        self._opening.close()
