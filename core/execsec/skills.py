"""Programs that skills registered, and that run without asking where `autoAllowSkills` says so."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final

from core.model.command import Executable, Segment
from core.shell.inline_code import inline_code
from core.shell.names import names, variants
from core.shell.programs import CARRIERS, PRIVILEGE_CHANGERS, RUNS_ANYTHING

_NEVER: Final = CARRIERS | PRIVILEGE_CHANGERS | RUNS_ANYTHING


def is_skill_bin(segment: Segment, bins: Sequence[str], trusted_dirs: tuple[str, ...]) -> bool:
    """Tell whether the segment is a registered program in a trusted place that cannot run just anything."""
    executable = segment.executable
    if not bins or executable is None or not executable.trusted or not segment.literal:
        return False
    if names(segment) & _NEVER or inline_code(segment):
        return False
    return any(_is_bin(text, executable, trusted_dirs) for text in bins)


def can_run_anything(text: str) -> bool:
    """Tell whether a registered name is one of a program that is never allowed by its name alone."""
    return bool(variants(text) & _NEVER)


def _is_bin(text: str, executable: Executable, trusted_dirs: tuple[str, ...]) -> bool:
    if "/" in text:
        return text in {executable.path, executable.real_path, *executable.aliases}
    directory, base = posixpath.split(executable.path)
    return text == base and directory in trusted_dirs and "/" not in executable.name
