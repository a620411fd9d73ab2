"""Text with entities, built piece by piece; every length and offset counts UTF-16 units."""

from __future__ import annotations

import re
from dataclasses import dataclass

from telegram import MessageEntity, User

from core.display import Elided, safe

LONGEST = 4096
MOST_ENTITIES = 90  # Telegram takes 100
_GAP = 48  # what the words of a gap take at most

# Marks that Telegram takes out of messages, which would show another text than the one that runs.
_TAKEN_OUT = re.compile("[\u030a\u0333\u033f]")
# Words in which no client finds a link, a mention, a command, a tag or a number to call.
_HARMLESS = re.compile(r"[^\W\d_]*[,;()'\"!?…·—-]*[.:]?|\d{1,2}[.,]?")


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: without a parse mode, so that no character means anything."""

    text: str
    entities: tuple[MessageEntity, ...]


class Text:
    """A message under construction; texts of others come in through `code`, `pre` and `words` only."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._units = 0
        self._entities: list[MessageEntity] = []

    def add(self, text: str) -> Text:
        """Add words of our own."""
        self._parts.append(text)
        self._units += units(text)
        return self

    def bold(self, text: str) -> Text:
        """Add a label of our own."""
        return self._marked(MessageEntity.BOLD, text)

    def code(self, text: str) -> Text:
        """Add a text of others within a line."""
        return self._marked(MessageEntity.CODE, text)

    def pre(self, text: str) -> Text:
        """Add a text of others as a block."""
        return self._marked(MessageEntity.PRE, text)

    def mention(self, word: str, user: int) -> Text:
        """Add a word of our own that tells the user with this id."""
        person = User(user, word, is_bot=False)
        self._entities.append(
            MessageEntity(MessageEntity.TEXT_MENTION, self._units, units(word), user=person)
        )
        return self.add(word)

    def words(self, text: str) -> Text:
        """Add sentences that may quote others: every word that could be linked becomes code."""
        runs = _runs(text)
        if sum(risky for _, risky in runs) > MOST_ENTITIES // 2:
            return self.code(text)
        for run, risky in runs:
            if risky:
                self.code(run)
            else:
                self.add(run)
        return self

    def message(self) -> Message:
        """Return what was built."""
        return Message("".join(self._parts), tuple(self._entities))

    def _marked(self, kind: str, text: str) -> Text:
        if text:
            self._entities.append(MessageEntity(kind, self._units, units(text)))
        return self.add(text)


def units(text: str) -> int:
    """Count UTF-16 units."""
    return len(text) + sum(char > "\uffff" for char in text)


def fit(text: str, most: int) -> Elided:
    """Keep head and tail so that all of it, with the words of the gap, takes at most `most` units."""
    if units(text) <= most:
        return Elided(text)
    room = max(most - _GAP, 3)
    head, tail = _first(text, room * 2 // 3), _first(text[::-1], room // 3)[::-1]
    return Elided(head, len(text) - len(head) - len(tail), tail)


def shorten(text: str, most: int) -> str:
    """Cut the end off, and show that."""
    return text if units(text) <= most else _first(text, most - 1) + "…"


def visible(text: str, *, multiline: bool = False) -> str:
    """Make a text safe to show, and what Telegram would take out of it visible."""
    text = safe(text, multiline=multiline)
    return _TAKEN_OUT.sub(lambda mark: f"\\u{{{ord(mark[0]):x}}}", text)


def _first(text: str, most: int) -> str:
    # Half a pair at the end is not a character: it is left out.
    return text.encode("utf-16-le")[: 2 * most].decode("utf-16-le", "ignore")


def _runs(text: str) -> list[tuple[str, bool]]:
    """Split into runs of words that could be linked and of the others, white space with the others."""
    runs: list[tuple[str, bool]] = []
    for word in re.split(r"(\s+)", text):
        risky = not (word.isspace() or _HARMLESS.fullmatch(word))
        if runs and runs[-1][1] == risky:
            runs[-1] = (runs[-1][0] + word, risky)
        elif word:
            runs.append((word, risky))
    return runs
