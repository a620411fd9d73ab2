"""`approvals.exec.cleanupAfterResolve`: chats forget a request that is settled."""

from __future__ import annotations

from dataclasses import replace

from core.approvals.routes import LOCAL_CHANNELS
from core.model.request import Change, MessageKind, OutboxMessage


def cleaned_up(change: Change) -> Change:
    """Delete copies in chats instead of editing them a last time; the page and the terminal show the end."""
    if not change.request.state.final:
        return change
    return replace(change, messages=tuple(map(_removal, change.messages)))


def as_is(change: Change) -> Change:
    """Leave the copies where they are, to be edited."""
    return change


def _removal(message: OutboxMessage) -> OutboxMessage:
    if message.kind is not MessageKind.UPDATE or message.channel in LOCAL_CHANNELS:
        return message
    return replace(message, kind=MessageKind.REMOVE)
