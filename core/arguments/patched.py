"""What a patch does to files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.arguments.unclear import UnclearArgumentError


class Action(StrEnum):
    """What a patch does to a file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    MOVE_FROM = "move-from"
    MOVE_TO = "move-to"


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """One file of a patch, by the name that the patch gives it, and how many bytes are added to it."""

    path: str
    action: Action
    brings: int = 0


def added_bytes(line: str) -> int:
    """Count what a line of a patch's body adds: all behind its `+`, and the line's end."""
    return len(line.encode(errors="replace")) if line.startswith("+") else 0


def unclear(number: int, why: str) -> UnclearArgumentError:
    """Make the refusal of a line; lines count from 1."""
    return UnclearArgumentError(f"line {number} of the patch {why}, so the patch is not judged")
