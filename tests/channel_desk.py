"""Fixtures for everything that speaks to people: cards, a review desk and logins in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from secrets import token_urlsafe
from typing import Any

import pytest

from core.approvals import commands
from core.approvals.card import ON_HOST
from core.errors import UnknownRequest
from core.model.card import Card, Mark
from core.model.chat import Press, Reply, Typed, Verb
from core.model.principal import Reviewer, Sender
from core.model.request import Answer, Review, State
from core.ports import Clock

_ANSWERS: dict[str, Answer] = {
    Verb.ALLOW_ONCE: Answer.ALLOW_ONCE,
    Verb.ALLOW_FOR: Answer.ALLOW_FOR,
    Verb.ALLOW_ALWAYS: Answer.ALLOW_ALWAYS,
    Verb.ALLOW_ALWAYS_ANY: Answer.ALLOW_ALWAYS_ANY,
    Verb.DENY: Answer.DENY,
    Verb.DENY_ALWAYS: Answer.DENY_ALWAYS,
}
_HOW = {
    commands.How.ONCE: Answer.ALLOW_ONCE,
    commands.How.FOR: Answer.ALLOW_FOR,
    commands.How.ALWAYS: Answer.ALLOW_ALWAYS,
}


MAY_NOT = "You may not decide this."


@dataclass(frozen=True)
class DeskAnswer:
    accepted: bool
    text: str
    card: Card | None


@dataclass
class MemoryDesk:
    """A ChatDesk in memory: the first answer wins, later ones are told what stands.

    A press counts where its nonce was given out for its place; `approvers` are the senders who may decide,
    as CHANNEL:ID. `words`, where given, are what a press that decides is answered with.
    """

    cards: dict[str, Card] = field(default_factory=dict)
    reviews: list[Review] = field(default_factory=list)
    changed: Callable[[Card], None] | None = None
    approvers: set[str] = field(default_factory=set)
    copies: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    words: str | None = None

    def nonce(self, card: Card, channel: str, place: str) -> str:
        """Give out the nonce of a new copy."""
        nonce = token_urlsafe(16)
        self.copies[nonce] = (card.request_id, channel, place)
        return nonce

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

    async def press(self, press: Press) -> Reply:
        request_id, *where = self.copies.get(press.nonce, ("", "", ""))
        if not request_id or where != [press.sender.channel, press.place]:
            return Reply("This button belongs to no request here.")
        if not self._may_decide(press.sender):
            return Reply(MAY_NOT)
        card = self.cards[request_id]
        waiting = card if card.waits else None
        if press.verb == Verb.VIEW_ALL:
            return Reply("Here is all of it.", document=card.command, card=waiting)
        if press.verb in _ANSWERS:
            return await self._decide(
                press.sender, request_id, _ANSWERS[press.verb], press.reason, press.for_ms
            )
        if not Verb(press.verb).navigates:
            return Reply("This button means nothing here.")
        return Reply("", card=card) if waiting else Reply(f"Too late: {card.decided}.")

    async def typed(self, typed: Typed) -> Reply | None:
        command = commands.parse(typed.text, bot=typed.bot)
        if not isinstance(command, commands.Approve | commands.Deny):
            return None
        found = [request_id for request_id in self.cards if request_id.startswith(command.id)]
        if len(found) != 1:
            return Reply("There is no such request.")
        if not self._may_decide(typed.sender):
            return Reply(MAY_NOT)
        if isinstance(command, commands.Approve):
            return await self._decide(typed.sender, found[0], _HOW[command.how], for_ms=command.for_ms)
        answer = Answer.DENY_ALWAYS if command.always else Answer.DENY
        return await self._decide(typed.sender, found[0], answer, command.reason)

    async def _decide(
        self,
        sender: Sender,
        request_id: str,
        answer: Answer,
        reason: str | None = None,
        for_ms: int | None = None,
    ) -> Reply:
        reviewer = Reviewer(sender.channel, sender.id, sender.name)
        said = (await self.review(Review(request_id, answer, reviewer, reason, for_ms=for_ms))).text
        return Reply(said if self.words is None else self.words)

    def _may_decide(self, sender: Sender) -> bool:
        return f"{sender.channel}:{sender.id}" in self.approvers

    async def card(self, request_id: str, _at: object = None) -> Card | None:
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

    def make(*, on_host: bool = False, marks: tuple[Mark, ...] = (), **changes: Any) -> Card:
        card = Card(
            request_id="3f2b9c1d5e6f7a8b9c0d1e2f3a4b5c6d",
            state=State.WAITING,
            agent="main",
            session="agent:main:main",
            command="/usr/bin/rm -rf build",
            cwd="/srv/project",
            placement="HOST" if on_host else "sandbox (bubblewrap)",
            on_host=on_host,
            reason="no allowlist entry covers /usr/bin/rm -rf build",
            rule="exec.allowlist-miss",
            written="tools.exec.security (config.yaml, line 12)",
            env=(),
            always=("exactly `rm -rf build` in the sandbox",),
            always_why=None,
            durations=(900_000, 3_600_000),
            denies_always=True,
            created_at=clock.now(),
            deadline=clock.now() + 120_000,
            account="nobody",
            marks=(*((ON_HOST,) if on_host else ()), *marks),
        )
        return replace(card, **changes)

    return make
