"""Which adapters there are; each name is registered once, in one visible line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping

from adapters.channels.telegram.identity import owner_of as telegram_owner
from adapters.channels.telegram.identity import place_of as telegram_place
from adapters.channels.terminal.adapter import TerminalChannel
from adapters.channels.terminal.identity import local_reviewer
from adapters.channels.web.adapter import WebChannel
from adapters.neighbours import Neighbours
from core.approvals.quorum import PAGE_LOGIN
from core.config import Config
from core.desks import PermissionDesk
from core.errors import ConfigError
from core.ports import Channel, Clock, Store

Factory = Callable[[Config, Store, PermissionDesk, Clock, Collection[int]], Channel | None]


def _web(
    config: Config, store: Store, permissions: PermissionDesk, clock: Clock, run_users: Collection[int]
) -> Channel | None:
    settings = config.channels.web
    if not settings.enabled:
        return None
    return WebChannel(settings, store, permissions, clock, Neighbours(run_users))


def _terminal(
    config: Config, _store: Store, _permissions: PermissionDesk, clock: Clock, _run_users: Collection[int]
) -> Channel | None:
    if config.channels.terminal.enabled == "never" or not _has_terminal():
        return None
    return TerminalChannel(sys.stdin.fileno(), sys.stdout, clock, local_reviewer())


def _has_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and os.isatty(sys.stdin.fileno())


def _telegram(
    config: Config, _store: Store, _permissions: PermissionDesk, clock: Clock, _run_users: Collection[int]
) -> Channel | None:
    settings = config.channels.telegram
    if settings is None or not settings.enabled:
        return None
    # Its library takes a while to import, and only those who use it should wait for it.
    from adapters.channels.telegram.adapter import TelegramChannel  # noqa: PLC0415 - as said

    return TelegramChannel(settings, clock)


CHANNELS: Mapping[str, Factory] = {
    "web": _web,
    "terminal": _terminal,
    "telegram": _telegram,
}

PLACES: Mapping[str, Callable[[str], str]] = {
    "telegram": telegram_place,
}


def place(channel: str, target: str) -> str:
    """Give the place within a channel that a target of the configuration names; ValueError where none."""
    return PLACES[channel](target) if channel in PLACES else target


WHOSE_CHAT: Mapping[str, Callable[[str], str | None]] = {
    "telegram": telegram_owner,
    "web": lambda _peer: PAGE_LOGIN,
}


def whose_chat(channel: str, peer: str) -> str | None:
    """Give the id of the only person who speaks in a chat; None where that cannot be told."""
    return WHOSE_CHAT[channel](peer) if channel in WHOSE_CHAT else None


def check_targets(config: Config) -> None:
    """Raise ConfigError for the first target that names no place in its channel."""
    lists = {"exec": config.approvals.exec.targets, "notices": config.approvals.notices.targets}
    for name, targets in lists.items():
        for index, target in enumerate(targets):
            try:
                place(target.channel, target.to)
            except ValueError as error:
                raise ConfigError(f"approvals.{name}.targets[{index}].to: {error}") from None


def channels(
    config: Config, store: Store, permissions: PermissionDesk, clock: Clock, run_users: Collection[int]
) -> list[Channel]:
    """Make every channel that the configuration turns on."""
    made = (factory(config, store, permissions, clock, run_users) for factory in CHANNELS.values())
    return [channel for channel in made if channel is not None]
