"""What people are told without being asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """What a notice tells of; each kind can be switched off."""

    DENIED = "denied"
    SECURITY = "security"
    ASKED_ELSEWHERE = "asked-elsewhere"
    FINISHED = "finished"
    CHANNEL = "channel"
    REMINDER = "reminder"
    ELEVATED = "elevated"
    UNASKED = "unasked"


@dataclass(frozen=True, slots=True)
class Notice:
    """A message that asks nothing; the text is already safe to show.

    Channels show the short form of `request_id` with it.
    """

    kind: NoticeKind
    text: str
    request_id: str | None = None
