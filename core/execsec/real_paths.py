"""Which words lead to Sayso's own state by links, where a command sees the whole machine."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from core.execsec.path_pieces import path_pieces
from core.execsec.policy import ExecPolicy
from core.model.command import CommandFacts, Placement, Segment
from core.ports import Resolver

MAX_PATHS: Final = 4096
# Below /proc and /dev, what leads to no other file than one the command has open, or to none at all.
_ORDINARY: Final = re.compile(
    r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/(?:self|thread-self)/fd/\d+"
    r"|/proc/(?:(?:self|thread-self)/)?(?!(?:cwd|root|exe|fd|task|map_files)\Z)[a-z_]+",
    re.ASCII,
)


def with_own_state(
    facts: CommandFacts, resolver: Resolver, policy: ExecPolicy, placement: Placement
) -> CommandFacts:
    """Add to each segment what of the protected its words lead to; the sandbox hides it by itself."""
    protected = policy.protected_paths
    if placement is Placement.SANDBOX or not protected or not facts.segments:
        return facts
    own = {path: resolver.followed(path) or path for path in protected}
    looking = _Looking(resolver, own)
    segments = tuple(replace(segment, leads_to=looking.reached(segment)) for segment in facts.segments)
    return replace(facts, segments=segments)


class _Looking:
    """Follows the words of one command, each path once and at most MAX_PATHS of them."""

    def __init__(self, resolver: Resolver, own: dict[str, str]) -> None:
        self._resolver = resolver
        self._own = own
        self._seen: set[str] = set()

    def reached(self, segment: Segment) -> str | None:
        """Give the protected path that a word leads to, or may lead to by a link that cannot be followed."""
        for path in _paths(segment):
            if path in self._seen:
                continue
            self._seen.add(path)
            reached = self._reached(path) if len(self._seen) <= MAX_PATHS else next(iter(self._own))
            if reached:
                self._seen.discard(path)
                return reached
        return None

    def _reached(self, path: str) -> str | None:
        if _ORDINARY.fullmatch(path):
            return None
        real = self._resolver.followed(path)
        if real is None:
            return next(iter(self._own))
        hit = (own for own, place in self._own.items() if real == place or real.startswith(place + "/"))
        return next(hit, None)


def _paths(segment: Segment) -> Iterator[str]:
    texts = [word.value for word in segment.words] + [word.value for _, word in segment.assignments]
    for piece in dict.fromkeys(piece for text in texts for piece in path_pieces(text) if piece):
        if piece.startswith("/"):
            yield piece
        else:
            yield from (posixpath.join(place, piece) for place in segment.places)
