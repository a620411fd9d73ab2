"""What may be asked of the history, and how each message about a request fared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.model.request import Copy, MessageKind, Request, State


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which requests to list; what is None admits every one.

    `session` is a part of the session's key, `text` a part of the command line, in any case. `person` is who
    answered: `channel:id`, the id alone, or the name shown. Times are epoch ms: `since` is included, `until`
    is not; what counts is when a request ended, or when it was made where it is open.
    """

    limit: int
    agent: str | None = None
    session: str | None = None
    person: str | None = None
    text: str | None = None
    since: int | None = None
    until: int | None = None
    states: tuple[State, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """How one copy of a request fares.

    `shows` is what was delivered last, None before the first time. `pending` is what is still to be
    delivered, due at `due_at` (epoch ms). `tries` counts all attempts; `error` is the last one's, None where
    it arrived.
    """

    copy: Copy
    ref: str | None
    shows: MessageKind | None
    tries: int
    pending: MessageKind | None = None
    due_at: int | None = None
    error: str | None = None

    @property
    def state(self) -> str:
        """Say it in one word."""
        if self.pending is not None:
            return "failing" if self.error else "queued"
        if self.error is not None:
            return "given up"
        words = {None: "not sent", MessageKind.POST: "posted", MessageKind.REMOVE: "removed"}
        return words.get(self.shows, "updated")


class HistoryStore(Protocol):
    """What was asked and decided, for as long as it is kept."""

    async def search(self, query: HistoryQuery) -> tuple[Request, ...]:
        """Return the requests that fit, newest first; what waits only where `states` names it."""
        ...

    async def count(self, *states: State) -> int:
        """Tell how many requests are in these states."""
        ...

    async def forget(self, before: int, limit: int) -> tuple[str, ...]:
        """Let requests go that ended before this time, at most so many; returns their ids.

        Their grants, copies and messages go with them. The record stays, and so does what answers left.
        """
        ...

    async def deliveries(self, request_id: str) -> tuple[Delivery, ...]:
        """Tell how each copy of a request fares."""
        ...
