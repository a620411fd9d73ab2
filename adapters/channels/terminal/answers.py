"""What a typed line means: pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from core.model.request import Answer

_ANSWERS = {
    "a": Answer.ALLOW_ONCE,
    "once": Answer.ALLOW_ONCE,
    "A": Answer.ALLOW_ALWAYS,
    "always": Answer.ALLOW_ALWAYS,
    "d": Answer.DENY,
    "deny": Answer.DENY,
}
_PREFIX = re.compile(r"[0-9a-zA-Z-]{4,64}")

HELP = (
    "a  or once     allow it once",
    "A  or always   allow it and remember what the card says",
    "d  or deny     deny it; words after it are the reason the agent reads",
    "list           show all that wait",
    "An id after the letter (a 3f2b) answers that request instead of the oldest.",
)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer to the request `request_id`, or to the oldest where that is None."""

    answer: Answer
    request_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish to see `help` or `list`."""

    what: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """A line that decides nothing, and what to tell about it."""

    text: str


def read_line(line: str, waiting: Collection[str]) -> Said | Asked | Unclear | None:
    """Read a line against the ids that wait; None for an empty one."""
    words = line.split()
    if not words:
        return None
    if words[0] in ("?", "help", "list") and len(words) == 1:
        return Asked("list" if words[0] == "list" else "help")
    answer = _ANSWERS.get(words[0])
    if answer is None:
        return Unclear(f"“{words[0]}” is no answer here. Type a, A or d; ? explains.")
    return _addressed(answer, words[1:], waiting)


def _addressed(answer: Answer, rest: list[str], waiting: Collection[str]) -> Said | Unclear:
    if not rest:
        return Said(answer)
    matches = [known for known in waiting if known.startswith(rest[0])] if _PREFIX.fullmatch(rest[0]) else []
    if len(matches) > 1:
        return Unclear(f"{rest[0]} begins the ids of {len(matches)} requests: {', '.join(matches)}")
    request_id = matches[0] if matches else None
    reason = " ".join(rest[1:] if matches else rest)
    if answer is Answer.DENY:
        return Said(answer, request_id, reason or None)
    if request_id is None:
        return Unclear(f"No waiting request has an id that begins with {rest[0]} (4 characters or more).")
    if reason:
        return Unclear("Only the id may follow. Nothing was decided.")
    return Said(answer, request_id)
