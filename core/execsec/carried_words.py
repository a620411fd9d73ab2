"""What a program that runs others may run by its words, as deny rules look at it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import re2

from core.model.command import Segment
from core.shell.builtins import CARRYING, HARMLESS
from core.shell.carried import RUN_WORDS
from core.shell.carrying import carrying_option
from core.shell.names import loads_nothing, names, plain_names
from core.shell.programs import SHELLS

_RUNS_TEXT: Final = RUN_WORDS | SHELLS
_CACHE: Final = 1024
_NEXT, _ALSO = "\0", "\1"  # before the next word; behind each further name of a word
_QUOTES: Final = re.compile(r"[\\'\"]")
_BREAKS: Final = re.compile(r"[\s;|&(){}<>=`$!,]+")
_ABSOLUTE: Final = re.compile(r"(?:^|[^\w./~-])/")
_GLOBS: Final = re.compile(r"[*?\[{]")


def carries(segment: Segment) -> bool:
    """Tell whether its words may be what runs: those of all but programs that surely run nothing else.

    What a harmless builtin says may only where it goes on.
    """
    if segment.builtin:
        return segment.words[0].value not in HARMLESS or segment.operator == "|"
    return not loads_nothing(segment) or carrying_option(segment, names(segment)) is not None


def carried_programs(segment: Segment) -> Iterator[str]:
    """Give every name by which a word of a carrier may be a program."""
    if carries(segment):
        for words in _readings(segment):
            for word in words:
                yield word
                yield from _further(segment, word)


def carried_texts(segment: Segment) -> Iterator[str]:
    """Give the words of a carrier as `carried_pattern` reads them: each with its further names before it.

    They end as if one more followed, since carriers put words of their own behind.
    """
    if len(segment.words) > 1 and carries(segment):
        for words in _readings(segment):
            yield "".join(_ALSO.join((*_further(segment, word), word)) + _NEXT for word in words)


def carried_commands(segment: Segment) -> Iterator[str]:
    """Give what a carrier may run: its words, from each of them to the last, by each name of the first."""
    if len(segment.words) > 1 and carries(segment):
        for words in _readings(segment):
            for start, word in enumerate(words):
                for name in (word, *_further(segment, word)):
                    yield " ".join((name, *words[start + 1 :]))


@lru_cache(maxsize=_CACHE)
def carried_pattern(pattern: str) -> Any:  # noqa: ANN401 - re2 is untyped
    """Compile a deny pattern for the end of a list of words; its program counts by base name too."""
    head, _, _ = pattern.partition(" ")
    base = posixpath.basename(head)
    heads = [head] if not base or _GLOBS.search(base) else [head, base]
    begins = "|".join(map(_translated, heads))
    rest = _translated(pattern[len(head) :])
    return re2.compile(f"(?s)(?:.*\\x00)?(?:[^\\x00]*\\x01)?(?:{begins})(?:\\x01[^\\x00]*)?{rest}\\x00?")


def _translated(pattern: str) -> str:
    signs = {"*": ".*", "?": ".", " ": "(?: |\\x00(?:[^\\x00]*\\x01)?)"}
    return "".join(signs.get(char) or re2.escape(char) for char in pattern)


def _readings(segment: Segment) -> Iterator[Sequence[str]]:
    """Give the words behind the first, and where they may be lines of a shell, the words of those."""
    words = segment.argv[1:]
    yield words
    if _runs_text(segment):
        broken = tuple(part for word in words for part in _BREAKS.split(_QUOTES.sub("", word)) if part)
        if broken != words:
            yield broken


def _runs_text(segment: Segment) -> bool:
    if segment.builtin:
        return segment.words[0].value in CARRYING or segment.operator == "|"
    found = names(segment)
    return bool(found & _RUNS_TEXT) or carrying_option(segment, found) is not None


def _further(segment: Segment, word: str) -> Iterator[str]:
    """Give what else a program of this path is called.

    What runs anything is mostly given files to work on: of its words only absolute paths count as programs.
    """
    if "://" not in word and (_runs_text(segment) or _ABSOLUTE.search(word)):
        yield from sorted(plain_names(word) - {word, ""})
