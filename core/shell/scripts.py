"""Which files a command hands to a program that runs anything: their text may be what runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from core.model.command import MISSING, CommandFacts, FileIdentity, Segment
from core.ports import Resolver
from core.shell.builtins import CARRYING
from core.shell.carrying import carrying_option
from core.shell.names import loads_nothing, names
from core.shell.piped import only_filters
from core.shell.program_file import PYTHON, RUNS_OPERAND, may_be_verb, module, operands
from core.shell.programs import CARRIERS, PACKAGE_RUNNERS, PRIVILEGE_CHANGERS
from core.shell.word_list import word_list

MAX_FILES: Final = 2048
NOT_THERE: Final = "(not there now)"
_RUN_WORDS: Final = CARRIERS | PRIVILEGE_CHANGERS | PACKAGE_RUNNERS
_JAVASCRIPT: Final = word_list("node nodejs bun deno ts-node tsx")
# What an interpreter tries behind the name that it is given.
_TRIED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(PYTHON, ("/__main__.py", "/__init__.py", ".py")),
    **dict.fromkeys(
        _JAVASCRIPT,
        (
            *(
                f"{index}{end}"
                for index in ("", "/index")
                for end in (".js", ".json", ".node", ".ts", ".tsx")
            ),
            *(".mjs", ".cjs", ".mts", ".cts", ".jsx", "/package.json"),
        ),
    ),
    **dict.fromkeys(("ruby", "jruby"), (".rb", ".so")),
    "java": (".class",),
}
# What Python may load for a module beside its source, or before it.
_LOADED: Final = (
    *("/__main__.py", "/__init__.py", ".py", "/__main__.pyc", "/__init__.pyc", ".pyc"),
    *(f"{init}{end}" for init in ("", "/__init__") for end in (".so", ".abi3.so")),
    *(
        f".cpython-3{minor}-{machine}-linux-gnu.so"
        for minor in range(6, 20)
        for machine in ("x86_64", "aarch64")
    ),
)
# Inside one word, what may stand before and behind a path; a name without these signs is none of a file.
_PARTS: Final = re.compile(r"file://|[=,:!\s]+")
_PART_OF_PATH: Final = re.compile(r"[./]")
# Between the words of a line that is one word: `bash p.sh; ls`.
_BETWEEN: Final = re.compile(r"[\s;|&<>()'\"=]+")
_BARE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_LETTERS: Final = re.compile(r"-[A-Za-z0-9]+")


def with_scripts(facts: CommandFacts, resolver: Resolver, path: Sequence[str]) -> CommandFacts:
    """Add to each segment the files that are named in it, as they are now; bare programs are on the PATH."""
    if not any(_may_read_programs(segment) for segment in facts.segments):
        return facts
    looking = _Looking(resolver, path)
    segments = tuple(
        looking.added(segment) if _may_read_programs(segment) else segment for segment in facts.segments
    )
    return replace(facts, segments=segments)


def _may_read_programs(segment: Segment) -> bool:
    if not segment.words:
        return False
    if segment.builtin:
        return segment.words[0].value in CARRYING
    executable = segment.executable
    data = executable is not None and executable.trusted and only_filters(segment)
    return not (loads_nothing(segment) or data) or _has_carrying_option(segment)


def _runs_words(segment: Segment) -> bool:
    """Tell whether any of its words may be a program, or a line with programs in it."""
    return segment.builtin or bool(names(segment) & _RUN_WORDS) or _has_carrying_option(segment)


def _has_carrying_option(segment: Segment) -> bool:
    return carrying_option(segment, names(segment)) is not None


class _Looking:
    """Looks at the files of one command, at each path once and at MAX_FILES of them."""

    def __init__(self, resolver: Resolver, path: Sequence[str]) -> None:
        self._resolver = resolver
        self._path = tuple(place for place in path if place.startswith("/"))
        self._seen: dict[str, FileIdentity | None] = {}

    def added(self, segment: Segment) -> Segment:
        """Add the files of a segment, and what runs beside them that no pin could hold."""
        room = MAX_FILES - len(self._seen)
        new = list(islice(_new(self._named(segment), self._seen), room + 1))
        self._seen.update((path, self._resolver.file(path)) for path in new[:room])
        if len(new) > room:
            named = dict.fromkeys(new[:room])
            unpinned: str | None = "one of more files than are looked at"
        else:
            named = dict.fromkeys(self._named(segment))
            unpinned = self._unpinned(segment)
        would_run = frozenset(self._would_run(segment))
        looked_at = ((path, self._seen[path]) for path in named)
        found = tuple((path, file or MISSING) for path, file in looked_at if file or path in would_run)
        return replace(segment, scripts=found, unpinned=unpinned)

    def _named(self, segment: Segment) -> Iterator[str]:
        yield from _paths(segment)
        yield from _run(segment, self._path)

    def _would_run(self, segment: Segment) -> Iterator[str]:
        """Give where what would run is, were it there: a file put there later makes another command of it."""
        yield from _run(segment, self._path)
        for operand in operands(segment):
            for place in _at(segment, operand):
                if not self._seen.get(place):
                    yield from (f"{place}{end}" for end in ("", *_endings(segment)))

    def _unpinned(self, segment: Segment) -> str | None:
        """Find what runs and cannot be pinned: a directory, a file that is missing, a cache of a module."""
        if segment.executable is None and segment.cwd is None:
            return f"`{segment.words[0].value}`"
        if changing := _not_literal(segment):
            return f"what `{changing}` becomes"
        given = module(segment)
        if given:
            return self._cache(segment, given)
        any_file, first = False, None
        for operand in operands(segment):
            places = list(_at(segment, operand))
            if any(self._seen.get(place) for place in places):
                any_file = True
            elif directory := next((place for place in places if self._resolver.real_directory(place)), None):
                return posixpath.normpath(directory)
            else:
                endings = _endings(segment)
                any_file = any_file or any(self._seen.get(f"{at}{end}") for at in places for end in endings)
                first = first or (None if may_be_verb(segment, operand) else operand)
        return f"{first} {NOT_THERE}" if first and not any_file else None

    def _cache(self, segment: Segment, given: str) -> str | None:
        """Find where Python keeps what it compiled of a module of this place: that may run in its stead."""
        parts = given.split(".")
        for length in range(1, len(parts) + 1):
            for place in _at(segment, "/".join(parts[:length])):
                caches = {
                    f"{place}/__pycache__": ("/__main__.py", "/__init__.py"),
                    f"{posixpath.dirname(place)}/__pycache__": (".py",),
                }
                for cache, sources in caches.items():
                    here = any(self._seen.get(f"{place}{source}") for source in sources)
                    if here and self._resolver.real_directory(cache):
                        return cache
        return None


def _new(paths: Iterable[str], seen: Container[str]) -> Iterator[str]:
    fresh: set[str] = set()
    for path in paths:
        if path not in seen and path not in fresh:
            fresh.add(path)
            yield path


def _run(segment: Segment, path: tuple[str, ...]) -> Iterator[str]:
    """Give where a program may be that is not found yet, or that one which runs its words would find."""
    if segment.executable is None and not segment.builtin:
        yield from _places(segment, segment.words[0].value, path)
    if _runs_words(segment):
        texts = (word.value for word in segment.words[1:] if word.literal)
        pieces = dict.fromkeys(piece for text in texts for piece in (text, *_BETWEEN.split(text)))
        for piece in pieces:
            yield from _places(segment, piece, path)


def _places(segment: Segment, name: str, path: tuple[str, ...]) -> Iterator[str]:
    yield from _at(segment, name)
    if _BARE.fullmatch(name):
        given = (
            value.value for key, value in (*segment.assigned_before, *segment.assignments) if key == "PATH"
        )
        own = (place for value in given for place in value.split(":") if place.startswith("/"))
        yield from (posixpath.join(place, name) for place in (*path, *own))


def _not_literal(segment: Segment) -> str | None:
    """Find a word that may name what runs, and that bash still expands."""
    if not _runs_words(segment) and names(segment).isdisjoint(RUNS_OPERAND):
        return None
    return next((word.source for word in segment.words[1:] if not word.literal), None)


def _paths(segment: Segment) -> Iterator[str]:
    """Give every path that a word may name, wherever the command may run; relative ones need a directory."""
    endings = _endings(segment)
    for word in segment.words[1:]:
        if not word.literal or not word.value:
            continue
        for text in _named(word.value):
            for place in _at(segment, text):
                yield place
                yield from (f"{place}{end}" for end in endings)
        for part in _parts(word.value):
            yield from _at(segment, part)
    if given := module(segment):
        yield from _module_files(segment, given)


def _endings(segment: Segment) -> tuple[str, ...]:
    return tuple(end for name in names(segment) for end in _TRIED.get(name, ()))


def _parts(text: str) -> Iterator[str]:
    """Give what inside a word looks like a path: `exec=./x`, `!./x -9`, `a.jar:b.jar`, `file:///x`."""
    if _PARTS.search(text):
        yield from (part for part in _PARTS.split(text) if _PART_OF_PATH.search(part))


def _at(segment: Segment, text: str) -> Iterator[str]:
    if text.startswith("/"):
        yield text
    elif text:
        yield from (posixpath.join(place, text) for place in segment.places)


def _named(text: str) -> Iterator[str]:
    """Give what a word may name: itself, `--option=PATH`, and of `-abPATH` all behind each letter."""
    if not text.startswith("-"):
        yield text
    elif letters := _LETTERS.match(text):
        yield from (text[at:] for at in range(len("-o"), letters.end() + 1))
    elif not text.startswith("--"):
        yield text[len("-o") :]
    if "=" in text:
        yield text.partition("=")[2]
    if text[:1] == "@":
        yield text[1:]


def _module_files(segment: Segment, given: str) -> Iterator[str]:
    parts = given.split(".")
    for length in range(1, len(parts) + 1):
        for place in _at(segment, "/".join(parts[:length])):
            yield from (f"{place}{end}" for end in _LOADED)
