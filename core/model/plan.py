"""What a run gets: mounts, network, environment, limits, and the order that the runner executes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from core.model.command import Directory, Executable, FileIdentity, Placement


class WorkspaceAccess(StrEnum):
    """How the agent's workspace appears in the sandbox; `NONE` gives a directory of the sandbox's own."""

    NONE = "none"
    RO = "ro"
    RW = "rw"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run: seconds, bytes kept per stream, bytes of memory (None: no limit), processes."""

    timeout_s: float = 600.0
    output_bytes: int = 16 * 1024 * 1024
    memory_bytes: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """A pure description of the sandbox; absolute paths only.

    Beside the system's own directories only `readable` and `writable` are there, and of all these nothing
    that is `masked`; the deeper path decides. `user` is the account that runs it where the daemon is root.

    On the host everything else is there as it is: `masked` is absent, `read_only` cannot be written,
    `sockets` are those that a run which a person allowed may reach. `unheld` says why a run on the host has
    no mount namespace, so that nothing of this holds; None elsewhere.
    """

    backend: str
    workspace: str
    writable: tuple[str, ...]
    readable: tuple[str, ...]
    masked: tuple[str, ...]
    network: bool
    env: tuple[tuple[str, str], ...]
    limits: Limits
    user: str | None = None
    read_only: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    unheld: str | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """A digest over all that was decided about, and the digests of its parts, to name what changed."""

    digest: str
    parts: tuple[tuple[str, str], ...]

    def changed(self, other: Binding) -> tuple[str, ...]:
        """Name the parts in which the other differs.

        `cwd.directories` tells more of `cwd`: a binding that lacks it is held to the others.
        """
        mine, theirs = dict(self.parts), dict(other.parts)
        differ = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
        told = {name.partition(".")[0] for name in differ if name in mine or "." not in name}
        return tuple(sorted(told))


@dataclass(frozen=True, slots=True)
class Beginning:
    """The files that run first, by path.

    `first` surely do. `later` are opened when others have run already, `words` if the program to which they
    are given runs its words.
    """

    first: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundCommand:
    """Everything a binding covers; `canonical` is the line, or the opaque text where it was not analysed.

    `run_by` is what the runner starts to run the line; None where it starts the program itself.
    """

    agent: str
    session: str
    canonical: str
    cwd: str
    env: tuple[tuple[str, str], ...]
    stdin: str | None
    placement: Placement
    plan: SandboxPlan
    executables: tuple[Executable, ...]
    scripts: tuple[tuple[str, FileIdentity], ...] = ()  # files that interpreters are given, by path
    run_by: Executable | None = None
    begins_with: Beginning = Beginning()
    directories: tuple[Directory, ...] = ()  # in which its commands may run, `cwd` among them
    real_paths: tuple[tuple[str, str], ...] = ()  # where the paths lead that a file tool is given


@dataclass(frozen=True, slots=True)
class RunOrder:
    """One bound command to run: `argv` is executed, the program itself or a shell with the canonical line.

    `stdin` are the bytes whose sha256 in hex is `bound.stdin`; both are None where nothing is fed.
    `by_person` tells that a person allowed it, and no rule alone; `agent` is who asked. `pinned` are files to
    whose text the entries that admitted it are tied, of what it begins with.
    """

    request_id: str
    argv: tuple[str, ...]
    bound: BoundCommand
    expected: Binding
    stdin: bytes | None = None
    by_person: bool = False
    agent: str = "<id>"
    pinned: tuple[str, ...] = ()

    @property
    def workspace_key(self) -> str:
        """Where the configuration names the agent's workspace."""
        return f"agents.{self.agent}.workspace"

    @property
    def held_still(self) -> Beginning:
        """The files that must stay as they were looked at."""
        begins = self.bound.begins_with
        return replace(begins, words=tuple(dict.fromkeys((*begins.words, *self.pinned))))


class RunStatus(StrEnum):
    """How a run ended, seen from the runner."""

    FINISHED = "finished"
    TIMED_OUT = "timed-out"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run: `exit_code` as a shell reports it (128 + signal), output head and tail as text.

    `omitted_*` count bytes that are in neither head nor tail (0: the text is whole). `held` names what the
    run was kept from, `notes` are sentences for whoever asked. `tampered` tells that it was killed because
    what it began with was changed under it.
    """

    status: RunStatus
    exit_code: int
    stdout: str
    stderr: str
    omitted_stdout: int
    omitted_stderr: int
    duration_ms: int
    held: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tampered: bool = False
