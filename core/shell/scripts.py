"""Which files a command hands to a program that runs anything: their text may be what runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from core.model.command import (
    MISSING,
    NOT_LOOKED_AT,
    UNHASHED,
    CommandFacts,
    Executable,
    FileIdentity,
    Segment,
)
from core.model.plan import Beginning
from core.ports import Resolver
from core.shell.builtins import AT_ONCE, harmless
from core.shell.carried import RUN_WORDS, words_that_run
from core.shell.carrying import carrying_option
from core.shell.environment import only_looks
from core.shell.named_files import LONGEST_PATH, at, endings, module_files, paths, paths_in, pieces
from core.shell.names import loads_nothing, names
from core.shell.piped import only_filters
from core.shell.program_file import RUNS_OPERAND, may_be_verb, module, operands
from core.shell.shebang import interpreters

MAX_FILES: Final = 2048
MAX_NAMES: Final = 16 * MAX_FILES  # those that were looked at already included
MAX_VALUES: Final = 256
MAX_TEXT: Final = 256 * 1024  # characters of values, each counted once for every command that it is set for
MAX_SEARCHED: Final = 16  # places of a PATH that the line itself sets
NOT_THERE: Final = "(not there now)"
_TOO_MANY: Final = "one of more files than are looked at"
_BARE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_PATH: Final = "PATH"
_NO_TEXT: Final = (b"\x7fELF", b"PK\x03\x04")  # beginnings of a program, and of an archive that Java runs
_DEEPEST: Final = (
    LONGEST_PATH // 4
)  # from a deeper directory a path may be followed that is too long to look at

Variables = Sequence[tuple[str, str]]


def with_scripts(
    facts: CommandFacts, resolver: Resolver, path: Sequence[str], env: Variables = ()
) -> CommandFacts:
    """Add to each segment the files that are named in it, as they are now.

    Bare programs are on the PATH; `env` is what the request sets.
    """
    if not any(_may_read_programs(segment) for segment in facts.segments):
        return facts
    looking = _Looking(resolver, path, env)
    segments = tuple(
        looking.added(segment) if _may_read_programs(segment) else segment for segment in facts.segments
    )
    return replace(facts, segments=segments)


def begins_with(facts: CommandFacts) -> Beginning:
    """Name the files that run first: the programs of the first pipeline, and what they are given."""
    at_once, waiting = _apart(facts)
    first = dict.fromkeys(path for segment in at_once for path in _first(segment))
    later = [path for segment in waiting for path in _first(segment)]
    later += (path for segment in (*at_once, *waiting) for path in _later(segment))
    words = (path for segment in (*at_once, *waiting) for path in _words(segment))
    return Beginning(tuple(first), tuple(dict.fromkeys(later)), tuple(dict.fromkeys(words)))


def pinned_files(facts: CommandFacts, by_pin: Sequence[bool]) -> tuple[str, ...]:
    """Name the files whose text is pinned, of what runs first; `by_pin` tells which parts a pin admits."""
    first = set(map(id, _begin(facts)))
    tied = (each for each, pinned in zip(facts.segments, by_pin, strict=False) if pinned)
    held = (each for each in tied if id(each) in first)
    return tuple(dict.fromkeys(path for each in held for path, identity in each.scripts if identity.sha256))


def starts_at_once(segment: Segment, facts: CommandFacts) -> bool:
    """Tell whether it belongs to what the line begins with, so that its files are held still."""
    return any(each is segment for each in _begin(facts))


def _begin(facts: CommandFacts) -> Iterator[Segment]:
    """Give the first pipeline, and the builtins before it."""
    begun = False
    for segment in facts.segments:
        begun = begun or not segment.builtin
        yield segment
        if begun and segment.operator != "|":
            return


def _apart(facts: CommandFacts) -> tuple[list[Segment], list[Segment]]:
    """Part what runs first from what waits for a builtin of which nobody knows how long it takes."""
    parts: tuple[list[Segment], list[Segment]] = ([], [])
    waits = False
    for segment in _begin(facts):
        waits = waits or (segment.builtin and not AT_ONCE.issuperset(segment.argv[:1]))
        parts[waits].append(segment)
    return parts


def _first(segment: Segment) -> Iterator[str]:
    yield from (executable.path for executable in segment.executables)
    given = (place for operand in islice(operands(segment), 1) for place in at(segment, operand))
    yield from _there(segment, (*given, *module_files(segment), *segment.interpreters))


def _later(segment: Segment) -> Iterator[str]:
    """Give what may run behind another file: `node -r ./first.js ./then.js`."""
    given = (place for operand in islice(operands(segment), 1, None) for place in at(segment, operand))
    yield from _there(segment, given)


def _words(segment: Segment) -> Iterator[str]:
    yield from _there(segment, segment.carried)


def _there(segment: Segment, paths: Iterable[str]) -> Iterator[str]:
    there = {path for path, identity in segment.scripts if identity not in (MISSING, NOT_LOOKED_AT)}
    return (path for path in paths if path in there)


def _may_read_programs(segment: Segment) -> bool:
    if not segment.words:
        return False
    if segment.builtin:
        return not harmless(segment)
    executable = segment.executable
    data = executable is not None and executable.trusted and only_filters(segment)
    return not (loads_nothing(segment) or data) or _has_carrying_option(segment)


def _runs_words(segment: Segment) -> bool:
    """Tell whether any of its words may be a program, or a line with programs in it."""
    return segment.builtin or bool(names(segment) & RUN_WORDS) or _has_carrying_option(segment)


def _has_carrying_option(segment: Segment) -> bool:
    return carrying_option(segment, names(segment)) is not None


class _TooManyError(Exception):
    """More is named than is looked at."""


class _Looking:
    """Looks at the files of one command, at each path once, and at no more than MAX_FILES of them."""

    def __init__(self, resolver: Resolver, path: Sequence[str], env: Variables) -> None:
        self._resolver = resolver
        self._path = tuple(place for place in path if place.startswith("/"))
        self._env = env
        self._seen: dict[str, FileIdentity | None] = {}
        self._names = MAX_NAMES
        self._text = MAX_TEXT

    def added(self, segment: Segment) -> Segment:
        """Add the files of a segment, and what runs beside them that no pin could hold."""
        held: dict[str, FileIdentity] = {}
        carried: dict[str, FileIdentity] = {}
        try:
            path = self._searched(segment)
            self._hold(segment, path, held, carried)
            named = len(held)
            unpinned = self._interpreters(segment, path, held) or self._unpinned(segment)
        except _TooManyError:
            named, unpinned = len(held), _TOO_MANY
        interpreters = tuple(islice(held, named, None))
        return replace(
            segment,
            scripts=tuple(held.items()),
            interpreters=interpreters,
            unpinned=unpinned,
            carried=tuple(place for place, identity in carried.items() if identity.sha256),
            unread=self._unread(segment, held, interpreters),
        )

    def _hold(
        self,
        segment: Segment,
        path: tuple[str, ...],
        held: dict[str, FileIdentity],
        carried: dict[str, FileIdentity],
    ) -> None:
        """Add what is there of what is named, and of what would run also where it is to be.

        A file put there later makes another command of it.
        """
        self._look(paths(segment), held)
        self._look(module_files(segment), held, missing=True)
        try:
            for text in self._values(segment):
                self._look(_by_value(segment, text, path), carried, missing=True)
        finally:
            held.update(carried)
        self._look(_run(segment, path), held, missing=True)
        if _runs_words(segment):
            for text in self._words_that_run(segment, path):
                whole = any(map(str.isspace, text))  # its parts are given by themselves
                self._look((_places if whole else _by_word)(segment, text, path), carried)
        self._look(self._operands(segment), held, missing=True)

    def _look(self, named: Iterable[str], held: dict[str, FileIdentity], *, missing: bool = False) -> None:
        """Look at each path that is new; those where nothing is count where `missing` says so."""
        seen = self._seen
        for path in named:
            self._names -= 1
            if self._names < 0 or (len(seen) >= MAX_FILES and path not in seen):
                raise _TooManyError
            if path not in seen:
                seen[path] = self._resolver.file(path) if len(path) < LONGEST_PATH else None
            if found := seen[path]:
                held[path] = found
            elif missing:
                held[path] = MISSING

    def _searched(self, segment: Segment) -> tuple[str, ...]:
        """Give where a bare name is looked for: on our PATH, and on those that are set in its place."""
        if any(len(place) > _DEEPEST for place in segment.places):
            raise _TooManyError
        set_here = (*segment.assigned_before, *segment.assignments)
        own = [value.value for name, value in set_here if name == _PATH]
        own += [value for name, value in self._env if name == _PATH]
        if not own:
            return self._path
        every = (place for value in own for place in value.split(":", MAX_SEARCHED + 1) if place)
        first = list(islice(every, MAX_SEARCHED + 1))
        if len(first) > MAX_SEARCHED:
            raise _TooManyError
        return (*self._path, *(absolute for place in first for absolute in at(segment, place)))

    def _values(self, segment: Segment) -> tuple[str, ...]:
        """Give what is set for it: a program may run, or load, what a variable names."""
        if not (self._env or segment.assignments or segment.assigned_before):
            return ()
        set_here = ((name, value.value) for name, value in (*segment.assigned_before, *segment.assignments))
        every = (
            value
            for name, value in (*set_here, *self._env)
            if value and name != _PATH and not only_looks(name, value)
        )
        first = tuple(islice(every, MAX_VALUES + 1))
        self._text -= sum(map(len, first))
        if len(first) > MAX_VALUES or self._text < 0:
            raise _TooManyError
        return first

    def _operands(self, segment: Segment) -> Iterator[str]:
        """Give what an interpreter tries for a program that is not there now."""
        for operand in operands(segment):
            for place in at(segment, operand):
                if not self._seen.get(place):
                    yield place
                    yield from (f"{place}{end}" for end in endings(segment))

    def _words_that_run(self, segment: Segment, path: tuple[str, ...]) -> Iterator[str]:
        def found(name: str) -> Executable | None:
            relative = "/" in name and not name.startswith("/")
            return None if relative or path != self._path else self._resolver.find(name, path=path, cwd="/")

        return words_that_run(segment, found)

    def _unread(
        self, segment: Segment, held: Mapping[str, FileIdentity], interpreters: Iterable[str]
    ) -> str | None:
        """Find what surely runs, and is too large to be read, or closed to us: no program, and no archive."""
        given = (place for operand in operands(segment) for place in at(segment, operand))
        first = next((place for place in given if held.get(place, MISSING) is not MISSING), None)
        for place in (*filter(None, (first,)), *module_files(segment), *interpreters):
            identity = held.get(place, MISSING)
            if identity.sha256 != UNHASHED or identity == NOT_LOOKED_AT:
                continue
            if not (self._resolver.beginning(place, identity) or b"").startswith(_NO_TEXT):
                return place
        return None

    def _interpreters(
        self, segment: Segment, path: tuple[str, ...], held: dict[str, FileIdentity]
    ) -> str | None:
        """Add what runs the scripts that are held, and their program itself, where others can change it.

        Returns a script of which it cannot be told.
        """
        followed: set[bytes] = set()
        pending = [*self._program(segment), *held.items()]
        for script, identity in pending:
            beginning = self._beginning(script, identity)
            if beginning in followed:
                continue
            runs = interpreters(segment, beginning)
            if runs is None:
                return script
            followed.add(beginning or b"")
            for command in runs:
                found: dict[str, FileIdentity] = {}
                self._look(_interpreter(command, path), found, missing=True)
                pending += found.items()
                held.update((place, each) for place, each in found.items() if each is MISSING or each.sha256)
                unknown = _relative(command) if segment.cwd is None else None
                if unknown := unknown or self._unpinned_operand(command):
                    return unknown
        return None

    def _program(self, segment: Segment) -> Iterator[tuple[str, FileIdentity]]:
        if segment.executable is not None and segment.executable.script:
            yield segment.executable.real_path, segment.executable.identity

    def _beginning(self, path: str, identity: FileIdentity) -> bytes | None:
        if identity in (MISSING, NOT_LOOKED_AT):
            return b""
        return self._resolver.beginning(path, identity)

    def _unpinned(self, segment: Segment) -> str | None:
        """Find what runs and cannot be pinned: a directory, a file that is missing, a cache of a module."""
        if segment.executable is None and segment.cwd is None:
            return f"`{segment.words[0].value}`"
        if changing := _not_literal(segment):
            return f"what `{changing}` becomes"
        return self._unpinned_operand(segment)

    def _unpinned_operand(self, segment: Segment) -> str | None:
        given = module(segment)
        if given:
            return self._cache(segment, given)
        any_file, first = False, None
        for operand in operands(segment):
            places = list(at(segment, operand))
            if any(self._seen.get(place) for place in places):
                any_file = True
            elif directory := next((place for place in places if self._resolver.real_directory(place)), None):
                return posixpath.normpath(directory)
            else:
                tried = endings(segment)
                any_file = any_file or any(
                    self._seen.get(f"{place}{end}") for place in places for end in tried
                )
                first = first or (None if may_be_verb(segment, operand) else operand)
        return f"{first} {NOT_THERE}" if first and not any_file else None

    def _cache(self, segment: Segment, given: str) -> str | None:
        """Find where Python keeps what it compiled of a module of this place: that may run in its stead."""
        if len(given) >= LONGEST_PATH:
            raise _TooManyError
        parts = given.split(".")
        for length in range(1, len(parts) + 1):
            for place in at(segment, "/".join(parts[:length])):
                caches = {
                    f"{place}/__pycache__": ("/__main__.py", "/__init__.py"),
                    f"{posixpath.dirname(place)}/__pycache__": (".py",),
                }
                for cache, sources in caches.items():
                    here = any(self._seen.get(f"{place}{source}") for source in sources)
                    if here and self._resolver.real_directory(cache):
                        return cache
        return None


def _by_value(segment: Segment, text: str, path: tuple[str, ...]) -> Iterator[str]:
    """Give every file that the value of a variable may name: as a path, a program, or a line with both."""
    yield from paths_in(segment, text, endings(segment))
    for piece in pieces(text):
        yield from _places(segment, piece, path)


def _run(segment: Segment, path: tuple[str, ...]) -> Iterator[str]:
    """Give where a program may be that is not found yet, or that one which runs its words would find."""
    if segment.executable is None and not segment.builtin:
        yield from _places(segment, segment.words[0].value, path)
    if _runs_words(segment):
        for word in segment.words[1:]:
            if word.literal:
                yield from _by_word(segment, word.value, path)


def _by_word(segment: Segment, text: str, path: tuple[str, ...]) -> Iterator[str]:
    yield from _places(segment, text, path)
    for piece in pieces(text):
        yield from _places(segment, piece, path)


def _relative(command: Segment) -> str | None:
    name = command.words[0].value
    return f"`{name}`" if "/" in name and not name.startswith("/") else None


def _interpreter(command: Segment, path: tuple[str, ...]) -> Iterator[str]:
    yield from _run(command, path)
    yield from paths(command)
    yield from module_files(command)


def _places(segment: Segment, name: str, path: tuple[str, ...]) -> Iterator[str]:
    yield from at(segment, name)
    if _BARE.fullmatch(name):
        for place in path:
            yield posixpath.join(place, name)


def _not_literal(segment: Segment) -> str | None:
    """Find a word that may name what runs, and that bash still expands."""
    if not _runs_words(segment) and names(segment).isdisjoint(RUNS_OPERAND):
        return None
    return next((word.source for word in segment.words[1:] if not word.literal), None)
