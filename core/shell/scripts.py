"""Which files a command hands to a program that runs anything: their text may be what runs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace

from core.model.command import CommandFacts, FileIdentity, Segment
from core.ports import Resolver
from core.shell.names import names
from core.shell.programs import CARRIERS, RUNS_ANYTHING

_READS_PROGRAMS = RUNS_ANYTHING | CARRIERS


def with_scripts(facts: CommandFacts, resolver: Resolver) -> CommandFacts:
    """Add to each segment the files that are named in it, as they are now."""
    if not any(_may_read_programs(segment) for segment in facts.segments):
        return facts
    segments = tuple(
        replace(segment, scripts=_scripts(segment, resolver)) if _may_read_programs(segment) else segment
        for segment in facts.segments
    )
    return replace(facts, segments=segments)


def _may_read_programs(segment: Segment) -> bool:
    if not segment.words or segment.builtin:
        return False
    executable = segment.executable
    changeable = executable is not None and not executable.trusted
    return changeable or bool(names(segment) & _READS_PROGRAMS)


def _scripts(segment: Segment, resolver: Resolver) -> tuple[tuple[str, FileIdentity], ...]:
    paths = dict.fromkeys(_paths(segment))
    looked = ((path, resolver.file(path)) for path in paths)
    return tuple((path, identity) for path, identity in looked if identity)


def _paths(segment: Segment) -> Iterator[str]:
    """Give every path that a word may name: itself, `--option=PATH`, `-oPATH`; relative ones need a cwd."""
    for word in segment.words[1:]:
        for text in _named(word.value) if word.literal else ():
            if text.startswith("/"):
                yield text
            elif text:
                yield from (posixpath.join(place, text) for place in segment.places)


def _named(text: str) -> Iterator[str]:
    if not text.startswith("-"):
        yield text
    elif not text.startswith("--"):
        yield text[len("-o") :]
    if "=" in text:
        yield text.partition("=")[2]
    if text[:1] == "@":
        yield text[1:]
