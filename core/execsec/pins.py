"""What ties a remembered command to the text of every file in it that the agent could write."""

from __future__ import annotations

import hashlib
import json

from core.model.command import UNHASHED, Segment


def pin(segment: Segment) -> str | None:
    """Return one digest over the program and its scripts as far as others can change them, else None.

    It is the program's own sha256 where only the program can be changed.
    """
    executable = segment.executable
    program = executable.identity.sha256 if executable is not None and not executable.trusted else None
    scripts = [(path, identity.sha256) for path, identity in segment.scripts if identity.sha256]
    if not scripts:
        return program
    return hashlib.sha256(json.dumps([program, scripts]).encode()).hexdigest()


def cannot_be_pinned(segment: Segment) -> str | None:
    """Name a file that others can change and whose text is not known."""
    executable = segment.executable
    if executable is not None and not executable.trusted and executable.identity.sha256 in {None, UNHASHED}:
        return executable.path
    return next((path for path, identity in segment.scripts if identity.sha256 == UNHASHED), None)
