"""Reads files for their digests, and no more of them than one command is worth."""

from __future__ import annotations

import hashlib
import os
import time

_CHUNK = 1024 * 1024


class Reading:
    """What may still be read for one command; each file is read once, under however many names."""

    def __init__(self, *, file_limit: int, total_limit: int, seconds: float) -> None:
        self._file_limit = file_limit
        self._left = total_limit
        self._until = time.monotonic() + seconds
        self._known: dict[tuple[int, ...], str] = {}

    @property
    def over(self) -> bool:
        """Whether there is no time left to look at anything."""
        return time.monotonic() >= self._until

    def digest(self, real: str, seen: os.stat_result) -> str | None:
        """Hash the file that was looked at; None for one too large, or exchanged meanwhile."""
        key = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if key not in self._known:
            found = self._read(real, seen) if seen.st_size <= self._file_limit else None
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]

    def _read(self, real: str, seen: os.stat_result) -> str | None:
        # Whoever can write here may put a pipe in its place, which without O_NONBLOCK would hold us for ever.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            if not os.path.samestat(seen, os.fstat(descriptor)):
                return None
            digest, size = hashlib.sha256(), 0
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                self._left -= len(chunk)
                if size > seen.st_size or self._left < 0 or self.over:
                    return None
                digest.update(chunk)
        return digest.hexdigest() if size == seen.st_size else None
