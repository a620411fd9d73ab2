"""What may be asked of the history, and how each message about a request fared."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.request import Copy, MessageKind, State


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
