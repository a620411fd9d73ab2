"""Reads files for their digests, and no more of them than one command is worth."""

from __future__ import annotations

import hashlib
import os
import time

from core.model.command import FileIdentity

_CHUNK = 1024 * 1024
BEGINNING = 256  # bytes, in which the kernel looks for an interpreter


class Reading:
    """What may still be read for one command; each file is read once, under however many names."""

    def __init__(self, *, file_limit: int, total_limit: int, seconds: float) -> None:
        self._file_limit = file_limit
        self._left = total_limit
        self._until = time.monotonic() + seconds
        self._known: dict[tuple[int, ...], tuple[str, bytes]] = {}

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
        return self._known[key][0]

    def beginning(self, identity: FileIdentity) -> bytes | None:
        """Give the first bytes of a file that was hashed: of the same text that the digest is of."""
        key = (identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns)
        digest, beginning = self._known.get(key, (None, b""))
        return beginning if digest is not None and digest == identity.sha256 else None

    def _read(self, real: str, seen: os.stat_result) -> tuple[str, bytes] | None:
        # Whoever can write here may put a pipe in its place, which without O_NONBLOCK would hold us for ever.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            if not os.path.samestat(seen, os.fstat(descriptor)):
                return None
            digest, size, beginning = hashlib.sha256(), 0, b""
            while chunk := file.read(_CHUNK):
                beginning = beginning or chunk[:BEGINNING]
                size += len(chunk)
                self._left -= len(chunk)
                if size > seen.st_size or self._left < 0 or self.over:
                    return None
                digest.update(chunk)
        return (digest.hexdigest(), beginning) if size == seen.st_size else None
