"""Allowlist entries: what may run without asking, written by an operator or left by "always"."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct, structs

from core.model.command import Directory, Placement
from core.model.principal import Reviewer
from core.model.tightening import DocumentSettings

LEARNED = "learned"
ADDED = "added"
IMPORTED = "exec-approvals"


class AllowlistEntry(Struct, frozen=True, eq=False):
    """One entry.

    `pattern` is a path glob (`*` and `?` stop at `/`, `**` crosses). A learned entry has `real_path`: then
    `pattern` is the literal path used, and both must match again. `args` means exactly these arguments,
    `arg_pattern` an RE2 expression that must match the whole canonical argument string. `agent` None means
    every agent. `source` is the configuration path, or for a kept entry how it came: `learned`, `added` or
    `exec-approvals`; `id` is set where it is kept, and is no part of what the entry says. A learned entry
    counts in its `directory`; where it has none, or is for `any_arguments`, for a program that only reads.
    """

    pattern: str
    args: tuple[str, ...] | None = None
    arg_pattern: str | None = None
    placement: Placement = Placement.SANDBOX
    real_path: str | None = None
    sha256: str | None = None
    agent: str | None = None
    source: str = LEARNED
    id: str | None = None
    directory: Directory | None = None
    any_arguments: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AllowlistEntry) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    @property
    def _said(self) -> tuple[object, ...]:
        return structs.astuple(structs.replace(self, id=None))

    @property
    def learned(self) -> bool:
        """Whether it names the very file that "always" was said about."""
        return self.real_path is not None


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry of the store: who left it, when (epoch ms), on which request, and how it was last used."""

    id: str
    entry: AllowlistEntry
    given_by: tuple[Reviewer, ...]
    given_at: int
    request_id: str | None = None
    last_used_at: int | None = None
    last_command: str | None = None
    last_path: str | None = None


@dataclass(frozen=True, slots=True)
class ExecApprovals:
    """All that is kept beside the configuration, as of one moment; `revision` grows with every change."""

    revision: int = 0
    settings: DocumentSettings = field(default_factory=DocumentSettings)
    entries: tuple[KeptEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class AllowlistEdit:
    """What to change at once: ids to forget, then entries to keep, then settings (None leaves them)."""

    remove: tuple[str, ...] = ()
    put: tuple[KeptEntry, ...] = ()
    settings: DocumentSettings | None = None


@dataclass(frozen=True, slots=True)
class EntryUse:
    """One use of a kept entry: the command it admitted, and the file that this ran."""

    id: str
    command: str
    path: str


class AlwaysOffer(Struct, frozen=True):
    """What "always" would save, and the same in words; with nothing to save, `why` says the reason.

    `wider` is what "always, with any arguments" would save, where every program of it only reads.
    """

    entries: tuple[AllowlistEntry, ...] = ()
    words: tuple[str, ...] = ()
    why: str | None = None
    wider: tuple[AllowlistEntry, ...] = ()
    wider_words: tuple[str, ...] = ()
