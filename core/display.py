"""Text made safe to show: nothing in it can move the cursor, hide, reorder or pass for something else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

MASK = "•••"

# Control, format (bidi, zero width, tags), surrogate, private and unassigned characters, odd separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "Me"})
# Characters of other categories that take no ink: fillers, blank letters, variation selectors.
_BLANKS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
_PLAIN = re.compile(r"[ -~]*")
# Marks, and what else counts as printable and takes no ink. Of characters up to U+FFFF one look-up tells.
_ODD_CHARACTERS = "".join(
    char
    for char in map(chr, range(0x300, 0x10000))
    if char in _BLANKS or unicodedata.category(char) in {"Mn", "Me"}
)
_ODD = re.compile(f"[{_ODD_CHARACTERS}\U00010000-\U0010ffff]")
_OVERLAY = 1  # canonical combining class: marks drawn across the letter before them
_MOST_MARKS = 2  # letters of living languages carry no more on one base

_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True)
class Elided:
    """Head and tail of a text and how many characters lie between them (0: `head` is the whole text)."""

    head: str
    omitted: int = 0
    tail: str = ""

    @property
    def text(self) -> str:
        """The whole as one text, the gap counted in words."""
        if not self.omitted:
            return self.head
        return f"{self.head} …[{self.omitted:,} characters left out]… {self.tail}"


def safe(text: str, *, secrets: Sequence[str] = (), multiline: bool = False) -> str:
    """Make every character of a text visible and mask secrets; newlines stay only where `multiline`.

    Applying it again changes nothing.
    """
    if secrets:
        text = _masked(text, secrets)
    if _PLAIN.fullmatch(text) or (text.isprintable() and not _ODD.search(text)):
        return text
    unlike_ascii = {char for char in set(text) if not " " <= char <= "~"}  # each is looked at once only
    marks = {char: _visible(char) for char in unlike_ascii if unicodedata.category(char) == "Mn"}
    if marks:
        text = "".join(_not_heaped(text, marks))
    shown = {char for char in unlike_ascii if _shows(char) or (multiline and char == "\n")}
    if shown == unlike_ascii:
        return text
    return text.translate({ord(char): char if char in shown else _visible(char) for char in unlike_ascii})


def safe_line(text: str, *, secrets: Sequence[str] = (), head: int, tail: int) -> str:
    """Make a short safe line: masked as a whole, so that no cut lets half a secret through."""
    cut = elide(_masked(text, secrets), head=head, tail=tail).text
    return elide(safe(cut), head=head, tail=tail).text if len(cut) < len(text) else safe(cut)


def elide(text: str, *, head: int, tail: int) -> Elided:
    """Keep the first `head` and the last `tail` characters, and count what is between them."""
    omitted = len(text) - head - tail
    if omitted <= 0:
        return Elided(text)
    return Elided(text[:head], omitted, text[len(text) - tail :])


def duration(ms: int) -> str:
    """Say how long something took: `340 ms`, `4.2 s`, `2 min 5 s`, `3 h 10 min`, `2 d 4 h`."""
    ms = max(ms, 0)
    if ms < _SECOND_MS:
        return f"{ms} ms"
    if ms < 10 * _SECOND_MS:
        return f"{ms / _SECOND_MS:.1f}".removesuffix(".0") + " s"
    return _two_units(ms)


def moment(at_ms: int) -> str:
    """Say when something is or was: `2026-03-01 14:05:09 UTC`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(ms: int) -> str:
    """Say a length of time as one would choose it: `90 s`, `30 min`, `8 h`, `1 d 2 h`."""
    return _two_units(max(ms, _SECOND_MS))


def time_left(ms: int) -> str:
    """Say how long someone has still: `1 min 53 s left`, `no time left`."""
    return f"{_two_units(ms)} left" if ms > 0 else "no time left"


def _masked(text: str, secrets: Sequence[str]) -> str:
    longest_first = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
    if not longest_first:
        return text
    return re.sub("|".join(map(re.escape, longest_first)), MASK, text)


def _not_heaped(text: str, marks: Mapping[str, str]) -> Iterator[str]:
    """Make visible each mark that has no base, or is more than letters of living languages carry."""
    heap = 0
    for index, char in enumerate(text):
        if char in marks:
            heap += 1
            yield char if index and heap <= _MOST_MARKS else marks[char]
        else:
            heap = 0
            yield char


def _shows(char: str) -> bool:
    if unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _BLANKS:
        return False
    return unicodedata.combining(char) != _OVERLAY


def _visible(char: str) -> str:
    code = ord(char)
    if code <= 0x1F:  # noqa: PLR2004 - the C0 controls have pictures of their own
        return chr(0x2400 + code)
    if code == 0x7F:  # noqa: PLR2004 - so has DEL
        return "␡"
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{{{code:x}}}"


def _two_units(ms: int) -> str:
    # Rounded up: with half a second to go there is still time.
    ms = -(-ms // _SECOND_MS) * _SECOND_MS
    units = ((_DAY_MS, "d"), (_HOUR_MS, "h"), (_MINUTE_MS, "min"), (_SECOND_MS, "s"))
    big = next(index for index, (size, _) in enumerate(units) if ms >= size)
    parts = []
    for size, name in units[big : big + 2]:
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts)
