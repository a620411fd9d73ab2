"""Live updates: one bounded queue per open page; who cannot keep up is dropped and comes back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from core.model.card import Card

_QUEUE = 64
_MOST_CLIENTS = 64


@dataclass(eq=False, slots=True)
class Client:
    """One open page of a login; None in the queue means: close."""

    login: str
    queue: asyncio.Queue[Card | None] = field(default_factory=lambda: asyncio.Queue(_QUEUE))
    dropped: bool = False

    def drop(self) -> None:
        """End the stream, whatever is still queued."""
        self.dropped = True
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(None)


class Hub:
    """Hands every card to every open page, and never waits for one."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self._closed = False

    def join(self, login: str) -> Client | None:
        """Add a page; None where there are too many, or the daemon is stopping."""
        if self._closed or len(self._clients) >= _MOST_CLIENTS:
            return None
        client = Client(login)
        self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        """Forget a page."""
        self._clients.discard(client)

    def publish(self, card: Card) -> None:
        """Queue a card for every page."""
        for client in self._clients:
            if client.dropped:
                continue
            try:
                client.queue.put_nowait(card)
            except asyncio.QueueFull:
                client.drop()

    def end_login(self, login: str) -> None:
        """Close the pages of a login that was ended."""
        for client in self._clients:
            if client.login == login:
                client.drop()

    def close(self) -> None:
        """Close all pages and let no more in."""
        self._closed = True
        for client in self._clients:
            client.drop()
