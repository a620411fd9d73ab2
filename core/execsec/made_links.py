"""Which links the commands of a line could make for the ones behind or beside them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from core.model.command import CommandFacts, Segment
from core.shell.names import names
from core.shell.reach import links_by_name, makes_no_links

_DOTS = frozenset((".", ".."))
# Options of `cp` behind which no word is a value, and that leave it to the last operand where it copies.
_TAKES_NOTHING: Final = re.compile(
    r"-[rRadPpvfniuLHbxlsZ]+|--(?:recursive|archive|no-dereference|dereference|force|verbose|update|link)"
)


class MadeLinks(Struct, frozen=True):
    """Names that may become links, or directories with links in them.

    With `anywhere` a link may also appear wherever nothing is now; with `over_all` in the place of what is,
    and so it may where one of `merged` is there now, copied over by what lies in a tree of that name.
    """

    names: frozenset[str]
    anywhere: bool
    over_all: bool
    merged: tuple[str, ...] = ()


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
    makers = [each for each in before_or_beside(segment, facts) if not makes_no_links(each)]
    if not makers:
        return None
    made = [_made(each) for each in makers]
    copies = any(each.over_all or each.merged for each in made)
    return MadeLinks(
        frozenset().union(*(each.names for each in made)),
        any(each.anywhere for each in made),
        # Where a copy is not alone, what it finds there may be another directory than now.
        any(each.over_all for each in made) or (copies and len(made) > 1),
        tuple(chain.from_iterable(each.merged for each in made)),
    )


def _made(segment: Segment) -> MadeLinks:
    if not links_by_name(segment):
        return MadeLinks(frozenset(), anywhere=True, over_all=False)
    named = frozenset(filter(None, (posixpath.basename(word.rstrip("/")) for word in segment.argv[1:])))
    if "cp" not in names(segment):
        return MadeLinks(named - _DOTS, anywhere=False, over_all=False)
    merged = _merged(segment)
    return MadeLinks(named - _DOTS, anywhere=True, over_all=merged is None, merged=merged or ())


def _merged(segment: Segment) -> tuple[str, ...] | None:
    """Give where a copy of trees puts each of them; None where that cannot be told, or is what is there.

    `cp -a x/sub ..` copies into `../sub` where that is there, and replaces what is in it.
    """
    options = [word for word in segment.argv[1:] if word[:1] == "-"]
    operands = [word for word in segment.argv[1:] if word[:1] != "-"]
    plain = segment.literal and len(segment.places) == 1 and all(map(_TAKES_NOTHING.fullmatch, options))
    given = [posixpath.basename(word.rstrip("/")) for word in operands[:-1]]
    if not plain or not given or not all(given) or not _DOTS.isdisjoint(given):
        return None
    into = posixpath.join(segment.places[0], operands[-1])
    return tuple(posixpath.join(into, name) for name in given)
