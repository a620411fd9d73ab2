"""Tells when bwrap is through with its mounts, which may take seconds, and comes to the command.

There it reads one byte, from a file whose position it shares with the daemon.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from adapters.runners.process import memory_file


class Threshold:
    """What bwrap passes; `words` tell it so, and it inherits `descriptor` for that."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.words = ("--block-fd", str(descriptor))

    @classmethod
    @contextmanager
    def laid(cls) -> Iterator[Threshold]:
        """Give one that is still to be passed."""
        with memory_file(b"\n") as descriptor:
            yield cls(descriptor)

    def passed(self) -> bool:
        """Tell whether the command may have begun."""
        return os.lseek(self.descriptor, 0, os.SEEK_CUR) > 0
