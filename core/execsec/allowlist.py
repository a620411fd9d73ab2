"""Which allowlist entry, if any, admits a segment."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from core.execsec.pins import cannot_be_pinned, pin, variables
from core.model.allowlist import AllowlistEntry
from core.model.command import Executable, Placement, Segment
from core.shell import render
from core.shell.characters import forbidden_character
from core.shell.inline_code import inline_code
from core.shell.names import names
from core.shell.piped import takes_program_from_pipe
from core.shell.programs import RUNS_ANYTHING

_CACHE = 1024
_SYSTEM_LINKS = ("/bin/", "/sbin/", "/lib/", "/lib64/")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Who asks, where it would run, what is trusted there, and what the request sets."""

    agent: str
    placement: Placement
    trusted_dirs: tuple[str, ...]
    home: str = ""
    env: tuple[tuple[str, str], ...] = ()


def admitting(
    segment: Segment, entries: Iterable[AllowlistEntry], around: Circumstances
) -> AllowlistEntry | None:
    """Return the first entry that admits the segment; only literal external programs can be admitted."""
    if segment.executable is None or not segment.literal:
        return None
    executable = segment.executable
    found = (entry for entry in entries if _admits(entry, segment, executable, around))
    return next(found, None)


def runs_anything(segment: Segment) -> bool:
    """Tell whether the program can be made to run anything, so that its path alone says nothing."""
    return bool(names(segment) & RUNS_ANYTHING)


def is_exact(segment: Segment) -> bool:
    """Tell whether "always" means these arguments alone: the name says nothing about what it would do.

    Of scripts no table is complete: each hands its arguments to programs that it does not name.
    """
    executable = segment.executable
    opaque = executable is not None and (executable.script or not executable.trusted)
    return opaque or runs_anything(segment) or inline_code(segment)


def _admits(entry: AllowlistEntry, segment: Segment, executable: Executable, around: Circumstances) -> bool:
    return (
        _counts_here(entry, around)
        and _is_program(entry, executable, around)
        and _is_pinned(entry, segment, around)
        and _has_arguments(entry, segment)
    )


def _counts_here(entry: AllowlistEntry, around: Circumstances) -> bool:
    return entry.agent in {None, around.agent} and _place(entry.placement) is _place(around.placement)


def _place(placement: Placement) -> Placement:
    return Placement.HOST if placement is Placement.CLIENT else placement


def _is_pinned(entry: AllowlistEntry, segment: Segment, around: Circumstances) -> bool:
    """Tell whether all that others can change, and every variable, is as when the entry was learned."""
    if entry.sha256 is None and not entry.learned:
        return not variables(segment, around.env)
    return entry.sha256 == pin(segment, around.env) and cannot_be_pinned(segment) is None


def _is_program(entry: AllowlistEntry, executable: Executable, around: Circumstances) -> bool:
    if entry.real_path is not None:
        pinned = executable.trusted or entry.sha256 is not None
        return pinned and (entry.pattern, entry.real_path) == (executable.path, executable.real_path)
    pattern = _expanded(entry.pattern, around.home)
    if pattern in {executable.path, executable.real_path, *executable.aliases}:
        return True
    if not executable.trusted:
        return False
    if "/" not in pattern and "**" not in pattern:
        return _is_bare_name(pattern, executable, around.trusted_dirs)
    return any(path_matches(pattern, path) for path in (executable.real_path, *_of_the_system(executable)))


def _of_the_system(executable: Executable) -> Iterator[str]:
    """Give the paths through links that only root can place, such as /bin on merged systems."""
    return (path for path in executable.aliases if path.startswith(_SYSTEM_LINKS))


def _is_bare_name(pattern: str, executable: Executable, trusted_dirs: tuple[str, ...]) -> bool:
    directory, base = posixpath.split(executable.path)
    return directory in trusted_dirs and "/" not in executable.name and path_matches(pattern, base)


def _has_arguments(entry: AllowlistEntry, segment: Segment) -> bool:
    arguments = segment.words[1:]
    if entry.learned and (takes_program_from_pipe(segment) or (entry.args is None and is_exact(segment))):
        return False
    if entry.args is not None:
        return entry.args == tuple(word.value for word in arguments)
    if inline_code(segment):
        return False
    if entry.arg_pattern is not None:
        return _argument_pattern_matches(entry.arg_pattern, render.words(arguments))
    return not runs_anything(segment)


def _argument_pattern_matches(pattern: str, text: str) -> bool:
    compiled = _argument_pattern(pattern)
    return compiled is not None and compiled.fullmatch(text) is not None


@lru_cache(maxsize=_CACHE)
def _argument_pattern(pattern: str) -> Any:  # noqa: ANN401 - re2 is untyped
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def path_matches(pattern: str, path: str) -> bool:
    """Match a path glob: `*` and `?` stop at `/`, `**` crosses; letters' case counts."""
    return _glob(pattern).fullmatch(path) is not None


@lru_cache(maxsize=_CACHE)
def _glob(pattern: str) -> Any:  # noqa: ANN401 - re2 is untyped
    return re2.compile("(?s)" + _translated(pattern))


def _translated(pattern: str) -> str:
    pieces: list[str] = []
    for index, literal in enumerate(pattern.split("**")):
        pieces.append(".*" if index else "")
        pieces.extend({"*": "[^/]*", "?": "[^/]"}.get(char) or re2.escape(char) for char in literal)
    return "".join(pieces)


def pattern_fault(pattern: str) -> str | None:
    """Say why a pattern can match nothing, or None where it can."""
    if not pattern:
        return "is empty; give a path, a path glob or a program's name"
    if forbidden_character(pattern) is not None:
        return "holds a character that no command line may hold"
    anchored = pattern.startswith(("/", "~/", "**"))
    if "/" in pattern and not anchored:
        return "is a relative path, and programs are found by absolute ones; begin it with /, ~/ or **/"
    return None


def _expanded(pattern: str, home: str) -> str:
    return home + pattern[1:] if home and pattern.startswith("~/") else pattern
