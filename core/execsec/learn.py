"""What "always" would save, and the same in words."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import structs

from core.display import safe
from core.execsec.allowlist import directory_of
from core.execsec.pins import cannot_be_pinned, pin, variables
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.command import Directory, Placement, Segment
from core.shell import render
from core.shell.inline_code import inline_code, reads_program_from_stdin
from core.shell.named_files import paths
from core.shell.names import loads_nothing, names, only_reads
from core.shell.piped import takes_program_from_pipe
from core.shell.programs import SHELLS
from core.shell.scripts import NOT_THERE

_PLACES = {
    Placement.SANDBOX: "in the sandbox",
    Placement.HOST: "on the host",
    Placement.CLIENT: "in the agent's own program",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the commands of a line would run; `workspaces` are the directories that agents can write."""

    placement: Placement
    directories: tuple[Directory, ...]
    workspaces: tuple[str, ...] = ()

    def why_not_here(self, segment: Segment) -> str | None:
        """Say why nothing is remembered of what may be configured by the directory that it runs in."""
        outside = self.placement is not Placement.SANDBOX and not loads_nothing(segment)
        written = self._written_by_agents(segment) if outside else None
        if written is not None:
            return (
                f"agents can write {safe(written)}, so `{safe(segment.words[0].value)}` could be made to do "
                "something else with the same words, outside the sandbox"
            )
        return None if directory_of(segment, self.directories) else _why_nowhere(segment)

    def _written_by_agents(self, segment: Segment) -> str | None:
        named = map(posixpath.normpath, (*segment.places, *paths(segment)))
        return next((path for path in named if any(_lies_in(path, each) for each in self.workspaces)), None)


def offer(
    unsatisfied: Iterable[Segment], agent: str, place: Place, env: Sequence[tuple[str, str]] = ()
) -> AlwaysOffer:
    """Derive one entry for each segment that nothing admits yet; all of them, or none and why."""
    segments = tuple(unsatisfied)
    entries: dict[AllowlistEntry, str] = {}
    for segment in segments:
        why = _why_not(segment) or (None if only_reads(segment) else place.why_not_here(segment))
        if why:
            return AlwaysOffer(why=why)
        entry = _entry(segment, agent, place, env)
        entries.setdefault(entry, _words(segment, entry, place.placement, env))
    if not entries:
        return AlwaysOffer(why="everything in it is admitted already")
    wider = _wider(segments, agent, place, env) if all(map(only_reads, segments)) else {}
    return AlwaysOffer(tuple(entries), tuple(entries.values()), None, tuple(wider), tuple(wider.values()))


def _wider(
    segments: Sequence[Segment], agent: str, place: Place, env: Sequence[tuple[str, str]]
) -> dict[AllowlistEntry, str]:
    wider: dict[AllowlistEntry, str] = {}
    for segment in segments:
        entry = structs.replace(_entry(segment, agent, place, env), args=None, any_arguments=True)
        wider.setdefault(entry, _words(segment, entry, place.placement, env))
    return wider


def _why_nowhere(segment: Segment) -> str:
    name, places = safe(segment.words[0].value), [safe(place) for place in segment.places]
    if segment.cwd is None or not places:
        return f"the directory in which `{name}` would run is not known for certain"
    if len(places) == 1:
        return f"{places[0]}, in which `{name}` would run, is not there now"
    return f"`{name}` would run in {' or '.join(places)}, should a `cd` fail; put && behind the `cd`"


def _lies_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _why_not(segment: Segment) -> str | None:
    executable = segment.executable
    name = segment.words[0].value if segment.words else "an assignment"
    if executable is None:
        return f"`{name}` is not a program file that could be remembered"
    return _why_not_again(segment, name)


def _why_not_again(segment: Segment, name: str) -> str | None:
    """Say why the same words could mean something else next time."""
    if not segment.literal:
        return "words that are not literal are never remembered"
    if _is_file_in_shell_line(segment):
        return f"`{name}` is a file, named inside a shell line by a path that depends on where it runs"
    if reads_program_from_stdin(segment) or takes_program_from_pipe(segment):
        return f"`{name}` may read its program from its input, which can be anything next time"
    if names(segment) & SHELLS and inline_code(segment):
        return "a shell line that could not be looked into is never remembered"
    changeable = cannot_be_pinned(segment)
    return None if changeable is None else _why_not_pinned(changeable)


def _why_not_pinned(changeable: str) -> str:
    missing = changeable.removesuffix(f" {NOT_THERE}")
    if missing != changeable:
        return f"{missing} is not there now, so what would run is not known"
    return f"{changeable} could be changed by others and cannot be pinned"


def _is_file_in_shell_line(segment: Segment) -> bool:
    name = segment.words[0].value
    relative = "/" in name and not name.startswith("/")
    return relative and any(through.endswith("-c") for through in segment.through)


def _entry(segment: Segment, agent: str, place: Place, env: Sequence[tuple[str, str]]) -> AllowlistEntry:
    executable = segment.executable
    if executable is None:
        raise ValueError("an entry needs a program")
    return AllowlistEntry(
        pattern=executable.path,
        args=segment.argv[1:],
        placement=place.placement,
        real_path=executable.real_path,
        sha256=pin(segment, env),
        agent=agent,
        directory=None if only_reads(segment) else directory_of(segment, place.directories),
    )


def _as_long_as(segment: Segment, entry: AllowlistEntry, env: Sequence[tuple[str, str]]) -> str:
    if entry.sha256 is None:
        return ""
    conditions = [*_files_stay(segment), *_variables_stay(segment, env)]
    return f", as long as {' and '.join(conditions)}" if conditions else ""


def _files_stay(segment: Segment) -> list[str]:
    executable = segment.executable
    program = [executable.path] if executable is not None and not executable.trusted else []
    scripts = [path.replace("/./", "/") for path, identity in segment.scripts if identity.sha256]
    if program and not scripts:
        return ["the file stays as it is"]
    changeable = list(dict.fromkeys((*program, *scripts)))
    stays = "stays as it is" if len(changeable) == 1 else "stay as they are"
    return [f"{' and '.join(changeable)} {stays}"] if changeable else []


def _variables_stay(segment: Segment, env: Sequence[tuple[str, str]]) -> list[str]:
    given = dict.fromkeys([safe(name) for name, _ in variables(segment, env)])
    return [f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} set as now"] if given else []


def _words(
    segment: Segment, entry: AllowlistEntry, placement: Placement, env: Sequence[tuple[str, str]]
) -> str:
    where = _PLACES[placement]
    name = segment.words[0].value
    pinned = _as_long_as(segment, entry, env)
    if entry.args is None:
        return f"any `{name}` command {where}{pinned}"
    here = f"in {render.quote(entry.directory.path)}" if entry.directory else "in any directory"
    return f"exactly `{render.words(segment.words)}` {here}, {where}{pinned}"
