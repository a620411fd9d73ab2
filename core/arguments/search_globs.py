"""Patterns that a search brings: what a program could expand into a way out of the directory is refused."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from core.arguments.unclear import UnclearArgumentError

# Alternatives of plain words: whatever is picked, no dot and no slash comes of it.
_PLAIN_BRACES = re.compile(r"\{[A-Za-z0-9_-]+(?:,[A-Za-z0-9_-]+)*\}")
_EXPANDED = re.compile(r"[{}\\]|[@+!?*]\(")


def check_search_glob(pattern: object) -> None:
    """Refuse a glob that may lead out of its directory; raises UnclearArgumentError."""
    if not isinstance(pattern, str) or ".." in pattern or pattern.startswith(("/", "~")):
        raise UnclearArgumentError(
            "argument pattern must be a glob without `..` that does not begin with / or ~; "
            "send the directory in path"
        )
    plain = _PLAIN_BRACES.sub("x", pattern)
    if _EXPANDED.search(plain) or any(_may_climb(part) for part in plain.split("/")):
        raise UnclearArgumentError(
            "argument pattern may lead out of the directory once it is expanded: braces may hold plain words "
            "alone, as in {ts,tsx}, and @(…), +(…), !(…), ?(…), *(…), backslashes and wildcards that match "
            "`..` are refused; send one plain glob for each"
        )


def _may_climb(part: str) -> bool:
    """Tell whether some programs match `..` by it: wildcards do where the dot is written, as in `.*`."""
    return part.startswith((".", "[")) and fnmatchcase("..", part)
