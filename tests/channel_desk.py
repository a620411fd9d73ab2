"""Fixtures for everything that speaks to people: cards, a review desk and logins in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from core.errors import UnknownRequest
from core.model.card import Card
from core.model.request import Review, State
from core.ports import Clock


@dataclass(frozen=True)
class DeskAnswer:
    accepted: bool
    text: str
    card: Card | None


@dataclass
class MemoryDesk:
    """A ReviewDesk in memory: the first answer wins, later ones are told what stands."""

    cards: dict[str, Card] = field(default_factory=dict)
    reviews: list[Review] = field(default_factory=list)
    changed: Callable[[Card], None] | None = None

    def ask(self, card: Card) -> Card:
        self.cards[card.request_id] = card
        return card

    def settle(self, request_id: str, state: State, decided: str, **changes: Any) -> Card:
        card = replace(self.cards[request_id], state=state, decided=decided, **changes)
        self.cards[request_id] = card
        return card

    async def review(self, review: Review) -> DeskAnswer:
        self.reviews.append(review)
        card = self.cards.get(review.request_id)
        if card is None:
            raise UnknownRequest(f"no request has the id {review.request_id}")
        if not card.waits:
            return DeskAnswer(accepted=False, text=f"Too late: {card.decided}", card=card)
        state = State.APPROVED if review.answer.allows else State.DENIED
        words = "allowed" if review.answer.allows else "denied"
        card = self.settle(card.request_id, state, f"{words} by {review.reviewer} at 12:00")
        if self.changed:
            self.changed(card)
        return DeskAnswer(accepted=True, text=f"You {words} {card.short_id}.", card=card)

    async def card(self, request_id: str) -> Card | None:
        return self.cards.get(request_id)

    async def waiting(self) -> tuple[Card, ...]:
        return tuple(card for card in self.cards.values() if card.waits)

    async def decided(self, limit: int) -> tuple[Card, ...]:
        past = [card for card in self.cards.values() if not card.waits]
        return tuple(reversed(past))[:limit]


class MemoryLogins:
    """The logins of a CredentialStore, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}

    async def put_login(self, token_sha256: str, expires_at: int) -> None:
        self.kept[token_sha256] = expires_at

    async def login_valid(self, token_sha256: str, now: int) -> bool:
        return self.kept.get(token_sha256, 0) > now

    async def end_login(self, token_sha256: str) -> None:
        self.kept.pop(token_sha256, None)


@pytest.fixture
def desk() -> MemoryDesk:
    return MemoryDesk()


@pytest.fixture
def logins() -> MemoryLogins:
    return MemoryLogins()


@pytest.fixture
def make_card(clock: Clock) -> Callable[..., Card]:
    """Make a waiting card; every field can be given differently."""

    def make(**changes: Any) -> Card:
        card = Card(
            request_id="3f2b9c1d5e6f7a8b9c0d1e2f3a4b5c6d",
            state=State.WAITING,
            agent="main",
            session="agent:main:main",
            command="/usr/bin/rm -rf build",
            cwd="/srv/project",
            placement="sandbox (bubblewrap)",
            on_host=False,
            reason="no allowlist entry covers /usr/bin/rm -rf build",
            rule="exec.allowlist-miss",
            written="tools.exec.security (config.yaml, line 12)",
            env=(),
            always=("exactly `rm -rf build` in the sandbox",),
            always_why=None,
            created_at=clock.now(),
            deadline=clock.now() + 120_000,
        )
        return replace(card, **changes)

    return make
