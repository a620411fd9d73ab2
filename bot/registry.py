"""Which adapters there are; each name is registered once, in one visible line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from adapters.channels.terminal.adapter import TerminalChannel
from adapters.channels.terminal.identity import local_reviewer
from adapters.channels.web.adapter import WebChannel
from core.config import Config
from core.ports import Channel, Clock, Store

Factory = Callable[[Config, Store, Clock], Channel | None]


def _web(config: Config, store: Store, clock: Clock) -> Channel | None:
    return WebChannel(config.channels.web, store, clock) if config.channels.web.enabled else None


def _terminal(config: Config, _store: Store, clock: Clock) -> Channel | None:
    if config.channels.terminal.enabled == "never" or not _has_terminal():
        return None
    return TerminalChannel(sys.stdin.fileno(), sys.stdout, clock, local_reviewer())


def _has_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and os.isatty(sys.stdin.fileno())


CHANNELS: Mapping[str, Factory] = {
    "web": _web,
    "terminal": _terminal,
}


def channels(config: Config, store: Store, clock: Clock) -> list[Channel]:
    """Make every channel that the configuration turns on."""
    made = (factory(config, store, clock) for factory in CHANNELS.values())
    return [channel for channel in made if channel is not None]
