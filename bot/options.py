"""What `sayso up` was started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The flags of the daemon, for this start only; None and empty leave it to the configuration."""

    config: tuple[Path, ...] = ()
    exec_security: str | None = None
    exec_ask: str | None = None
    no_sandbox: bool = False
    allow_tools: tuple[str, ...] = ()
    deny_tools: tuple[str, ...] = ()
    profile: str | None = None
    port: int | None = None
    socket: Path | None = None
