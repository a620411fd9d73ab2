"""Which files the commands of a line are, where each runs, and what wrappers carry."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.model.command import Executable, Segment, Word, Wrapping
from core.ports import Resolver
from core.shell import render
from core.shell.assemble import SimpleCommand
from core.shell.builtins import BUILTINS, harmless
from core.shell.names import variants
from core.shell.parse import Parse
from core.shell.programs import MULTI_CALL, POSIX_SHELLS, WRAPPERS
from core.shell.scan import Refused
from core.shell.shells import ShellScript, shell_script
from core.shell.wrappers import packaged, unwrap

MAX_DEPTH: Final = 4
MAX_PLACES: Final = 8
# Directory, the same as bash names it, and the other directories that the shell may be in instead.
_Place = tuple[str | None, str | None, tuple[str, ...]]
_LOOKED_THROUGH: Final = MULTI_CALL | POSIX_SHELLS | WRAPPERS
_SYSTEM: Final = ("/bin/", "/usr/bin/")


class Rendered(Struct, frozen=True):
    """A piece of the canonical form and the segments in it; `program` is the first word of one command."""

    text: str
    segments: tuple[Segment, ...]
    program: str = ""


class Analysis:
    """Resolves one command; holds what stays the same throughout."""

    def __init__(self, path: Sequence[str], resolver: Resolver, parse: Parse) -> None:
        self._path = tuple(path)
        self._resolver = resolver
        self.parse = parse

    def line(
        self, commands: Sequence[SimpleCommand], cwd: str | None, depth: int = 0, *, fed: bool = False
    ) -> Rendered:
        """Resolve the commands of a line in order, each where the ones before it left the shell.

        `fed` tells that something comes in at the input of the line itself.
        """
        if len(commands) == 1 and not _is_cd(commands[0]):
            return self._only(commands[0], cwd, depth, fed=fed)
        here = Whereabouts(self._resolver, cwd)
        parts: list[tuple[str, str]] = []
        segments: list[Segment] = []
        piped = False
        before: tuple[tuple[str, Word], ...] = ()
        for command in commands:
            rendered = self._simple(command, here.cwd, depth)
            elsewhere, nowhere = here.elsewhere, here.nowhere
            if len(elsewhere) >= MAX_PLACES:
                raise Refused(
                    "too-many-directories", command.start, "a `cd` after the other may fail before it"
                )
            target = here.step(command, rendered.segments)
            text = _cd(command, target) if target else rendered.text
            parts.append((text, command.operator))
            found = _maybe(rendered.segments, elsewhere)
            found = _after(found, before) if before else found
            if nowhere is not None:
                found = tuple(replace(segment, nowhere=nowhere) for segment in found)
            segments.extend(_joined(found, command.operator, fed=fed or piped))
            piped = command.operator == "|"
            if command.assignments and (not command.words or command.words[0].value in BUILTINS):
                before += tuple(command.assignments)  # a shell may keep these, also those of a builtin
        return Rendered(render.line(parts), tuple(segments))

    def _only(self, command: SimpleCommand, cwd: str | None, depth: int, *, fed: bool) -> Rendered:
        """Resolve a command that no other one follows, so that it is no matter where it leaves the shell."""
        rendered = self._simple(command, cwd, depth)
        if not command.operator and not fed:
            return rendered
        text = render.line([(rendered.text, command.operator)])
        return Rendered(text, _joined(rendered.segments, command.operator, fed=fed))

    def alone(self, words: Sequence[Word], cwd: str | None, *, fed: bool) -> Rendered:
        """Resolve a program and its arguments that no shell is given."""
        found = self.external(words, cwd, 0)
        return replace(found, segments=_joined(found.segments, "", fed=True)) if fed else found

    def external(self, words: Sequence[Word], cwd: str | None, depth: int) -> Rendered:
        """Resolve a program and its arguments, looking through what only runs another one."""
        name = words[0].value
        executable = self._find(name, cwd)
        if executable is not None and executable.trusted and depth < MAX_DEPTH:
            through = self._through(words, cwd, depth, executable)
            if through is not None:
                return through
        program = executable.path if executable else name
        text = _headed(render.quote_command(program), words)
        return Rendered(text, (Segment(words=tuple(words), executable=executable, cwd=cwd),), program)

    def _simple(self, command: SimpleCommand, cwd: str | None, depth: int) -> Rendered:
        rendered = self._body(command, cwd, depth)
        if not command.assignments and not command.redirections:
            return rendered
        text = render.command(command.assignments, rendered.text, command.redirections)
        extra = tuple(command.assignments)
        redirections = tuple(command.redirections)
        return Rendered(
            text,
            tuple(
                replace(
                    segment,
                    assignments=(*extra, *segment.assignments),
                    redirections=(*redirections, *segment.redirections),
                )
                for segment in rendered.segments
            ),
        )

    def _body(self, command: SimpleCommand, cwd: str | None, depth: int) -> Rendered:
        if not command.words:
            return Rendered("", (Segment(words=(), builtin=True, cwd=cwd),))
        name = command.words[0].value
        if name in BUILTINS:
            return Rendered(
                _headed(name, command.words), (Segment(words=tuple(command.words), builtin=True, cwd=cwd),)
            )
        try:
            return self.external(command.words, cwd, depth)
        except Refused as refused:
            inner = refused.refusal
            raise Refused(inner.construct, command.start, inner.reason) from refused

    def _through(
        self, words: Sequence[Word], cwd: str | None, depth: int, executable: Executable
    ) -> Rendered | None:
        installed = self._installed(words, cwd, depth)
        if installed is not None or not executable.real_path.startswith(_SYSTEM):
            return installed
        name = executable.path.rpartition("/")[2]
        if name not in _LOOKED_THROUGH:
            return None
        real = variants(executable.real_path)
        if name in MULTI_CALL:
            return self._applet(words, cwd, depth, executable)
        if name in POSIX_SHELLS and real & (POSIX_SHELLS | MULTI_CALL):
            return self._shell(words, cwd, depth, executable)
        own = name == posixpath.basename(executable.real_path) or bool(real & MULTI_CALL)
        return self._wrapped(words, cwd, depth, executable) if own else None

    def _wrapped(
        self, words: Sequence[Word], cwd: str | None, depth: int, executable: Executable
    ) -> Rendered | None:
        name = posixpath.basename(executable.path)
        found = unwrap(name, words)
        if found is None:
            return None
        inner = self.external(words[found.taken :], cwd, depth + 1)
        if found.assigns and "=" in inner.program:
            return None  # by its whole path it is one more NAME=value to this wrapper
        taken = words[: found.taken]
        head = _headed(render.quote_command(executable.path), taken)
        wrapping = Wrapping(name, tuple(taken), executable)
        carried = _carried(inner.segments, wrapping, found.assignments)
        return Rendered(f"{head} {inner.text}", carried, executable.path)

    def _shell(
        self, words: Sequence[Word], cwd: str | None, depth: int, executable: Executable
    ) -> Rendered | None:
        script = shell_script(words)
        if script is None:
            return None
        name = posixpath.basename(executable.path)
        try:
            inner = self.line(self._commands(script), cwd, depth + 1)
        except Refused as refused:
            found = refused.refusal
            raise Refused(found.construct, found.position, f"inside `{name} -c`: {found.reason}") from refused
        text = f"{render.quote_command(executable.path)} -c {render.quote(inner.text)}"
        wrapping = Wrapping(f"{name} -c", tuple(words), executable)
        return Rendered(text, _carried(inner.segments, wrapping, ()), executable.path)

    def _commands(self, script: ShellScript) -> Sequence[SimpleCommand]:
        if script.words:
            return (SimpleCommand(0, words=list(script.words)),)
        return self.parse(script.text)

    def _installed(self, words: Sequence[Word], cwd: str | None, depth: int) -> Rendered | None:
        """Put the program that `npx NAME` would find in the project itself in its place."""
        given = packaged(words)
        if given is None or cwd is None:
            return None
        places = (f"{above}/node_modules/.bin/{words[given.at].value}" for above in _upward(cwd))
        found = next((place for place in places if self._find(place, cwd)), None)
        if found is None:
            return None
        program = Word(found, render.quote(found))
        inner = self.external([program, *words[given.at + 1 :]], cwd, depth + 1)
        return replace(inner, segments=_carried(inner.segments, Wrapping(given.runner, tuple(words)), ()))

    def _applet(
        self, words: Sequence[Word], cwd: str | None, depth: int, executable: Executable
    ) -> Rendered | None:
        """Put the link of that name in the place of `busybox NAME`, where the PATH has one to this file."""
        if len(words) < len(("busybox", "NAME")) or not words[1].literal or "/" in words[1].value:
            return None
        link = self._find(words[1].value, cwd)
        if link is None or link.real_path != executable.real_path:
            return None
        inner = self.external(words[1:], cwd, depth + 1)
        wrapping = Wrapping(posixpath.basename(executable.path), tuple(words[:1]))
        return replace(inner, segments=_carried(inner.segments, wrapping, ()))

    def _find(self, name: str, cwd: str | None) -> Executable | None:
        if cwd is None and "/" in name and not name.startswith("/"):
            return None
        return self._resolver.find(name, path=self._path, cwd=cwd or "/")


class Whereabouts:
    """Follows the literal `cd`s of a line; `cwd` is None once one could not be followed.

    A directory that exists may still not be entered, so behind `;` the shell is either there or in one of
    `elsewhere`; behind `&&` it is there, or nothing runs.
    """

    def __init__(self, resolver: Resolver, cwd: str | None) -> None:
        self._resolver = resolver
        self.cwd = cwd
        self.elsewhere: tuple[str, ...] = ()
        self.nowhere: str | None = None  # the operand of a `cd` by which `cwd` was lost
        self._logical = cwd
        self._before: _Place = (cwd, cwd, ())  # of this and-or list
        self._visited: tuple[str, ...] = ()  # in this list
        self._first = True  # everything before in this list was a followed `cd`
        self._alternative = False  # behind a `||` of this list
        self._uncertain = False  # a `cd` in this list may not happen
        self._piped = False

    def step(self, command: SimpleCommand, segments: Sequence[Segment]) -> str | None:
        """Take note of a command; returns the real directory where it is a `cd` that was followed."""
        target = None
        if _is_cd(command):
            target = self._enter(command)
        elif _is_meddling(command, segments[0]):
            self._lose()
        self._join(command.operator, followed=target is not None)
        return target

    def _enter(self, command: SimpleCommand) -> str | None:
        logical = self._destination(command)
        real = self._resolver.real_directory(logical) if logical else None
        if real is None and logical is not None:
            self.nowhere = command.words[-1].value
        if real is None or self._alternative:
            self._lose(real)
            return None
        self.cwd, self._logical, self.elsewhere = real, logical, ()
        self._visited = (*self._visited, real)
        self._uncertain = self._uncertain or not self._first
        return real

    def _destination(self, command: SimpleCommand) -> str | None:
        """Give where a plain, literal `cd DIR` leads, as bash would name it."""
        plain = len(command.words) == len(("cd", "DIR")) and not command.assignments
        in_pipe = self._piped or command.operator == "|"
        operand = command.words[-1]
        if not plain or in_pipe or not operand.literal or self._logical is None:
            return None
        if not operand.value or operand.value.startswith("-"):
            return None
        return posixpath.normpath(posixpath.join(self._logical, operand.value))

    def _join(self, operator: str, *, followed: bool) -> None:
        self._piped = operator == "|"
        self._first = self._first and followed and operator == "&&"
        if operator == "||":
            self._alternative = True
            if (self.cwd, self._logical) != self._before[:2]:
                self._lose()
        if operator in {";", "&"}:
            self._end_of_list(operator)

    def _end_of_list(self, operator: str) -> None:
        if operator == "&":
            self.cwd, self._logical, self.elsewhere = self._before
        elif self._uncertain:
            self._lose()
        elif self._visited:
            self.elsewhere = self._others(self.cwd)
        self._before = (self.cwd, self._logical, self.elsewhere)
        self._visited = ()
        self._first, self._alternative, self._uncertain = True, False, False

    def _lose(self, known: str | None = None) -> None:
        """Give up; what is known of where it may be still counts for what no command may touch."""
        self.elsewhere = self._others(None, *self.elsewhere, self.cwd, known)
        self.cwd = self._logical = None

    def _others(self, but: str | None, *further: str | None) -> tuple[str, ...]:
        cwd, _, elsewhere = self._before
        every = dict.fromkeys((cwd, *elsewhere, *self._visited, *further))
        return tuple(place for place in every if place is not None and place != but)


def _is_cd(command: SimpleCommand) -> bool:
    return bool(command.words) and command.words[0].value == "cd"


def _is_meddling(command: SimpleCommand, segment: Segment) -> bool:
    """Tell whether this is a builtin of this very shell that may change where it is."""
    own = bool(command.words) and not segment.wrappers
    return own and segment.builtin and not harmless(segment)


def _headed(name: str, words: Sequence[Word]) -> str:
    """Put the words behind the first one behind a name that is rendered already."""
    return f"{name} {render.words(words[1:])}" if len(words) > 1 else name


def _cd(command: SimpleCommand, target: str) -> str:
    return render.command((), f"cd {render.quote(target)}", command.redirections)


def _upward(directory: str) -> Iterator[str]:
    """Give a directory and those above it, but for the root."""
    while directory.strip("/"):
        yield directory
        directory = posixpath.dirname(directory)


def _maybe(segments: tuple[Segment, ...], elsewhere: tuple[str, ...]) -> tuple[Segment, ...]:
    """Add where the shell that runs them may be instead."""
    if not elsewhere:
        return segments
    return tuple(
        replace(segment, elsewhere=tuple(dict.fromkeys((*segment.elsewhere, *elsewhere))))
        for segment in segments
    )


def _joined(segments: tuple[Segment, ...], operator: str, *, fed: bool) -> tuple[Segment, ...]:
    """Add what joins them to the next command, and whether something comes in at their input."""
    if not fed:
        return (*segments[:-1], replace(segments[-1], operator=operator)) if operator else segments
    last = replace(segments[-1], piped=True, operator=operator or segments[-1].operator)
    return (*(replace(segment, piped=True) for segment in segments[:-1]), last)


def _after(segments: tuple[Segment, ...], assigned: tuple[tuple[str, Word], ...]) -> tuple[Segment, ...]:
    return tuple(
        replace(segment, assigned_before=(*assigned, *segment.assigned_before)) for segment in segments
    )


def _carried(
    segments: tuple[Segment, ...], wrapping: Wrapping, assignments: tuple[tuple[str, Word], ...]
) -> tuple[Segment, ...]:
    return tuple(_inside(segment, wrapping, assignments) for segment in segments)


def _inside(segment: Segment, wrapping: Wrapping, assignments: tuple[tuple[str, Word], ...]) -> Segment:
    every = (*assignments, *segment.assignments)
    if every or segment.assigned_before:
        wrapping = replace(wrapping, inside=(len(every), len(segment.assigned_before)))
    return replace(segment, wrappers=(wrapping, *segment.wrappers), assignments=every)
