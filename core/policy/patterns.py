"""`*` and `?` over tool names: `*` is any run of characters, `?` exactly one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_AFTER_ALL = "\U0010ffff"
_WILD = {"*": ".*", "?": "."}


def is_pattern(text: str) -> bool:
    """Tell whether a text has a wildcard."""
    return "*" in text or "?" in text


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern; what stands before its first and after its last wildcard sorts most names out."""

    prefix: str
    suffix: str
    expression: re.Pattern[str]

    @classmethod
    def compile(cls, text: str) -> Pattern:
        """Compile a normalised pattern."""
        # runs of stars are one star: otherwise the match could take exponential time
        collapsed = re.sub(r"\*+", "*", text)
        body = "".join(_WILD.get(char, re.escape(char)) for char in collapsed)
        first, last = re.match(r"[^*?]*", collapsed), re.search(r"[^*?]*$", collapsed)
        prefix, suffix = (found.group() if found else "" for found in (first, last))
        return cls(prefix, suffix, re.compile(body, re.DOTALL))

    def among(self, names: Sequence[str]) -> frozenset[str]:
        """Return the names that match whole, of a sorted sequence."""
        first, last = 0, len(names)
        if self.prefix:
            first = bisect_left(names, self.prefix)
            last = bisect_left(names, self.prefix + _AFTER_ALL, first)
        likely = [name for name in names[first:last] if name.endswith(self.suffix)]
        return frozenset(filter(self.expression.fullmatch, likely))


compiled = lru_cache(maxsize=4096)(Pattern.compile)
