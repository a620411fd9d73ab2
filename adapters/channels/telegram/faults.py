"""What the library raises, as what the core understands."""

from __future__ import annotations

import os

import httpx
from telegram.error import BadRequest, Forbidden, InvalidToken, NetworkError, RetryAfter, TelegramError

from core.display import safe
from core.errors import DeliveryError, DeliveryRefused, DeliveryUnclear

# The library warns at every flood otherwise; it reads this whenever a time is looked at.
os.environ.setdefault("PTB_TIMEDELTA", "true")

_REVOKED_RETRY_S = 300.0
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


def delivery_error(error: TelegramError, *, posting: bool) -> DeliveryError:
    """Say what became of a delivery; only a new message can be unclear, an edit may simply be repeated."""
    if isinstance(error, RetryAfter):
        seconds = retry_after_s(error)
        return DeliveryError(f"Telegram asks to wait {seconds:g} s", retry_after_s=seconds)
    if isinstance(error, InvalidToken):
        return DeliveryError("Telegram does not accept the token", retry_after_s=_REVOKED_RETRY_S)
    if isinstance(error, Forbidden | BadRequest):
        return DeliveryRefused(f"Telegram refuses it for good: {said(error)}")
    if posting and isinstance(error, NetworkError) and not certainly_not_sent(error):
        return DeliveryUnclear(f"Telegram did not say whether it arrived: {said(error)}")
    return DeliveryError(f"Telegram cannot be reached: {said(error)}")


def unchanged(error: TelegramError) -> bool:
    """Tell whether an edit was refused because the message says that already."""
    return isinstance(error, BadRequest) and "message is not modified" in error.message.casefold()


def gone(error: TelegramError) -> bool:
    """Tell whether a message could not be deleted because it is not there any more."""
    return isinstance(error, BadRequest) and "message to delete not found" in error.message.casefold()


def certainly_not_sent(error: TelegramError) -> bool:
    """Tell whether nothing can have arrived: there was no connection, or Telegram refused to take more."""
    return isinstance(error.__cause__, _NEVER_SENT) or "too many requests" in error.message.casefold()


def retry_after_s(error: RetryAfter) -> float:
    """Return how long Telegram asks to wait; the public attribute changes its type between versions."""
    (seconds,) = error.__reduce__()[1]
    return float(seconds)


def said(error: TelegramError) -> str:
    """Repeat what the platform said, in one safe line; tokens are never part of it."""
    if isinstance(error, InvalidToken):
        return "the token is not accepted"
    return safe(error.message or type(error).__name__)[:200]
