"""Output of a run: all of it to a file up to a cap, head and tail in memory for the answer."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO

END_BYTES = 64 * 1024
_STREAMS = ("stdout", "stderr")
_MAX_CONTINUATION = 3  # a UTF-8 character has at most this many bytes after its first


class Spool:
    """One stream; a file that cannot take more (cap, full disk) never stops the run."""

    def __init__(self, opened: Callable[[], BinaryIO], cap: int, end_bytes: int = END_BYTES) -> None:
        self._opened = opened
        self._file: BinaryIO | None = None
        self._room = cap
        self._end = end_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        self.kept = 0

    def write(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        self._keep(data[: self._room])
        for_head = self._end - len(self._head)
        self._head += data[:for_head]
        self._tail += data[for_head:]
        del self._tail[: -self._end]

    def close(self) -> None:
        """Close the file; what was kept stays."""
        if self._file:
            self._file.close()
            self._file = None

    def text(self) -> tuple[str, int]:
        """Return head and tail as text, and how many bytes between them were left out."""
        if self.total <= len(self._head) + len(self._tail):
            return (self._head + self._tail).decode("utf-8", "replace"), 0
        head = _without_cut_end(bytes(self._head))
        tail = _without_cut_start(bytes(self._tail))
        omitted = self.total - len(head) - len(tail)
        gap = f"\n[… {omitted} bytes left out …]\n"
        return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace"), omitted

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        try:
            self._file = self._file or self._opened()
            written = self._file.write(data)
        except OSError:
            self._room = 0
            return
        self.kept += written
        self._room = self._room - written if written == len(data) else 0


def _without_cut_end(data: bytes) -> bytes:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    pending = len(decoder.getstate()[0])
    return data[: len(data) - pending]


def _without_cut_start(data: bytes) -> bytes:
    start = 0
    while start < min(_MAX_CONTINUATION, len(data)) and data[start] & 0xC0 == 0x80:  # noqa: PLR2004 - 10xxxxxx
        start += 1
    return data[start:]


def open_spool(directory: Path, request_id: str, stream: str, cap: int) -> Spool:
    """Give the spool of one stream: `<directory>/<request id>.<stream>`, made with its first output."""
    return Spool(partial(_open, directory, f"{request_id}.{stream}"), cap)


def _open(directory: Path, name: str) -> BinaryIO:
    """Open a file that we alone can read."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(directory / name, flags, 0o600), "wb", buffering=0)


def remove_spools(directory: Path, request_ids: Iterable[str]) -> None:
    """Remove what the runs of these requests left; raises OSError, after all were tried, where some stays."""
    faults: list[OSError] = []
    for request_id in request_ids:
        for stream in _STREAMS:
            try:
                (directory / f"{request_id}.{stream}").unlink(missing_ok=True)
            except OSError as error:
                faults.append(error)
    if faults:
        raise faults[0]


def spooled(directory: Path) -> tuple[str, ...]:
    """List the ids of the requests whose runs left something."""
    try:
        found = sorted(directory.iterdir())
    except OSError:
        return ()
    return tuple(dict.fromkeys(path.stem for path in found if path.suffix.removeprefix(".") in _STREAMS))
