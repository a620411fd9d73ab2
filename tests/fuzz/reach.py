"""Which lines of the analysis one text reaches, and how often: that is what guides the fuzzer."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from core.shell import scan

Step = tuple[str, int, int]
_ROOT = str(Path(scan.__file__).parent)


class Reach:
    """Collects the steps between lines of `core/shell`; `fresh` tells how many were never seen before."""

    def __init__(self) -> None:
        self._all: set[tuple[Step, int]] = set()
        self._now: Counter[Step] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the steps of what happens meanwhile, in this thread."""
        self._now.clear()
        sys.settrace(self._entered)
        try:
            yield
        finally:
            sys.settrace(None)

    def fresh(self) -> int:
        """Count the steps that are new, or were taken more often than ever, and remember them."""
        reached = {(step, count.bit_length()) for step, count in self._now.items()}
        new = reached - self._all
        self._all |= new
        return len(new)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        del event, argument
        name = frame.f_code.co_filename
        if not name.startswith(_ROOT):
            return None
        before = frame.f_lineno

        def stepped(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            nonlocal before
            del argument
            if event == "line":
                self._now[name, before, frame.f_lineno] += 1
                before = frame.f_lineno
            return stepped

        return stepped
