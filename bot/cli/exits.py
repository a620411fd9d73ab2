"""Exit statuses, and the errors that lead to them."""

from __future__ import annotations

from bot.client import BadSocket, NoToken, Refused, Stranger, Unreachable

OK = 0
DIFFERENCE = 1
USAGE = 64
UNREACHABLE = 69
FAILED = 74
UNANSWERED = 75
DENIED = 77
CONFIGURATION = 78
INTERRUPTED = 130
BROKEN_PIPE = 141

NO_ROUTE = "no-approval-route"

_OF_STATUS = {
    "pending": OK,
    "accepted": OK,
    "allowed": OK,
    "denied": DENIED,
    "expired": UNANSWERED,
    "withdrawn": UNANSWERED,
    "interrupted": FAILED,
    "failed": FAILED,
}
_NOT_PERMITTED = (-32001, -32002, -32008)
_NOT_DONE = (-32603, -32006, -32007)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class UsageError(Exception):
    """The command line cannot be understood."""

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command


class BadConfiguration(Exception):  # noqa: N818 - reads as what it is
    """The configuration cannot be used."""


def of_error(error: Exception) -> int:
    """Return the status for a call that came to nothing."""
    if isinstance(error, Refused):
        return _of_refusal(error.code)
    if isinstance(error, Unreachable | Stranger):
        return UNREACHABLE
    return CONFIGURATION if isinstance(error, NoToken | BadSocket | BadConfiguration) else FAILED


def _of_refusal(code: int) -> int:
    if code in _NOT_PERMITTED:
        return DENIED
    return FAILED if code in _NOT_DONE else USAGE


def of_outcome(outcome: Mapping[str, Any]) -> int:
    """Return the status for an outcome; the command's own where it ran."""
    if outcome["status"] == "finished":
        code = outcome.get("exitCode")
        return code if isinstance(code, int) else FAILED
    if outcome["status"] == "denied" and nobody_to_ask(outcome):
        return UNANSWERED
    return _OF_STATUS.get(outcome["status"], FAILED)


def nobody_to_ask(outcome: Mapping[str, Any]) -> bool:
    """Tell whether it was denied only because no person could be asked."""
    decided = (outcome.get("approval") or {}).get("decision")
    return NO_ROUTE in (decided, (outcome.get("decision") or {}).get("rule"))
