"""Which words lead to Sayso's own state, or to a directory that holds it, where nothing hides it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sized
from itertools import chain
from typing import Final

from msgspec.structs import replace

from core.execsec.deny_rules import GLOB_SIGN, glob_reaches, is_of_a_process
from core.execsec.made_links import MadeLinks, may_be_made
from core.execsec.path_pieces import LONGEST_PATH, at_home, expanded, path_pieces
from core.execsec.policy import ExecPolicy
from core.model.command import CommandFacts, Exposure, Placement, Segment
from core.ports import Resolver
from core.shell.carrying import listing_option
from core.shell.environments import prints_environment
from core.shell.names import names
from core.shell.operands import texts
from core.shell.programs import RUNS_ANYTHING
from core.shell.reach import descends, following, looks_around, opens_nothing

MAX_PATHS: Final = 4096
MAX_PARTS: Final = 65_536  # of all these paths together
# Below /proc and /dev, what leads to no other file than one the command has open, or to none at all.
_ORDINARY: Final = re.compile(
    r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/(?:self|thread-self)/fd/\d+"
    r"|/proc/(?:(?:self|thread-self)/)?(?!(?:cwd|root|exe|fd|task|map_files)\Z)[a-z_]+",
    re.ASCII,
)

_BLANK: Final = re.compile(r"\s")

# The directories in which that lies.
_PROCESSES: Final = re.compile(r"/proc(?:/(?:\d+|self|thread-self)(?:/task(?:/\d+)?)?)?", re.ASCII)


def with_own_state(
    facts: CommandFacts, resolver: Resolver, policy: ExecPolicy, placement: Placement
) -> CommandFacts:
    """Add to each segment how its words lead to the protected; the sandbox hides it by itself."""
    protected = policy.protected_paths
    if placement is Placement.SANDBOX or not protected or not facts.segments:
        return facts
    own = {path: resolver.followed(path) or path for path in protected}
    looking = _Looking(resolver, own, policy.home)
    return replace(facts, segments=tuple(looking.seen(segment, facts) for segment in facts.segments))


class _Looking:
    """Follows the words of one command, each path once, and no more than MAX_PATHS and MAX_PARTS."""

    def __init__(self, resolver: Resolver, own: dict[str, str], home: str) -> None:
        self._resolver = resolver
        self._own = own
        self._home = home
        self._above = frozenset(above for place in (*own, *own.values()) for above in _directories(place))
        self._followed: dict[str, str | None] = {}
        self._kinds: dict[str, str | None] = {}
        self._parts = 0

    def seen(self, segment: Segment, facts: CommandFacts) -> Segment:
        """Add the protected path that a word leads to, else how it may be come upon otherwise."""
        leads_to = self._reached(segment)
        exposes = None if leads_to else self._exposed(segment, facts)
        return replace(segment, leads_to=leads_to, exposes=exposes)

    def _reached(self, segment: Segment) -> str | None:
        """Give the protected path that a word leads to, or the path of which it cannot be told."""
        given = [word.value for word in segment.words] + [word.value for _, word in segment.assignments]
        given += () if segment.literal else expanded(segment, self._home)
        for path in self._paths(given, segment):
            plain = posixpath.normpath(path)
            if is_of_a_process(plain):
                return plain
            if _ORDINARY.fullmatch(path):
                continue
            real = self._follow(path)
            if real is None:
                return path
            if is_of_a_process(real):
                return real
            for own, place in self._own.items():
                if real == place or real.startswith(place + "/"):
                    return own
        return None

    def _exposed(self, segment: Segment, facts: CommandFacts) -> tuple[Exposure, str] | None:
        option = listing_option(segment, names(segment))
        if option is not None:
            return Exposure.UNNAMED, option
        if prints_environment(segment):
            return Exposure.ENVIRONMENT, segment.argv[0]
        if descends(segment):
            named = self._naming_above(segment)
            if named is not None:
                return Exposure.NAMES_ABOVE, named
        linked = self._linked(segment, facts)
        if linked is not None:
            return linked
        if looks_around(segment):
            above = next(filter(self._is_above, segment.places), None)
            if above is not None:
                return Exposure.RUNS_ABOVE, above
        return None

    def _linked(self, segment: Segment, facts: CommandFacts) -> tuple[Exposure, str] | None:
        """Find a word that names, or an option that follows, what a command before it could make a link.

        What can run anything is admitted with its arguments, or by an operator's expression for them, and
        reaches links without a word for them.
        """
        if opens_nothing(segment) or not names(segment).isdisjoint(RUNS_ANYTHING):
            return None
        made = may_be_made(segment, facts)
        if made is None:
            return None
        if any(self._kind(path) not in {"missing", "file"} for path in made.merged):
            made = replace(made, over_all=True)
        if option := following(segment):
            return Exposure.FOLLOWS, option
        no_paths = texts(segment)
        words = (word for at, word in enumerate(segment.argv) if at and at not in no_paths)
        found = (word for word in words if self._may_be_link(word, segment, made))
        return next(((Exposure.LINK, word) for word in found), None)

    def _may_be_link(self, word: str, segment: Segment, made: MadeLinks) -> bool:
        for piece in filter(None, path_pieces(word)):
            option = word[:1] == "-" and not word.endswith(f"={piece}")
            if made.names.intersection(piece.split("/")) or (made.over_all and not option):
                return True
            path = "/" in piece and not (option and piece is word)
            if (path or (made.anywhere and not option)) and self._missing(piece, segment):
                return True
        return False

    def _missing(self, piece: str, segment: Segment) -> bool:
        return any(self._kind(path) in {None, "missing"} for path in self._paths((piece,), segment))

    def _kind(self, path: str) -> str | None:
        """Tell what is there now; None where that cannot be told, and for one too many."""
        if path not in self._kinds and self._may_look(path, self._kinds):
            found = self._resolver.real_path(path)
            self._kinds[path] = None if found is None else found.kind
        return self._kinds.get(path)

    def _naming_above(self, segment: Segment) -> str | None:
        """Find the first word that names a directory in which something protected lies."""
        becomes = () if segment.literal else expanded(segment, self._home)
        unknown = next((word for word in becomes if self._names_above(word, segment)), None)
        named = (at for at, word in enumerate(segment.argv) if at and self._names_above(word, segment))
        first = next(named, None)
        if first is None or unknown is not None:
            return unknown
        no_paths = texts(segment)
        found = (at for at in chain((first,), named) if at not in no_paths)
        return next((segment.argv[at] for at in found), None)

    def _names_above(self, word: str, segment: Segment) -> bool:
        pieces = (piece for piece in path_pieces(word) if _may_be_meant(piece, word, segment))
        return any(map(self._is_above, self._absolute(pieces, segment)))

    def _is_above(self, path: str) -> bool:
        """Tell whether this is a directory in which something protected lies, or may become one."""
        if GLOB_SIGN.search(path) and any(_may_become(path, above) for above in self._above):
            return True
        if _PROCESSES.fullmatch(posixpath.normpath(path)):
            return True
        real = None if _ORDINARY.fullmatch(path) else self._follow(path)
        return real is not None and (real in self._above or _PROCESSES.fullmatch(real) is not None)

    def _follow(self, path: str) -> str | None:
        """Return where a path leads; None where that cannot be told, and for one too many."""
        if path not in self._followed:
            if len(path) > LONGEST_PATH:
                return path
            if not self._may_look(path, self._followed):
                return None
            self._followed[path] = self._resolver.followed(path)
        return self._followed[path]

    def _may_look(self, path: str, looked_at: Sized) -> bool:
        self._parts += path.count("/")
        return len(looked_at) < MAX_PATHS and self._parts <= MAX_PARTS

    def _paths(self, given: Iterable[str], segment: Segment) -> Iterator[str]:
        return self._absolute((piece for text in given for piece in path_pieces(text)), segment)

    def _absolute(self, pieces: Iterable[str], segment: Segment) -> Iterator[str]:
        for piece in filter(None, dict.fromkeys(pieces)):
            path = at_home(piece, self._home)
            for full in (path,) if path.startswith("/") else _below(segment.places, path):
                # So long a path the kernel opens not, but what a program may make of it, perhaps.
                yield posixpath.normpath(full) if len(full) > LONGEST_PATH else full


def _may_be_meant(piece: str, word: str, segment: Segment) -> bool:
    """Tell whether a part of a word may be meant as a directory, and is no separator or end of a sentence."""
    if piece == word or (word[:2] == "--" and word.endswith(f"={piece}")):
        return True
    anything = not names(segment).isdisjoint(RUNS_ANYTHING)
    if word[:1] != "-":
        return not _is_root(piece) and not (anything and _BLANK.search(word))
    return not (anything and _is_root(piece))


def _below(places: Iterable[str], path: str) -> Iterator[str]:
    return (posixpath.join(place, path) for place in places)


def _is_root(piece: str) -> bool:
    return piece[:1] == "/" and not piece.strip("/.")


def _directories(path: str) -> Iterator[str]:
    """Give every directory above a path."""
    while path not in {"", "/"}:
        path = posixpath.dirname(path)
        yield path


def _may_become(pattern: str, directory: str) -> bool:
    """Tell whether a glob may become exactly this directory."""
    plain = posixpath.normpath(pattern)
    return plain.count("/") == directory.count("/") and glob_reaches(plain, directory)
