"""Which allowlist entry, if any, admits a segment."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any, Final

import re2
from msgspec import Struct

from core.config.expressions import compiled
from core.execsec.pins import Variables, cannot_be_pinned, pin, variables
from core.model.allowlist import AllowlistEntry
from core.model.command import Directory, Executable, Placement, Segment
from core.shell import render
from core.shell.characters import forbidden_character
from core.shell.inline_code import inline_code
from core.shell.names import loads_nothing, names, only_reads, reads
from core.shell.piped import takes_program_from_pipe
from core.shell.programs import RUNS_ANYTHING

_CACHE = 4096  # more than there are entries: going through them in order must not compile each anew
# An entry counts where it says. What may run on the host may run in the agent's own program, which is there
# too; what was allowed to that program alone was never said of us.
_COUNTS_IN: Final = {
    Placement.SANDBOX: frozenset((Placement.SANDBOX,)),
    Placement.HOST: frozenset((Placement.HOST, Placement.CLIENT)),
    Placement.CLIENT: frozenset((Placement.CLIENT,)),
}
_SYSTEM_LINKS = ("/bin/", "/sbin/", "/lib/", "/lib64/")


class Circumstances(Struct, frozen=True):
    """Who asks, where it would run, what is trusted there, and what the request sets."""

    agent: str
    placement: Placement
    trusted_dirs: tuple[str, ...]
    home: str = ""
    env: tuple[tuple[str, str], ...] = ()
    directories: tuple[Directory, ...] = ()


def admitting(
    segment: Segment, entries: Iterable[AllowlistEntry], around: Circumstances
) -> AllowlistEntry | None:
    """Return the first entry that admits the segment; only literal external programs can be admitted."""
    if segment.executable is None or not segment.literal:
        return None
    program = _Program(segment, segment.executable, around)
    for entry in entries:
        if _counts_here(entry, around) and _is_program(entry, program) and _admits(entry, program):
            return entry
    return None


def runs_anything(segment: Segment) -> bool:
    """Tell whether the program can be made to run anything, so that its path alone says nothing."""
    return bool(names(segment) & RUNS_ANYTHING)


def directory_of(segment: Segment, directories: Iterable[Directory]) -> Directory | None:
    """Give the one directory in which a segment surely runs; None where that is not known."""
    places = segment.places
    return next((each for each in directories if places == (each.path,)), None)


def admits_nothing(entry: AllowlistEntry) -> bool:
    """Tell whether an entry was learned before the directory was noted, and says too much to count still."""
    if not entry.learned:
        return False
    if entry.args is None:
        return not entry.any_arguments and entry.arg_pattern is None
    return entry.directory is None and not reads(entry.pattern, entry.real_path or "")


class _Program:
    """A segment's program as entries are compared with it; what costs is worked out once for all of them."""

    def __init__(self, segment: Segment, executable: Executable, around: Circumstances) -> None:
        self.segment = segment
        self.executable = executable
        self.home = around.home
        self._env = around.env
        self._directories = around.directories
        directory, _, base = executable.path.rpartition("/")
        in_trusted_dir = executable.trusted and (directory or "/") in around.trusted_dirs
        self.bare_name = base if in_trusted_dir and "/" not in executable.name else None

    @cached_property
    def system_paths(self) -> tuple[str, ...]:
        """The real path, and those through links that only root can place, such as /bin on merged systems."""
        links = (path for path in self.executable.aliases if path.startswith(_SYSTEM_LINKS))
        return (self.executable.real_path, *links)

    @cached_property
    def inline_code(self) -> bool:
        return inline_code(self.segment)

    @cached_property
    def runs_anything(self) -> bool:
        return runs_anything(self.segment)

    @cached_property
    def arguments(self) -> str:
        return render.words(self.segment.words[1:])

    @cached_property
    def pin(self) -> str | None:
        return pin(self.segment, self._env)

    @cached_property
    def variables(self) -> Variables:
        return variables(self.segment, self._env)

    @cached_property
    def from_pipe(self) -> bool:
        return takes_program_from_pipe(self.segment)

    @cached_property
    def loads_nothing(self) -> bool:
        return loads_nothing(self.segment)

    @cached_property
    def only_reads(self) -> bool:
        return only_reads(self.segment)

    @cached_property
    def directory(self) -> Directory | None:
        return directory_of(self.segment, self._directories)


def _admits(entry: AllowlistEntry, program: _Program) -> bool:
    return _is_pinned(entry, program) and _has_arguments(entry, program)


def _counts_here(entry: AllowlistEntry, around: Circumstances) -> bool:
    for_agent = entry.agent is None or entry.agent == around.agent
    return for_agent and around.placement in _COUNTS_IN[entry.placement]


def _is_pinned(entry: AllowlistEntry, program: _Program) -> bool:
    """Tell whether all that others can change, and every variable, is as when the entry was learned."""
    if entry.sha256 is None and not entry.learned:
        return not program.variables
    return entry.sha256 == program.pin and cannot_be_pinned(program.segment) is None


def _is_program(entry: AllowlistEntry, program: _Program) -> bool:
    executable = program.executable
    if entry.real_path is not None:
        return entry.pattern == executable.path and entry.real_path == executable.real_path
    pattern = _expanded(entry.pattern, program.home)
    if pattern in (executable.path, executable.real_path) or pattern in executable.aliases:
        return True
    if not executable.trusted:
        return False
    if "/" not in pattern and "**" not in pattern:
        return program.bare_name is not None and path_matches(pattern, program.bare_name)
    return _is_glob(pattern) and any(path_matches(pattern, path) for path in program.system_paths)


def _has_arguments(entry: AllowlistEntry, program: _Program) -> bool:
    if entry.learned:
        return _has_learned_arguments(entry, program)
    if entry.args is not None:
        return entry.args == program.segment.argv[1:]
    if program.inline_code:
        return False
    if entry.arg_pattern is not None:
        return _argument_pattern_matches(entry.arg_pattern, program.arguments)
    return not program.runs_anything


def _has_learned_arguments(entry: AllowlistEntry, program: _Program) -> bool:
    if program.from_pipe:
        return False
    if entry.arg_pattern is not None:
        return program.loads_nothing and _argument_pattern_matches(entry.arg_pattern, program.arguments)
    if entry.args is None:
        return entry.any_arguments and program.only_reads
    here = program.only_reads if entry.directory is None else entry.directory == program.directory
    return here and entry.args == program.segment.argv[1:]


def _argument_pattern_matches(pattern: str, text: str) -> bool:
    try:
        return compiled(pattern).fullmatch(text) is not None
    except re2.error:
        return False


def path_matches(pattern: str, path: str) -> bool:
    """Match a path glob: `*` and `?` stop at `/`, `**` crosses; letters' case counts."""
    return _glob(pattern).fullmatch(path) is not None if _is_glob(pattern) else pattern == path


def _is_glob(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


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
