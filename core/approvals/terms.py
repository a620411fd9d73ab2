"""How far an answer may go in a place. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.model.standing import LONGEST_MS


@dataclass(frozen=True, slots=True)
class Terms:
    """What may be answered in a place at most, and by which settings."""

    max_duration_ms: int = LONGEST_MS
    allow_always: bool = True
    duration_by: str = "approvals.exec.maxDuration"
    always_by: str = "approvals.exec.allowAlways"


ANYTHING = Terms()


def narrowest(terms: Iterable[Terms]) -> Terms:
    """Let through what all of these let through."""
    found = tuple(terms) or (ANYTHING,)
    shortest = min(found, key=lambda one: one.max_duration_ms)
    strict = next((one for one in found if not one.allow_always), shortest)
    return Terms(shortest.max_duration_ms, strict.allow_always, shortest.duration_by, strict.always_by)
