"""What a caller is told while its call is in flight."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any

from adapters.ingress.jsonrpc import CallId
from core.model.card import Card

Notify = Callable[[str, Mapping[str, Any]], None]


def card_json(card: Card) -> dict[str, Any]:
    """Give a card as the socket speaks of it."""
    return {
        "id": card.request_id,
        "state": card.state.value,
        "agent": card.agent,
        "session": card.session,
        "command": card.command,
        "cwd": card.cwd,
        "placement": card.placement,
        "onHost": card.on_host,
        "reason": card.reason,
        "rule": card.rule,
        "written": card.written,
        "env": [list(pair) for pair in card.env],
        "always": list(card.always),
        "alwaysAny": list(card.always_any),
        "alwaysWhy": card.always_why,
        "createdAt": card.created_at,
        "deadline": card.deadline,
    }


class CallObserver:
    """Turns what happens to one call into notifications; each carries the `call` it belongs to."""

    def __init__(self, call_id: CallId, notify: Notify) -> None:
        self._call_id = call_id
        self._notify = notify

    def requested(self, card: Card) -> None:
        """People are being asked."""
        self._tell("exec.approval.requested", card_json(card))

    def running(self, request_id: str) -> None:
        """Tell that the run has started."""
        self._tell("exec.running", {"id": request_id})

    def write(self, request_id: str, stream: str, data: bytes) -> None:
        """Pass a piece of output on."""
        text = base64.b64encode(data).decode("ascii")
        self._tell("exec.output", {"id": request_id, "stream": stream, "data": text})

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._notify(method, {**params, "call": self._call_id})


class DetachedObserver(CallObserver):
    """Also remembers the card of the question, for a caller that does not want to wait for its answer."""

    def __init__(self, call_id: CallId, notify: Notify) -> None:
        super().__init__(call_id, notify)
        self.asked: asyncio.Future[Card] = asyncio.get_running_loop().create_future()

    def requested(self, card: Card) -> None:
        """People are being asked."""
        super().requested(card)
        if not self.asked.done():
            self.asked.set_result(card)
