"""The digest that ties a yes to exactly one command, principal and place (text 002 §11)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from msgspec import structs

from core.display import safe
from core.errors import BindingMismatch
from core.model.command import MISSING, Executable, FileIdentity
from core.model.plan import Binding, BoundCommand, RunOrder, SandboxPlan
from core.ports import Resolver
from core.shell.render import SHELL, starts_shell

_KEPT_PLANS = 512  # about as many as there are sessions that ask
_TO_TEXT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def _digest(value: Any) -> str:  # noqa: ANN401 - any plain JSON value
    return hashlib.sha256(_TO_TEXT(value).encode()).hexdigest()


@lru_cache(maxsize=_KEPT_PLANS)
def _plan_digest(plan: SandboxPlan) -> str:
    return _digest(asdict(plan))


def bind(bound: BoundCommand) -> Binding:
    """Compute the binding of a command; environment values enter as digests, never as text."""
    parts: dict[str, Any] = {
        "agent": bound.agent,
        "session": bound.session,
        "command": bound.canonical,
        "cwd": bound.cwd,
        "env": [(name, _digest(value)) for name, value in sorted(bound.env)],
        "stdin": bound.stdin,
        "placement": bound.placement.value,
        "executables": [_told(executable) for executable in bound.executables],
        # One by one: nobody else has a turn while a long text is made of them all.
        "scripts": [_digest([path, identity.to_json()]) for path, identity in bound.scripts],
        "paths": bound.real_paths,
    }
    if bound.run_by:
        parts["shell"] = _told(bound.run_by)
    if bound.directories:
        parts["cwd.directories"] = [structs.astuple(each) for each in bound.directories]
    digests = {name: _digest(value) for name, value in parts.items()}
    digests["plan"] = _plan_digest(bound.plan)
    named = tuple(sorted(digests.items()))
    return Binding(_digest(named), named)


def reverify(order: RunOrder, resolver: Resolver) -> None:
    """Look at the programs again and compute the binding anew; raises BindingMismatch naming what changed."""
    resolver = resolver.for_one_command()
    found = tuple(_look_again(executable, resolver) for executable in order.bound.executables)
    run_by = find_shell(order.argv, resolver)
    present = tuple(executable for executable in found if executable is not None)
    scripts = tuple((path, resolver.file(path) or MISSING) for path, _ in order.bound.scripts)
    places = tuple(filter(None, [resolver.directory(each.path) for each in order.bound.directories]))
    again = replace(order.bound, executables=present, scripts=scripts, run_by=run_by, directories=places)
    changed = order.expected.changed(bind(again))
    if changed:
        raise BindingMismatch(changed, other_files(order.bound, again))


def other_files(before: BoundCommand, after: BoundCommand) -> tuple[str, ...]:
    """Name the files and directories that are others than they were, or are gone, in words safe to show."""
    places = {each.path for each in {*before.directories} - {*after.directories}}
    files = {path for path, _ in _files(before) - _files(after)}
    return tuple(sorted(map(safe, places | files)))


def suspects(changed: Sequence[str], now: BoundCommand) -> tuple[str, ...]:
    """Name the one file that can have changed, where only its binding of then is known and there is one."""
    if {"executables", "scripts"}.isdisjoint(changed):
        return ()
    found = {safe(path) for path, identity in _files(now) if identity.sha256}
    return tuple(found) if len(found) == 1 else ()


def _files(bound: BoundCommand) -> set[tuple[str, FileIdentity]]:
    return {*((each.path, each.identity) for each in bound.executables), *bound.scripts}


def find_shell(argv: Sequence[str], resolver: Resolver) -> Executable | None:
    """Find the shell that a runner is to start; None where it starts the program itself, or there is none."""
    return resolver.find(SHELL, path=(), cwd="/") if starts_shell(argv) else None


def _told(executable: Executable) -> list[Any]:
    return [executable.path, executable.real_path, executable.identity.to_json()]


def _look_again(executable: Executable, resolver: Resolver) -> Executable | None:
    again = resolver.find(executable.path, path=(), cwd="/")
    return structs.replace(again, name=executable.name) if again else None
