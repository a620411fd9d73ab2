"""Looks up host names with the system's resolver, in a few threads of its own and never for long."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, TypeAlias

_STREAM = {"type": socket.SOCK_STREAM}

Answers: TypeAlias = Iterable[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Asked:
    answer: Future[tuple[str, ...]]
    at: float


class SystemNameResolver:
    """The NameResolver over hosts file and name servers; whatever goes wrong or takes too long is no answer.

    Answers are kept for `kept_s`, long enough for the questions of one call and no longer: a name that points
    elsewhere by the time of the run must be seen to. A name server that hangs holds one thread for each name,
    and at most `threads` in all. The threads are daemons, so that they never delay the end of the program.
    """

    def __init__(
        self,
        lookup: Callable[..., Answers] = socket.getaddrinfo,
        *,
        timeout_s: float = 3.0,
        kept_s: float = 2.0,
        threads: int = 16,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lookup = lookup
        self._timeout_s = timeout_s
        self._kept_s = kept_s
        self._monotonic = monotonic
        self._free = threading.BoundedSemaphore(threads)
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}
        self._closed = False

    def addresses(self, host: str) -> tuple[str, ...]:
        """Return every address of a name, canonical; empty where there is none within the time."""
        deadline = time.monotonic() + self._timeout_s
        asked = self._recent(host) or self._ask(host)
        if asked is None:
            return ()
        try:
            return asked.answer.result(max(deadline - time.monotonic(), 0))
        except (TimeoutError, CancelledError):
            return ()

    def close(self) -> None:
        """Give no more answers; who waits is told at once that there is none."""
        with self._lock:
            self._closed = True
            for asked in self._asked.values():
                asked.answer.cancel()
            self._asked.clear()

    def _recent(self, host: str) -> _Asked | None:
        with self._lock:
            oldest = self._monotonic() - self._kept_s
            self._asked = {
                name: asked
                for name, asked in self._asked.items()
                if asked.at >= oldest or not asked.answer.done()
            }
            return self._asked.get(host)

    def _ask(self, host: str) -> _Asked | None:
        if not self._free.acquire(timeout=self._timeout_s):
            return None
        asked = _Asked(Future(), self._monotonic())
        with self._lock:
            if self._closed:
                self._free.release()
                return None
            self._asked[host] = asked
        threading.Thread(
            target=self._answer, args=(host, asked.answer), name=f"names-{host[:40]}", daemon=True
        ).start()
        return asked

    def _answer(self, host: str, answer: Future[tuple[str, ...]]) -> None:
        try:
            found = _canonical(self._lookup(host, None, **_STREAM))
        except (OSError, ValueError):
            found = ()
        finally:
            self._free.release()
        with self._lock:
            if not answer.done():
                answer.set_result(found)


def _canonical(answers: Answers) -> tuple[str, ...]:
    """Give the addresses of getaddrinfo's rows; raises ValueError for what is none."""
    texts = (str(row[4][0]).partition("%")[0] for row in answers)
    return tuple(dict.fromkeys(str(ipaddress.ip_address(text)) for text in texts))
