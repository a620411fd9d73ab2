"""Which files a command hands to a program that runs anything: their text may be what runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from core.model.command import CommandFacts, FileIdentity, Segment
from core.ports import Resolver
from core.shell.names import names
from core.shell.programs import CARRIERS, INTERPRETERS, RUNS_ANYTHING
from core.shell.word_list import word_list

MAX_FILES: Final = 2048
_READS_PROGRAMS: Final = RUNS_ANYTHING | CARRIERS
_PYTHON: Final = word_list("python pypy ipython micropython pydoc pdb")
_JAVASCRIPT: Final = word_list("node nodejs bun deno ts-node tsx")
_FILTERS: Final = word_list("awk gawk mawk nawk original-awk sed gsed dc bc m4 ed red")
_RUNS_DIRECTORIES: Final = INTERPRETERS - _FILTERS
# What an interpreter tries behind the name that it is given.
_TRIED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_PYTHON, ("/__main__.py", "/__init__.py", ".py")),
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
_MODULE: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_EVALUATES: Final = re.compile(r"-[A-Za-z]*[ceEp]|--eval|--print")
_LETTERS: Final = re.compile(r"-[A-Za-z0-9]+")


def with_scripts(facts: CommandFacts, resolver: Resolver) -> CommandFacts:
    """Add to each segment the files that are named in it, as they are now."""
    if not any(_may_read_programs(segment) for segment in facts.segments):
        return facts
    looking = _Looking(resolver)
    segments = tuple(
        looking.added(segment) if _may_read_programs(segment) else segment for segment in facts.segments
    )
    return replace(facts, segments=segments)


def _may_read_programs(segment: Segment) -> bool:
    if not segment.words or segment.builtin:
        return False
    executable = segment.executable
    changeable = executable is not None and not executable.trusted
    return changeable or bool(names(segment) & _READS_PROGRAMS)


class _Looking:
    """Looks at the files of one command, at each path once and at MAX_FILES of them."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._seen: dict[str, FileIdentity | None] = {}

    def added(self, segment: Segment) -> Segment:
        """Add the files of a segment, and what runs beside them that no pin could hold."""
        room = MAX_FILES - len(self._seen)
        paths = list(islice(_new(segment, self._seen), room + 1))
        if len(paths) > room:
            return replace(segment, unpinned="one of more files than are looked at")
        self._seen.update((path, self._resolver.file(path)) for path in paths)
        every = dict.fromkeys(_paths(segment))
        found = tuple((path, identity) for path in every if (identity := self._seen[path]))
        return replace(segment, scripts=found, unpinned=self._directory(segment))

    def _directory(self, segment: Segment) -> str | None:
        """Find a directory in the place of the program: what in it runs is not known from its name."""
        if not names(segment) & _RUNS_DIRECTORIES or _says_program(segment):
            return None
        operands = (word.value for word in segment.words[1:] if word.literal and word.value[:1] != "-")
        for operand in operands:
            places = list(_at(segment, operand))
            if any(self._seen.get(place) for place in places):
                return None
            directory = next((place for place in places if self._resolver.real_directory(place)), None)
            if directory is not None:
                return directory
        return None


def _new(segment: Segment, seen: dict[str, FileIdentity | None]) -> Iterator[str]:
    fresh: set[str] = set()
    for path in _paths(segment):
        if path not in seen and path not in fresh:
            fresh.add(path)
            yield path


def _paths(segment: Segment) -> Iterator[str]:
    """Give every path that a word may name, wherever the command may run; relative ones need a directory."""
    endings = tuple(end for name in names(segment) for end in _TRIED.get(name, ()))
    for word in segment.words[1:]:
        for text in _named(word.value) if word.literal and word.value else ():
            for place in _at(segment, text):
                yield place
                yield from (f"{place}{end}" for end in endings)
    if module := _module(segment):
        yield from _module_files(segment, module)


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


def _says_program(segment: Segment) -> bool:
    """Tell whether the options that come first are code or a module, so that no operand is the program."""
    arguments = segment.argv[1:]
    by_module = names(segment) & _PYTHON and arguments and arguments[0].startswith("-m")
    return bool(by_module or (arguments and _EVALUATES.fullmatch(arguments[0])))


def _module(segment: Segment) -> str | None:
    """Give the module of `python -m NAME`, whose file Python looks for where it runs."""
    if not names(segment) & _PYTHON:
        return None
    arguments = segment.argv[1:]
    for index, argument in enumerate(arguments):
        if argument.startswith("-m"):
            given = argument[len("-m") :] or next(iter(arguments[index + 1 :]), "")
            return given if _MODULE.fullmatch(given) else None
    return None


def _module_files(segment: Segment, module: str) -> Iterator[str]:
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        for place in _at(segment, "/".join(parts[:length])):
            yield from (f"{place}{end}" for end in _TRIED["python"])
