"""Allowlist entries: what may run without asking, written by an operator or left by "always"."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.command import Placement


@dataclass(frozen=True, slots=True)
class AllowlistEntry:
    """One entry.

    `pattern` is a path glob (`*` and `?` stop at `/`, `**` crosses). A learned entry has `real_path`: then
    `pattern` is the literal path used, and both must match again. `args` means exactly these arguments,
    `arg_pattern` an RE2 expression that must match the whole canonical argument string. `agent` None means
    every agent. `source` is the configuration path, or `learned`.
    """

    pattern: str
    args: tuple[str, ...] | None = None
    arg_pattern: str | None = None
    placement: Placement = Placement.SANDBOX
    real_path: str | None = None
    sha256: str | None = None
    agent: str | None = None
    source: str = "learned"

    @property
    def learned(self) -> bool:
        """Whether "always" left this entry."""
        return self.real_path is not None


@dataclass(frozen=True, slots=True)
class AlwaysOffer:
    """What "always" would save, and the same in words; with nothing to save, `why` says the reason."""

    entries: tuple[AllowlistEntry, ...] = ()
    words: tuple[str, ...] = ()
    why: str | None = None
