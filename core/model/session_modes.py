"""Modes of `exec` that the operator set for one session."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.tightening import Stated, Tightening


@dataclass(frozen=True, slots=True)
class SessionModes:
    """What holds for a session and its subagents beside everything else; `set_at` is epoch ms."""

    session: str
    security: str | None
    ask: str | None
    set_at: int

    def tightening(self) -> Tightening:
        """Give it as what is stated beside the configuration."""
        source = f"sayso session tighten {self.session}"
        return Tightening(
            Stated(self.security, source) if self.security else None,
            Stated(self.ask, source) if self.ask else None,
        )
