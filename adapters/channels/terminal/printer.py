"""Prints from a thread of its own: a terminal that was paused must not pause the daemon."""

from __future__ import annotations

import queue
import threading
from typing import TextIO

_PIECES = 256
_LAST_WORDS_S = 1.0


class Printer:
    """Writes text to a terminal in order; what a paused terminal cannot take is dropped."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._queue: queue.Queue[str | None] = queue.Queue(_PIECES)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._print_all, name="terminal-printer", daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Queue a text and a newline."""
        try:
            self._queue.put_nowait(text + "\n")
        except queue.Full:
            return

    def stop(self) -> None:
        """Print what is queued, within a second, and end the thread."""
        if self._thread is None:
            return
        try:
            self._queue.put(None, timeout=_LAST_WORDS_S)
        except queue.Full:
            return
        self._thread.join(_LAST_WORDS_S)
        self._thread = None

    def _print_all(self) -> None:
        encoding = getattr(self._output, "encoding", None) or "utf-8"
        while (text := self._queue.get()) is not None:
            try:
                self._output.write(text.encode(encoding, "backslashreplace").decode(encoding))
                self._output.flush()
            except (OSError, ValueError):
                return  # the terminal is gone; nobody reads any more
