"""Which links the commands of a line could make for the ones behind or beside them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from msgspec import Struct

from core.model.command import CommandFacts, Segment
from core.shell.names import names
from core.shell.reach import links_by_name, makes_no_links

_DOTS = frozenset((".", ".."))


class MadeLinks(Struct, frozen=True):
    """Names that may become links, or directories with links in them.

    With `anywhere` a link may also appear wherever nothing is now; with `over_all` in the place of what is.
    """

    names: frozenset[str]
    anywhere: bool
    over_all: bool


def before_or_beside(segment: Segment, facts: CommandFacts) -> Sequence[Segment]:
    """Give the commands that may have run, or run, when this one does."""
    at = next(index for index, each in enumerate(facts.segments) if each is segment)
    together = any(each.operator in {"|", "&"} for each in facts.segments[at:])
    behind = facts.segments[at + 1 :] if together else ()
    return (*facts.segments[:at], *behind)


def may_be_made(segment: Segment, facts: CommandFacts) -> MadeLinks | None:
    """Tell which links may have come to be when this command runs; None where there are surely none."""
    if len(facts.segments) == 1:
        return None
    made = [_made(each) for each in before_or_beside(segment, facts) if not makes_no_links(each)]
    if not made:
        return None
    return MadeLinks(
        frozenset().union(*(each.names for each in made)),
        any(each.anywhere for each in made),
        any(each.over_all for each in made),
    )


def _made(segment: Segment) -> MadeLinks:
    named = frozenset(filter(None, (posixpath.basename(word.rstrip("/")) for word in segment.argv[1:])))
    if not links_by_name(segment):
        return MadeLinks(named - _DOTS, anywhere=True, over_all=False)
    copies = "cp" in names(segment)
    return MadeLinks(named - _DOTS, anywhere=copies, over_all=copies and _pours(segment))


def _pours(segment: Segment) -> bool:
    """Tell whether what lies in a directory may be copied into one that exists, as `cp -a sub/. .` does."""
    operands = [word for word in segment.argv[1:] if word[:1] != "-"]
    if any(_is_target_option(word) for word in segment.argv[1:]):
        return True
    return any(posixpath.basename(word.rstrip("/")) in _DOTS for word in operands[:-1])


def _is_target_option(word: str) -> bool:
    cluster = word[:1] == "-" and word[:2] != "--" and ("t" in word.lower())
    return cluster or word.startswith(("--t", "--no-t"))
