"""What an answer makes of a question to which several people must say yes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.approvals import lifecycle
from core.approvals.elevation import as_sender, elevates
from core.approvals.quorum import People, agreeing, may_still_decide, narrowest_scope
from core.approvals.routes import Route
from core.approvals.rules import Rules
from core.model.decision import Decision, Effect, Layer
from core.model.request import Change, GivenReview, Request, Review
from core.model.session import SessionKey

NO_ROUTE = Decision(
    Layer.APPROVALS,
    Effect.DENY,
    "nobody can be asked: no channel is open; enable one under channels, or allow the command by rule",
    "no-approval-route",
    "channels",
)


def not_any_more(review: Review, routes: Sequence[Route]) -> str | None:
    """Say that somebody in a chat may not decide by now, or None where they may."""
    if review.sender is None or may_still_decide(review.given(0), routes):
        return None
    return "You are not among the people who may decide here any more, so nothing was decided."


def step(request: Request, review: Review, rules: Rules, routes: Sequence[Route], now: int) -> Change:
    """Settle the question, unless this is a yes and more people are needed."""
    if request.required == 1 or not review.answer.allows:
        return lifecycle.reviewed(request, review, now)
    yes = _agreeing(request, (*request.reviews, review.given(now)), rules, routes)
    if len(yes) < request.required:
        return lifecycle.counted(request, review, now)
    return lifecycle.reviewed(request, review, now, narrowest_scope(yes.values()))


def repeats(request: Request, review: Review, rules: Rules, routes: Sequence[Route]) -> bool:
    """Tell whether somebody says again the yes of theirs that counts; nothing is added to that."""
    if request.required == 1:
        return False
    yes = _agreeing(request, request.reviews, rules, routes)
    last = yes.get(review.reviewer.person or "")
    if last is None or len(yes) >= request.required:  # those who agree may be enough by now
        return False
    return (last.answer, last.for_ms, last.max_uses) == (review.answer, review.for_ms, review.max_uses)


def _agreeing(
    request: Request, reviews: Iterable[GivenReview], rules: Rules, routes: Sequence[Route]
) -> dict[str, GivenReview]:
    """Give the yes of each person who may still say it, by what is in force now."""
    session, who = request.call.session, rules.authority(request.call.agent)
    standing = (
        given
        for given in reviews
        if may_still_decide(given, routes)
        and not (rules.separate and rules.people.may_own(given.reviewer, session))
        and not (elevates(request) and not who.admits(given.sender or as_sender(given.reviewer)))
    )
    return agreeing(standing, rules.people)


def nobody_is_another(session: SessionKey, people: People) -> Decision | None:
    """Deny what nobody may allow while duties are separated: whose chat it is asked from cannot be told."""
    if session.channel is None or people.owner(session) is not None:
        return None
    chat = f"{session.channel}:{session.peer}"
    reason = (
        f"whose chat {chat} is cannot be told, so it may be that of whoever allows this; ask from a direct "
        f"chat, write {chat} under people with the person who speaks there, or turn off "
        "approvals.exec.separationOfDuties"
    )
    return Decision(Layer.APPROVALS, Effect.DENY, reason, NO_ROUTE.rule, "approvals.exec.separationOfDuties")


def too_few(required: int, people: Iterable[str]) -> Decision:
    """Deny what can never be allowed, because too few people can be asked."""
    named = ", ".join(sorted(people)) or "nobody"
    reason = (
        f"{required} different people must say yes, and of those under people only {named} can be asked; "
        "name more of them, with ids that may decide here, or lower approvals.exec.required"
    )
    return Decision(Layer.APPROVALS, Effect.DENY, reason, NO_ROUTE.rule, "approvals.exec.required")
