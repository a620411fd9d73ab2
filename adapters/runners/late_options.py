"""Options that bwrap is given while it starts, so that they are worked out while it is loaded.

It reads a pipe to its end before it reads them, and they are whole before the pipe is closed. Should the
daemon die before, they are not: what bwrap is told by name must fail without the last of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from threading import Lock

from adapters.runners.bubblewrap import encoded
from adapters.runners.process import fill, memory_file


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
        with self._one_at_a_time:
            if self._opening is not None:
                fill(self._file, encoded(options))
        self._close()

    def _close(self) -> None:
        with self._one_at_a_time:
            if self._opening is not None:
                os.close(self._opening)
                self._opening = None
