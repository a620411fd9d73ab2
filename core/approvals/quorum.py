"""Where several people must say yes: who is one person, whose yes counts, and for how much. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.approvals.routes import LOCAL_CHANNELS, WEB, Route
from core.elevated.senders import SenderField, authorised, parse, reaches, trusts_names
from core.model.principal import Reviewer, Sender
from core.model.request import Answer, GivenReview
from core.model.session import SessionKey

COMMAND_LINE = "cli"
PAGE_LOGIN = "operator"

Identity = tuple[str, str]


WhoseChat = Callable[[str, str], str | None]


def nobody_known(_channel: str, _peer: str) -> None:
    """Tell of no chat whose it is."""


@dataclass(frozen=True, slots=True)
class People:
    """Whom each id belongs to, as (channel, id).

    `whose_chat` gives the id of the only person who speaks in a chat, None where that cannot be told.
    """

    by_id: Mapping[Identity, str] = field(default_factory=dict)
    whose_chat: WhoseChat = nobody_known

    @classmethod
    def named(cls, people: Mapping[str, Sequence[str]], whose_chat: WhoseChat = nobody_known) -> People:
        """Read `people` of the configuration; what pins no id in one channel names nobody."""
        found = ((identity(text), person) for person, texts in people.items() for text in texts)
        return cls({at: person for at, person in found if at is not None}, whose_chat)

    def person(self, channel: str | None, identifier: str | None) -> str | None:
        """Return whose id this is."""
        return self.by_id.get((channel, identifier)) if channel and identifier else None

    def attributed(self, reviewer: Reviewer) -> Reviewer:
        """Name the person behind an id, whatever the reviewer was called before."""
        return replace(reviewer, person=self.person(reviewer.channel, reviewer.id))

    def owner(self, session: SessionKey) -> Identity | None:
        """Return whose chat a session is; None where it is nobody's, or where that cannot be told."""
        if session.channel is None or session.peer is None:
            return None
        if (session.channel, session.peer) in self.by_id:
            return session.channel, session.peer
        identifier = self.whose_chat(session.channel, session.peer)
        return None if identifier is None else (session.channel, identifier)

    def may_own(self, reviewer: Reviewer, session: SessionKey) -> bool:
        """Tell whether the session's chat is the reviewer's own, or may be.

        Others are whoever has another id in the same channel, and who is known to be another person.
        """
        if session.channel is None:
            return False
        at, owner = (reviewer.channel, reviewer.id), self.owner(session)
        if owner is None or at == owner:
            return True
        person, owning = self.person(*at), self.person(*owner)
        if person is None or owning is None:
            return at[0] != owner[0]
        return person == owning

    def surely_owns(self, reviewer: Reviewer, session: SessionKey) -> bool:
        """Tell whether the session's chat is known to be the reviewer's own, by whichever of their ids."""
        at, owner = (reviewer.channel, reviewer.id), self.owner(session)
        return owner is not None and (at == owner or self.person(*owner) in {self.person(*at)} - {None})


NOBODY = People()


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a yes goes, and whose it is, where several people had to say it."""

    answer: Answer
    for_ms: int | None = None
    max_uses: int | None = None
    agreed: tuple[Reviewer, ...] = ()


def identity(text: str) -> Identity | None:
    """Read a sender pattern that pins an id in one channel; None for every other."""
    try:
        pattern = parse(text)
    except ValueError:
        return None
    if pattern.channel is None or pattern.field is not SenderField.ID:
        return None
    return pattern.channel, pattern.value


def agreeing(reviews: Iterable[GivenReview], people: People) -> dict[str, GivenReview]:
    """Give the last yes of each person; who is nobody's id (any more) does not count."""
    yes: dict[str, GivenReview] = {}
    for review in reviews:
        person = people.person(review.reviewer.channel, review.reviewer.id)
        if person is not None and review.answer.allows:
            yes[person] = review
    return yes


def may_still_decide(given: GivenReview, routes: Sequence[Route]) -> bool:
    """Tell whether whoever gave an answer may answer on the routes that are in force now."""
    channel = given.reviewer.channel
    if given.sender is None or channel == COMMAND_LINE or channel in LOCAL_CHANNELS:
        return _can_answer(channel, given.reviewer.id, routes)
    sender = given.sender
    return any(authorised(route.approvers, sender) for route in routes if route.channel == channel)


def narrowest_scope(reviews: Collection[GivenReview]) -> Scope:
    """Give what each of these yeses covers: once, else the shortest time and fewest uses, else always."""
    answers = {review.answer for review in reviews}
    agreed = tuple(review.reviewer for review in reviews)
    if answers == {Answer.ALLOW_ALWAYS_ANY}:
        return Scope(Answer.ALLOW_ALWAYS_ANY, agreed=agreed)
    if all(answer.lasts for answer in answers):
        return Scope(Answer.ALLOW_ALWAYS, agreed=agreed)
    times = [review.for_ms for review in reviews if review.for_ms is not None]
    if times and all(answer.lasts or answer is Answer.ALLOW_FOR for answer in answers):
        uses = [review.max_uses for review in reviews if review.max_uses is not None]
        return Scope(Answer.ALLOW_FOR, min(times), min(uses, default=None), agreed)
    return Scope(Answer.ALLOW_ONCE, agreed=agreed)


def reachable(people: People, routes: Sequence[Route], session: SessionKey, *, separate: bool) -> set[str]:
    """Name the people who could say yes to a question on these routes.

    Whom an approver names by something other than an id cannot be told beforehand: it counts for all of its
    channel. With `separate` the person whose chat the session is does not count.
    """
    return {
        person
        for (channel, identifier), person in people.by_id.items()
        if _can_answer(channel, identifier, routes)
        and not (separate and people.may_own(Reviewer(channel, identifier, person), session))
    }


def _can_answer(channel: str, identifier: str, routes: Sequence[Route]) -> bool:
    if channel == COMMAND_LINE:
        return True
    here = [route for route in routes if route.channel == channel]
    if channel in LOCAL_CHANNELS:
        return bool(here) and (channel != WEB or identifier == PAGE_LOGIN)
    return any(_may_name(pattern, channel, identifier) for route in here for pattern in route.approvers)


def _may_name(pattern: str, channel: str, identifier: str) -> bool:
    if not reaches(pattern, channel):
        return False
    return trusts_names(parse(pattern)) or authorised((pattern,), Sender(channel, identifier))
