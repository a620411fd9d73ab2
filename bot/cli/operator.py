"""Calls to the daemon with the operator's token."""

from __future__ import annotations

from bot.client import PASSPHRASE_NEEDED, Client, Refused, operator_token, sockets_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bot.client import Notified

PROMPT = "Sayso's operator passphrase: "


class Operator(Client):
    """A connection of the operator: where the passphrase is needed, it asks for it and calls again."""

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, on_notification: Notified | None = None
    ) -> Any:  # noqa: ANN401 - any JSON value
        """Call and wait for the answer, as `Client.call` does."""
        try:
            return super().call(method, params, on_notification)
        except Refused as refused:
            if refused.code != PASSPHRASE_NEEDED:
                raise
            from bot.cli.secret_prompt import secret  # noqa: PLC0415 - seldom needed

            given = secret(PROMPT, refused)
            super().call("operator.unlock", {"passphrase": given})
        return super().call(method, params, on_notification)


def ask(method: str, **params: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Call one operator method and return its answer."""
    with connected() as client:
        return client.call(method, {name: value for name, value in params.items() if value is not None})


def connected() -> Operator:
    """Make a connection for several calls; it is opened by `with`."""
    sockets = sockets_for("operator")
    return Operator(sockets, operator_token(sockets), "operator")
