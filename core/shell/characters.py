"""Characters that a command may not hold, because bash or a reader could take them for something else."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from core.model.command import Refusal

_PLAIN: Final = re.compile(r"[\t\n\x20-\x7e]*+")
_BLANKS: Final = re.compile(r"[\t\n]++")
_CONSTRUCTS: Final[dict[str, tuple[str, str]]] = {
    "Cc": ("control-character", "a control character"),
    "Cf": ("invisible-character", "an invisible or direction-changing character"),
    "Cs": ("lone-surrogate", "half of a character, which is no valid text"),
    "Co": ("private-character", "a private-use character, which nobody can read"),
    "Cn": ("unassigned-character", "an unassigned character"),
    "Zs": ("misleading-space", "a space that bash does not take for one"),
    "Zl": ("misleading-space", "a line separator that bash does not take for one"),
    "Zp": ("misleading-space", "a paragraph separator that bash does not take for one"),
}
# Letters and marks by category that show nothing.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180f"
    "\U00016fe4\U0001d159]"
)
_SELECTOR: Final = "\ufe0f"
_JOINER: Final = "\u200d"
_SKIN_TONES: Final = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_KEYS: Final = frozenset("0123456789#*")
_KEYCAP: Final = "\u20e3"
# Flags spelled with tags: of England, Scotland and Wales. Any other text in tags would be hidden.
_BLACK_FLAG: Final = "\U0001f3f4"
_TAG_FLAGS: Final = tuple(
    "".join([_BLACK_FLAG, *(chr(0xE0000 + ord(letter)) for letter in region), "\U000e007f"])
    for region in ("gbeng", "gbsct", "gbwls")
)
_LONGEST_FLAG: Final = max(map(len, _TAG_FLAGS))
_BLANK_PICTURES: Final = frozenset("\u2800\ufffc\ufffd")

HARD: Final = frozenset(construct for construct, _ in _CONSTRUCTS.values()) | {
    "nul-byte",
    "empty",
    "too-long",
}

# Refusals that stand at no place of the line.
OF_THE_WHOLE: Final = frozenset(
    ("empty", "too-long", "too-deep", "too-many-shells", "too-slow", "too-many-words")
)


def forbidden_character(text: str) -> Refusal | None:
    """Return the first forbidden character as a refusal; position in characters."""
    if _PLAIN.fullmatch(text) or (_BLANKS.sub("", text).isprintable() and not _UNSEEN.search(text)):
        return None
    for index, char in enumerate(text):
        shown = (char.isprintable() and not _UNSEEN.match(char)) or _in_emoji(text, index)
        found = None if shown else _why(char)
        if found:
            construct, words = found
            return Refusal(construct, index, f"U+{ord(char):04X} is {words}")
    return None


def _in_emoji(text: str, index: int) -> bool:
    """Tell whether a variation selector, joiner or tag belongs to the pictures beside it."""
    before = text[index - 1 : index] if index else ""
    behind = text[index + 1 : index + 2]
    if text[index] == _SELECTOR:
        return _is_picture(before) or (before in _KEYS and behind == _KEYCAP)
    if "\U000e0000" < text[index] <= "\U000e007f":
        begins = text.rfind(_BLACK_FLAG, max(0, index - _LONGEST_FLAG), index)
        return begins >= 0 and any(
            text.startswith(flag, begins) and index < begins + len(flag) for flag in _TAG_FLAGS
        )
    joins = text[index] == _JOINER and _is_picture(behind)
    return joins and (_is_picture(before) or before in {_SELECTOR, *_SKIN_TONES})


def _is_picture(char: str) -> bool:
    return char != "" and unicodedata.category(char) == "So" and char not in _BLANK_PICTURES


def _why(char: str) -> tuple[str, str] | None:
    if char in "\t\n" or " " <= char <= "~":
        return None
    if char == "\0":
        return "nul-byte", "a NUL, where every program would stop reading"
    if _UNSEEN.match(char):
        return _CONSTRUCTS["Cf"]
    return _CONSTRUCTS.get(unicodedata.category(char))
