"""What ties a remembered command to the text of every file in it that the agent could write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from core.model.command import UNHASHED, Segment, Wrapping
from core.shell.environment import only_looks
from core.shell.names import loads_nothing

# None of these can be the name of a variable.
_BEFORE: Final = "(before it)"
_LEFT_BY_ENV: Final = "what `env` leaves"
_ORDER: Final = "their order"

Variables = tuple[tuple[str, str], ...]


def variables(segment: Segment, env: Sequence[tuple[str, str]]) -> Variables:
    """Return what is set for a program that could take from it what it runs: by the request, then the line.

    Which variables those are nobody can list but of programs that surely run and load nothing else.
    """
    is_set = env or segment.assignments or segment.assigned_before
    if not is_set and not segment.wrappers:
        return ()
    if segment.executable is None or loads_nothing(segment):
        return ()
    return (*(_set(segment, env) if is_set else ()), *_order(segment))


def _set(segment: Segment, env: Sequence[tuple[str, str]]) -> Variables:
    own = ((name, value.value) for name, value in segment.assignments)
    every = tuple(each for each in (*sorted(env), *own) if not only_looks(*each))
    before = ((name, value.value) for name, value in segment.assigned_before)
    return every + tuple(
        (f"{name} {_BEFORE}", value) for name, value in before if not only_looks(name, value)
    )


def _order(segment: Segment) -> Variables:
    """Give in order what takes variables away or sets them, and where, if the list of them does not say it.

    It does not once `env` takes some away, nor where a shell inside sets what another command is given.
    """
    given = [each.words[1:] for each in segment.wrappers if each.name == "env"]
    by_env = len(given) > 1 or any(word.value.startswith("-") for words in given for word in words)
    if not by_env and not (segment.assignments and segment.assigned_before):
        return ()
    through = [each for each in segment.wrappers if each.name == "env" or each.name.endswith(" -c")]
    steps = json.dumps([_step(each) for each in through])
    return ((_LEFT_BY_ENV if by_env else _ORDER, steps),) if through else ()


def _step(wrapping: Wrapping) -> list[object]:
    words = [word.value for word in wrapping.words[1:]] if wrapping.name == "env" else []
    return [wrapping.name, words, *wrapping.inside]


def pin(segment: Segment, env: Sequence[tuple[str, str]] = ()) -> str | None:
    """Return one digest over program and scripts as far as others can change them, and what is set for them.

    It is the program's own sha256 where only the program can be changed, and None where nothing can.
    """
    executable = segment.executable
    program = executable.identity.sha256 if executable is not None and not executable.trusted else None
    if not (segment.scripts or segment.assignments or segment.assigned_before or segment.wrappers or env):
        return program
    scripts = [(path, identity.sha256) for path, identity in segment.scripts if identity.sha256]
    given = variables(segment, env)
    if not scripts and not given:
        return program
    parts = [program, scripts, given] if given else [program, scripts]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def cannot_be_pinned(segment: Segment) -> str | None:
    """Name a file that others can change and whose text is not known."""
    executable = segment.executable
    if executable is not None and not executable.trusted and executable.identity.sha256 in {None, UNHASHED}:
        return executable.path
    if segment.unpinned or not segment.scripts:
        return segment.unpinned or None
    unknown = (path for path, identity in segment.scripts if identity.sha256 == UNHASHED)
    return next(unknown, None)
