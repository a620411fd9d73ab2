"""What a typed line means: pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from core.approvals import commands
from core.model.card import Card
from core.model.principal import Reviewer
from core.model.request import Answer

_ANSWERS = {
    "a": Answer.ALLOW_ONCE,
    "once": Answer.ALLOW_ONCE,
    "f": Answer.ALLOW_FOR,
    "for": Answer.ALLOW_FOR,
    "A": Answer.ALLOW_ALWAYS,
    "always": Answer.ALLOW_ALWAYS,
    "any": Answer.ALLOW_ALWAYS_ANY,
    "d": Answer.DENY,
    "deny": Answer.DENY,
    "D": Answer.DENY_ALWAYS,
    "never": Answer.DENY_ALWAYS,
}
_PREFIX = re.compile(r"[0-9a-zA-Z-]{4,64}")
_NUMBER = re.compile(r"[1-9][0-9]?")

_ANSWERING = (
    "a  or once      allow it once",
    "f 30m           allow it, and exactly this again for that time (30s, 30m, 2h, 1d)",
    "A  or always    allow it and remember what the card says",
    "any             allow it and remember it with any arguments, where the card offers that",
    "d  or deny      deny it; words after it are the reason the agent reads",
    "D  or never     deny exactly this command of this agent from now on; a reason may follow",
    "list            show all that wait",
    "An id after the letter (a 3f2b, f 30m 3f2b) answers that request instead of the oldest.",
    "sayso permissions lists what f and D left standing, and revokes it.",
)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer to the request `request_id`, or to the oldest where that is None."""

    answer: Answer
    request_id: str | None = None
    reason: str | None = None
    for_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish to see `help` or `list`."""

    what: str


@dataclass(frozen=True, slots=True)
class Commanded:
    """A command as in chats."""

    text: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The number of a choice that was offered, from 1 on."""

    number: int


@dataclass(frozen=True, slots=True)
class Unclear:
    """A line that decides nothing, and what to tell about it."""

    text: str


def help_text(user: Reviewer) -> str:
    """Say what can be typed, and as whom."""
    chats = (f"  {line}" for line in commands.HELP.splitlines() if not line.startswith("/pair"))
    who = f"Commands of chats work here too. You are {user.channel}:{user.id}: so must allowFrom name you."
    return "\n".join((*_ANSWERING, who, *chats))


def read_line(
    line: str, waiting: Collection[str], *, choosing: bool = False
) -> Said | Asked | Commanded | Chosen | Unclear | None:
    """Read a line against the ids that wait; None for an empty one, a choice only while there is one."""
    words = line.split()
    if not words:
        return None
    if words[0].startswith("/"):
        return _command(line)
    if choosing and len(words) == 1 and _NUMBER.fullmatch(words[0]):
        return Chosen(int(words[0]))
    return _answer(words, waiting)


def _answer(words: list[str], waiting: Collection[str]) -> Said | Asked | Unclear:
    if words[0] in ("?", "help", "list") and len(words) == 1:
        return Asked("list" if words[0] == "list" else "help")
    answer = _ANSWERS.get(words[0])
    if answer is None:
        return Unclear(f"“{words[0]}” is no answer here. Type a, f 30m, A, d or D; ? explains.")
    if answer is Answer.ALLOW_FOR:
        return _timed(words[1:], waiting)
    return _addressed(Said(answer), words[1:], waiting)


def _command(line: str) -> Commanded | Unclear:
    if commands.parse(line) is None:
        return Unclear(f"“{line.split(maxsplit=1)[0]}” is no command here; ? lists them.")
    return Commanded(line)


def not_offered(card: Card, answer: Answer) -> str | None:
    """Say why a card does not take this answer, or None where it does."""
    if answer is Answer.ALLOW_ALWAYS and not card.offers_always:
        return f"Always is not offered here: {card.always_why or 'nothing can be remembered'}"
    if answer is Answer.ALLOW_ALWAYS_ANY and not card.always_any:
        return "Always with any arguments is offered only for programs that just read."
    if answer is Answer.ALLOW_FOR and not card.durations:
        return f"A time is not offered here, because a yes counts once: {card.always_why or card.reason}"
    if answer is Answer.DENY_ALWAYS and not card.denies_always:
        return "A test question leaves nothing behind; type d."
    return None


def _timed(words: list[str], waiting: Collection[str]) -> Said | Unclear:
    try:
        for_ms = commands.duration_ms(words[0] if words else "")
    except ValueError as error:
        return Unclear(f"{error} Nothing was decided.")
    return _addressed(Said(Answer.ALLOW_FOR, for_ms=for_ms), words[1:], waiting)


def _addressed(said: Said, rest: list[str], waiting: Collection[str]) -> Said | Unclear:
    if not rest:
        return said
    matches = [known for known in waiting if known.startswith(rest[0])] if _PREFIX.fullmatch(rest[0]) else []
    if len(matches) > 1:
        return Unclear(f"{rest[0]} begins the ids of {len(matches)} requests: {', '.join(matches)}")
    request_id = matches[0] if matches else None
    words = " ".join(rest[1:] if matches else rest)
    if not said.answer.allows:
        return replace(said, request_id=request_id, reason=commands.reason(words))
    if request_id is None:
        return Unclear(f"No waiting request has an id that begins with {rest[0]} (4 characters or more).")
    if words:
        return Unclear("Only the id may follow. Nothing was decided.")
    return replace(said, request_id=request_id)
