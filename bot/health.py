"""How every channel is, those too that could not be opened."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from core.ports import Channel

OK, DEGRADED, DOWN = "ok", "degraded", "down"


@runtime_checkable
class Sensing(Protocol):
    """A channel that knows how it is; one that does not is ok while it is open."""

    def health(self) -> tuple[str, str]:
        """Return ok, degraded or down, and words."""
        ...


@runtime_checkable
class Named(Protocol):
    """A channel in which people find Sayso by a name."""

    def username(self) -> str | None:
        """Return that name, once it is known."""
        ...


class ChannelHealth:
    """Asks the open channels, and remembers why others are not open."""

    def __init__(self) -> None:
        self._open: dict[str, Channel] = {}
        self._shut: dict[str, str] = {}

    def opened(self, channel: Channel) -> None:
        """Note that a channel is open."""
        self._open[channel.name] = channel

    def failed(self, name: str, why: str) -> None:
        """Note that a channel could not be opened."""
        self._shut[name] = why

    def rows(self) -> list[dict[str, str]]:
        """Tell of each channel its name, state and words, and the name to write to where it has one."""
        living = [_row(name, *_asked(channel)) | _named(channel) for name, channel in self._open.items()]
        shut = [_row(name, DOWN, f"not opened: {why}") for name, why in self._shut.items()]
        return [*living, *shut]

    def troubles(self) -> list[str]:
        """Say in one line each which channels are not ok."""
        return [
            f"{row['channel']} is {row['state']}: {row['words']}" for row in self.rows() if row["state"] != OK
        ]


def _row(name: str, state: str, words: str) -> dict[str, str]:
    return {"channel": name, "state": state, "words": words}


def _named(channel: Channel) -> dict[str, str]:
    username = channel.username() if isinstance(channel, Named) else None
    return {"username": username} if username else {}


def _asked(channel: Channel) -> tuple[str, str]:
    return channel.health() if isinstance(channel, Sensing) else (OK, "open")
