"""Options that bwrap is given while it starts, so that they are worked out while it is loaded.

It reads a pipe to its end before it reads them, and they are whole before the pipe is closed. Should the daemon
die before, there are none: what needs them must not start without.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from threading import Lock

from adapters.runners.bubblewrap import encoded
from adapters.runners.process import memory_file


class LateOptions:
    """Where bwrap waits for options; `words` tell it so, and `descriptors` are what it inherits for that."""

    def __init__(self, waiting: int, file: int, opening: int) -> None:
        self._file = file
        self._opening: int | None = opening
        self._one_at_a_time = Lock()
        self.descriptors = (waiting, file)
        self.words = ("--args", str(waiting), "--args", str(file))

    @classmethod
    @contextlib.contextmanager
    def awaited(cls) -> Iterator[LateOptions]:
        """Give options that are still to come."""
        with memory_file(b"") as file:
            waiting, opening = os.pipe()
            late = cls(waiting, file, opening)
            try:
                yield late
            finally:
                os.close(waiting)
                late._close()

    def give(self, options: Sequence[str]) -> None:
        """Give them all, and let bwrap go on, where it is not over by now."""
        data = memoryview(encoded(options))
        with self._one_at_a_time:
            while data and self._opening is not None:
                data = data[os.write(self._file, data) :]
            if self._opening is not None:
                os.lseek(self._file, 0, os.SEEK_SET)
        self._close()

    def _close(self) -> None:
        with self._one_at_a_time:
            if self._opening is not None:
                os.close(self._opening)
                self._opening = None
