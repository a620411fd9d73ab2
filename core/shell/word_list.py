"""Tables of names, written as text."""

from __future__ import annotations


def word_list(text: str) -> frozenset[str]:
    """Split a table of names at blanks."""
    return frozenset(text.split())
