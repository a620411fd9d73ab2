"""`*` and `?` over tool names: `*` is any run of characters, `?` exactly one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_AFTER_ALL = "\U0010ffff"


def is_pattern(text: str) -> bool:
    """Tell whether a text has a wildcard."""
    return "*" in text or "?" in text


@dataclass(frozen=True, slots=True)
class Names:
    """Names in the order of their beginnings, and spelled backwards in the order of their ends."""

    ordered: tuple[str, ...]
    backwards: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Sort names both ways."""
        ordered = tuple(sorted(names))
        return cls(ordered, tuple(sorted(name[::-1] for name in ordered)))

    def likely(self, prefix: str, suffix: str) -> Sequence[str]:
        """Return the names that begin so or, where nothing is said about that, end so."""
        if prefix or not suffix:
            return _beginning(self.ordered, prefix)
        return [name[::-1] for name in _beginning(self.backwards, suffix[::-1])]


def _beginning(names: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    first = bisect_left(names, prefix)
    return names[first : bisect_left(names, prefix + _AFTER_ALL, first)]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern; what stands before its first and after its last wildcard sorts most names out."""

    prefix: str
    suffix: str
    expression: re.Pattern[str]

    @classmethod
    def compile(cls, text: str) -> Pattern:
        """Compile a normalised pattern."""
        collapsed = re.sub(r"\*+", "*", text)
        ends = re.split(r"[*?]", collapsed)
        return cls(ends[0], ends[-1], re.compile(_body(collapsed), re.DOTALL))

    def matches(self, name: str) -> bool:
        """Tell whether a name matches whole."""
        return self.expression.fullmatch(name) is not None

    def among(self, names: Names) -> frozenset[str]:
        """Return the names that match whole."""
        return frozenset(filter(self.expression.fullmatch, names.likely(self.prefix, self.suffix)))


def _body(pattern: str) -> str:
    """Write the expression so that no match goes back behind a star.

    The first place where the text after a star fits leaves the most for the rest, so that place alone is
    tried. Otherwise each further star would multiply the time that a name takes.
    """
    first, *rest = (_piece(text) for text in pattern.split("*"))
    if not rest:
        return first
    *inner, last = rest
    return "".join([first, *(f"(?>.*?{piece})" for piece in inner), ".*", last])


def _piece(text: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in text)


compiled = lru_cache(maxsize=4096)(Pattern.compile)
