"""Elevation: what people set for sessions, and the chats that sessions belong to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.model.principal import Sender

DIRECTIVE_MS = 5 * 60_000  # in which the next command of the session must come


class Level(StrEnum):
    """What `/elevated` can be set to (text 002 §14)."""

    OFF = "off"
    ASK = "ask"
    ON = "on"
    FULL = "full"

    @property
    def rank(self) -> int:
        """How much it lets through: more than every level of a lower rank."""
        return list(Level).index(self)


@dataclass(frozen=True, slots=True)
class Elevation:
    """What a person set for one session; times are epoch ms.

    `until` None is until the session ends. With `once` it counts for one command alone, which must come
    before `until`, and from `used_at` on it is that command's. `break_glass` marks what the operator set on
    the machine itself, where `allowFrom` is not asked. `place` is the chat in which it was set.
    """

    id: str
    session: str
    level: Level
    set_by: Sender
    set_at: int
    until: int | None = None
    reason: str | None = None
    once: bool = False
    used_at: int | None = None
    break_glass: bool = False
    place: str | None = None

    def lasts(self, now: int) -> bool:
        """Tell whether its time is not over; the time of a directive ends with its use."""
        return self.until is None or self.used_at is not None or now < self.until

    @property
    def by(self) -> str:
        """Who set it, for people to read."""
        return f"{self.set_by.name or self.set_by.id} ({self.set_by.channel}:{self.set_by.id})"


@dataclass(frozen=True, slots=True)
class Standing:
    """The level that holds for a call before it says anything itself, and where that is from.

    `elevation` is None where the configuration says so. With `asks_only` it stands for a session above: it
    moves nothing, and counts where the call runs on the host anyway.
    """

    level: Level = Level.OFF
    source: str = "agents.defaults.elevatedDefault"
    elevation: Elevation | None = None
    asks_only: bool = False


NOT_ELEVATED = Standing()


@dataclass(frozen=True, slots=True)
class ChatBinding:
    """A session that belongs to a chat, because somebody said so; one for each agent and chat."""

    channel: str
    place: str
    session: str
    bound_by: Sender
    bound_at: int
