"""Misbehaviour on demand."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from tests.platforms.telegram.errors import ApiError


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong; made by the functions below."""

    error: ApiError | None = None
    html: bool = False
    late: float = 0.0
    drop_before: bool = False
    drop_after: bool = False
    twist: str = ""


def refuse(code: int, text: str, **parameters: Any) -> Fault:
    """Answer with an error of one's own, without processing."""
    return Fault(error=ApiError(code, text, **parameters))


def flood(retry_after: int = 1) -> Fault:
    return refuse(429, f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)


def server_error(code: int = 502, *, html: bool = False) -> Fault:
    """Answer 500 or 502, without processing; `html` is what a proxy in front of the platform sends."""
    text = {500: "Internal Server Error", 502: "Bad Gateway"}.get(code, "Server Error")
    return Fault(error=ApiError(code, text), html=html)


def unauthorized() -> Fault:
    return refuse(401, "Unauthorized")


def conflict() -> Fault:
    return refuse(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    )


def edit_not_found() -> Fault:
    return refuse(400, "Bad Request: message to edit not found")


def query_too_old() -> Fault:
    return refuse(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")


def slow(seconds: float) -> Fault:
    """Process at once, answer late."""
    return Fault(late=seconds)


def drop_before() -> Fault:
    """Close the connection without having done anything."""
    return Fault(drop_before=True)


def drop_after() -> Fault:
    """Do what is asked and close the connection: the answer is lost."""
    return Fault(drop_after=True)


def duplicate() -> Fault:
    """Deliver each update of the next batch twice, with the same update_id."""
    return Fault(twist="duplicate")


def reorder() -> Fault:
    """Wait until two updates are there and deliver them the wrong way round."""
    return Fault(twist="reorder")


class Faults:
    """What is still to go wrong, for each method in order; `*` is any method."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, deque[Fault]] = defaultdict(deque)

    def add(self, method: str, fault: Fault, times: int) -> None:
        self._waiting[method].extend([fault] * times)

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, method: str) -> Fault:
        """Take the next fault of a request; a twist waits for updates and is taken by `twist`."""
        for name in (method, "*"):
            queue = self._waiting[name]
            if queue and not queue[0].twist:
                return queue.popleft()
        return Fault()

    def twist(self, method: str, pending: int) -> str:
        """Take the twist of a batch; "wait" says that the batch is too small for it."""
        queue = self._waiting[method]
        if not queue or not queue[0].twist:
            return ""
        if queue[0].twist == "reorder" and pending < 2:
            return "wait"
        return queue.popleft().twist
