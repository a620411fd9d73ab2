"""Facts about a command: what analysis found that would really run."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct


class Placement(StrEnum):
    """Where a command runs; `CLIENT` means the agent's own program, after our yes."""

    SANDBOX = "sandbox"
    HOST = "host"
    CLIENT = "client"


class Expansion(StrEnum):
    """What bash would still do to a word that is not literal."""

    VARIABLE = "variable"
    GLOB = "glob"
    TILDE = "tilde"
    BRACE = "brace"


class Word(Struct, frozen=True):
    """One word: `value` after quote removal, `source` as written; literal where bash changes nothing more."""

    value: str
    source: str
    expansions: frozenset[Expansion] = frozenset()

    @property
    def literal(self) -> bool:
        """Whether what is written is exactly what the program gets."""
        return not self.expansions


class RealPath(Struct, frozen=True):
    """Where a path leads once every link is followed; the last parts need not exist.

    `kind` is `file`, `directory`, `other`, or `missing`; `size` (bytes) is set for files.
    """

    path: str
    kind: str
    size: int | None = None


UNHASHED = "unhashed"


class FileIdentity(Struct, frozen=True):
    """What tells one file from another that took its place; sha256 where the agent could write it.

    Where such a file is too large to be read each time, `sha256` is UNHASHED: nothing pins its text.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    sha256: str | None = None

    def to_json(self) -> list[int | str | None]:
        """Give the identity as it enters a binding."""
        return [self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns, self.sha256]


NOT_LOOKED_AT: Final = FileIdentity(0, 0, 0, 0, 0, UNHASHED)
MISSING: Final = FileIdentity(0, 0, 0, 0, 0)


class Executable(Struct, frozen=True):
    """A program as found: `path` keeps the name used, `real_path` follows every link.

    `trusted` is false where the file, or a directory on the way to it, can be written by others.
    `aliases` are further paths that lead to it: as it was looked up, and `/bin/x` where /bin is a link.
    `script` is whether an interpreter runs it, so that variables may say what it runs. `privileged` is
    whether it takes rights that its caller has not: setuid, setgid, or file capabilities.
    """

    name: str
    path: str
    real_path: str
    identity: FileIdentity
    trusted: bool = True
    aliases: tuple[str, ...] = ()
    script: bool = False
    privileged: bool = False


class Wrapping(Struct, frozen=True):
    """A program that only runs the one behind it: its name, and its own words as typed.

    `executable` is None where the canonical form leaves it out, as with `npx`. `inside` counts those at the
    end of the segment's `assignments` and `assigned_before` that are made by it, or behind it.
    """

    name: str
    words: tuple[Word, ...]
    executable: Executable | None = None
    inside: tuple[int, int] = (0, 0)


class Refusal(Struct, frozen=True):
    """A construct that is not judged, only refused: its name, where it begins (characters), why."""

    construct: str
    position: int
    reason: str


class Directory(Struct, frozen=True):
    """A directory as it was found: by its path, and which one it is."""

    path: str
    device: int
    inode: int


class Segment(Struct, frozen=True):
    """One simple command of a line.

    `operator` joins it to the next one (`|`, `&&`, `||`, `;`, `&`, or empty at the end). `cwd` is None
    where a `cd` before it could not be followed; `elsewhere` are the other directories it may run in, should
    a `cd` before it fail. `wrappers` are what was looked through, outermost first.
    `scripts` are the files that a program which runs anything is given, by path, and MISSING for what it
    would run and is not there; `interpreters` those of them that run others by their `#!`, `carried` those
    that may run because a word of what runs its words, or a variable, names them.
    `unread` names the script that surely runs, and of which nobody knows the text.
    `piped` is whether its input comes from a pipe or with the request.
    `unpinned` names what runs, and what no pin could hold.
    `nowhere` is what a `cd` before it names, where no such directory is.
    `assigned_before` is what commands before it in the same shell set, and a shell may have exported.
    """

    words: tuple[Word, ...]
    operator: str = ""
    assignments: tuple[tuple[str, Word], ...] = ()
    redirections: tuple[str, ...] = ()
    executable: Executable | None = None
    builtin: bool = False
    cwd: str | None = None
    wrappers: tuple[Wrapping, ...] = ()
    scripts: tuple[tuple[str, FileIdentity], ...] = ()
    interpreters: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    piped: bool = False
    unpinned: str | None = None
    assigned_before: tuple[tuple[str, Word], ...] = ()
    nowhere: str | None = None
    carried: tuple[str, ...] = ()
    unread: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """Every known directory that it may run in."""
        return (self.cwd, *self.elsewhere) if self.cwd is not None else self.elsewhere

    @property
    def through(self) -> tuple[str, ...]:
        """The names of what was looked through."""
        return tuple(wrapper.name for wrapper in self.wrappers)

    @property
    def executables(self) -> tuple[Executable, ...]:
        """Every program that runs for this segment: the wrappers, then the command itself."""
        own = () if self.executable is None else (self.executable,)
        return (*(each.executable for each in self.wrappers if each.executable is not None), *own)

    @property
    def argv(self) -> tuple[str, ...]:
        """The words as values; only where all are literal is this what the program gets."""
        return tuple([word.value for word in self.words])

    @property
    def literal(self) -> bool:
        """Whether every word is literal."""
        for word in self.words:  # noqa: SIM110 - asked several times of every command; `any` takes thrice as long
            if word.expansions:
                return False
        return True


class CommandFacts(Struct, frozen=True):
    """All that inspection found out about one command.

    `canonical` is the line re-rendered from `segments`: what is judged, shown, bound and run. Where the
    command could not be analysed, `refused` says why and `canonical` is the text as it came. `directories`
    are those in which its segments may run.
    """

    text: str
    canonical: str
    segments: tuple[Segment, ...] = ()
    refused: tuple[Refusal, ...] = ()
    inline_code: bool = False
    directories: tuple[Directory, ...] = ()

    @property
    def analysable(self) -> bool:
        """Whether the whole line was understood."""
        return not self.refused and bool(self.segments)

    def to_json(
        self, satisfied_by: tuple[str | None, ...] = (), sources: tuple[str | None, ...] = ()
    ) -> dict[str, Any]:
        """Give the `facts` of `explain`; `sources` tells where the entry that admits a segment is written."""
        by = (*satisfied_by, *([None] * len(self.segments)))
        written = (*sources, *([None] * len(self.segments)))
        return {
            "analysable": self.analysable,
            "refused": [
                {"construct": r.construct, "position": r.position, "reason": r.reason} for r in self.refused
            ],
            "inlineCode": self.inline_code,
            "segments": [
                {
                    "argv": list(segment.argv),
                    "executable": segment.executable.path if segment.executable else None,
                    "through": list(segment.through),
                    "satisfiedBy": by[index],
                    "source": written[index],
                }
                for index, segment in enumerate(self.segments)
            ],
        }
