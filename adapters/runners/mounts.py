"""From a sandbox plan to an ordered list of mounts. Pure, but for what `look` is asked about paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import dirname

from core.errors import RunError
from core.model.plan import SandboxPlan
from core.sandbox.plan import PRIVATE, SYSTEM


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
    """What a mount does to its place; `OWN` is made empty for the sandbox.

    `WORK` lets a directory in a closed place be written: where it is gone by then, all stays closed.
    """

    OWN = "own"
    HIDE_DIRECTORY = "hide-directory"
    HIDE_FILE = "hide-file"
    SHOW = "show"
    OPEN = "open"
    PIN = "pin"
    WORK = "work"


_HIDES = (Effect.OWN, Effect.HIDE_DIRECTORY)


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount on an absolute path; `SHOW` and `OPEN` show that very path, never where a link leads."""

    effect: Effect
    path: str


def mounts_for(plan: SandboxPlan, look: type_of) -> tuple[Mount, ...]:
    """Order the mounts of a plan so that the deeper path decides; of equal paths, hiding decides.

    Nothing is there to begin with. Raises RunError for a masked path that commands could have made a link.
    """
    wanted = {mount.path: mount for mount in (*_system(look), *_shown(plan, look), *_hidden(plan, look))}
    own = (Mount(Effect.OWN, path) for path in PRIVATE)
    kept: list[Mount] = []
    for mount in _in_order((*own, *wanted.values())):
        if _changes_something(mount, kept):
            kept.append(mount)
    return _in_order((*kept, *_pins(kept)))


def _in_order(mounts: Sequence[Mount]) -> tuple[Mount, ...]:
    return tuple(sorted(mounts, key=lambda one: (one.path.rstrip("/").count("/"), one.path)))


def _system(look: type_of) -> Iterator[Mount]:
    for path in SYSTEM:
        seen = look(path)
        if seen.kind is Kind.DIRECTORY and seen.real == path:
            yield Mount(Effect.SHOW, path)


def _shown(plan: SandboxPlan, look: type_of) -> Iterator[Mount]:
    for path in plan.readable:
        seen = look(path)
        if seen.kind is not Kind.MISSING and seen.barrier is None:
            yield Mount(Effect.SHOW, path)
    for path in plan.writable:
        yield Mount(Effect.OPEN, path)


def _hidden(plan: SandboxPlan, look: type_of) -> Iterator[Mount]:
    for path in plan.masked:
        seen = look(path)
        if seen.real != path and any(path.startswith(f"{place}/") for place in plan.writable):
            raise RunError(
                f"{path} is masked, and a command could have put the link there that leads to {seen.real}; "
                "mask only what lies outside of what commands can write"
            )
        if seen.barrier:
            # Nothing can be mounted where the account cannot go; what it cannot enter is hidden as a whole.
            yield Mount(Effect.HIDE_DIRECTORY, seen.barrier)
        elif seen.kind is Kind.DIRECTORY:
            yield Mount(Effect.HIDE_DIRECTORY, seen.real)
        elif seen.kind is Kind.FILE:
            yield Mount(Effect.HIDE_FILE, seen.real)


def _changes_something(mount: Mount, before: Sequence[Mount]) -> bool:
    above = _nearest(mount.path, before)
    if mount.effect in (Effect.OPEN, Effect.OWN):
        return True
    if mount.effect is Effect.SHOW:
        return above is not Effect.SHOW
    return above not in _HIDES


def _nearest(path: str, before: Sequence[Mount]) -> Effect:
    effects = {"/": Effect.HIDE_DIRECTORY} | {mount.path: mount.effect for mount in before}
    while path not in effects:
        path = dirname(path)
    return effects[path]


def _pins(mounts: Sequence[Mount]) -> Iterator[Mount]:
    """Yield what lies between a mount and the writable place around it: no mount point can be renamed."""
    done = {mount.path for mount in mounts}
    for mount in mounts:
        way = dirname(mount.path)
        while way not in done and _nearest(way, mounts) is Effect.OPEN:
            done.add(way)
            yield Mount(Effect.OPEN, way)
            way = dirname(way)
