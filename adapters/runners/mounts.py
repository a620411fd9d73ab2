"""From a sandbox plan to an ordered list of mounts. Pure, but for what `look` is asked about paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import dirname

from core.model.plan import SandboxPlan
from core.sandbox.plan import PRIVATE


class Kind(StrEnum):
    """What a path is, seen by the account that will run."""

    DIRECTORY = "directory"
    FILE = "file"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is at a path: its kind, its real path, and the first directory above that cannot be passed."""

    kind: Kind
    real: str
    barrier: str | None = None


type_of = Callable[[str], Seen]


class Effect(StrEnum):
    """What a mount does to its place."""

    HIDE_DIRECTORY = "hide-directory"
    HIDE_FILE = "hide-file"
    SHOW = "show"
    OPEN = "open"
    PIN = "pin"


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount on an absolute real path."""

    effect: Effect
    path: str


def mounts_for(plan: SandboxPlan, look: type_of) -> tuple[Mount, ...]:
    """Order the mounts of a plan so that the deeper path decides; of equal paths, hiding decides."""
    wanted: dict[str, Mount] = {}
    for mount in (*_shown(plan, look), *_hidden(plan, look)):
        wanted[mount.path] = mount
    kept: list[Mount] = []
    for mount in sorted(wanted.values(), key=lambda one: (one.path.count("/"), one.path)):
        if _changes_something(mount, kept):
            kept.append(mount)
    return tuple(kept)


def _shown(plan: SandboxPlan, look: type_of) -> Iterator[Mount]:
    for path in plan.readable:
        seen = look(path)
        if seen.kind is not Kind.MISSING and seen.barrier is None:
            yield Mount(Effect.SHOW, seen.real)
    for path in plan.writable:
        yield Mount(Effect.OPEN, look(path).real)


def _hidden(plan: SandboxPlan, look: type_of) -> Iterator[Mount]:
    for path in plan.masked:
        seen = look(path)
        if seen.barrier:
            # Nothing can be mounted where the account cannot go; what it cannot enter is hidden as a whole.
            yield Mount(Effect.HIDE_DIRECTORY, seen.barrier)
        elif seen.kind is Kind.DIRECTORY:
            yield Mount(Effect.HIDE_DIRECTORY, seen.real)
        elif seen.kind is Kind.FILE:
            yield Mount(Effect.HIDE_FILE, seen.real)


def _changes_something(mount: Mount, before: Sequence[Mount]) -> bool:
    above = _nearest(mount.path, before)
    if mount.effect is Effect.OPEN:
        return True
    if mount.effect is Effect.SHOW:
        return above is not Effect.SHOW
    return above is not Effect.HIDE_DIRECTORY


def _nearest(path: str, before: Sequence[Mount]) -> Effect:
    effects = {"/": Effect.SHOW, **dict.fromkeys(PRIVATE, Effect.HIDE_DIRECTORY)}
    effects |= {mount.path: mount.effect for mount in before}
    while path not in effects:
        path = dirname(path)
    return effects[path]
