"""Calls to the daemon with the operator's token."""

from __future__ import annotations

from bot.client import Client, for_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ask(method: str, **params: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Call one operator method and return its answer."""
    with connected() as client:
        return client.call(method, {name: value for name, value in params.items() if value is not None})


def connected() -> Client:
    """Make a connection for several calls; it is opened by `with`."""
    return for_operator()
