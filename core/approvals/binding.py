"""The digest that ties a yes to exactly one command, principal and place (text 002 §11)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import Any

from core.errors import BindingMismatch
from core.model.command import Executable
from core.model.plan import Binding, BoundCommand, RunOrder
from core.ports import Resolver


def _digest(value: Any) -> str:  # noqa: ANN401 - any plain JSON value
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


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
        "plan": asdict(bound.plan),
        "executables": [[e.path, e.real_path, e.identity.to_json()] for e in bound.executables],
    }
    digests = tuple(sorted((name, _digest(value)) for name, value in parts.items()))
    return Binding(_digest(digests), digests)


def reverify(order: RunOrder, resolver: Resolver) -> None:
    """Look at the programs again and compute the binding anew; raises BindingMismatch naming what changed."""
    found = tuple(_look_again(executable, resolver) for executable in order.bound.executables)
    present = tuple(executable for executable in found if executable is not None)
    changed = order.expected.changed(bind(replace(order.bound, executables=present)))
    if changed:
        raise BindingMismatch(changed)


def _look_again(executable: Executable, resolver: Resolver) -> Executable | None:
    again = resolver.find(executable.path, path=(), cwd="/")
    return replace(again, name=executable.name) if again else None
