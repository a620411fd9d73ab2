"""What elevated mode means for questions and for the record. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.approvals.routes import Route
from core.elevated.authority import Authority
from core.elevated.placement import Placed
from core.model.decision import Decision, Effect, Layer, Obligation
from core.model.principal import Reviewer, Sender
from core.model.request import AuditEvent, Change, Request, Review

ELEVATION_REFUSED = "security.elevation-refused"


def elevates(request: Request) -> bool:
    """Tell whether a yes would elevate."""
    return Obligation.ELEVATES in request.obligations


def may_not_elevate(request: Request, review: Review, who: Authority) -> str | None:
    """Say why a person may not allow this, or None where they may, or where nothing is elevated."""
    if not review.answer.allows or not elevates(request) or who.admits(sender_of(review)):
        return None
    shown = f"{review.reviewer.channel}:{review.reviewer.id}"
    return (
        f"The agent asks to leave the sandbox, and only people in {who.source} may allow that; "
        f"{shown} is not among them. You may deny it."
    )


def nobody_may_elevate(request: Request, routes: Sequence[Route], who: Authority) -> Decision | None:
    """Deny what nobody could allow who is asked."""
    if not elevates(request) or any(who.reaches(route.channel, route.approvers) for route in routes):
        return None
    asked = ", ".join(dict.fromkeys(route.channel for route in routes))
    reason = (
        f"the agent asks for elevated mode, and nobody whom {who.source} names can be asked in {asked}; "
        "add them there (web:operator is the page), or ask without --elevated"
    )
    return Decision(Layer.ELEVATED, Effect.DENY, reason, "elevated.nobody", who.source)


def no_longer_elevated(request: Request, who: Authority, *, wanted_now: bool) -> str | None:
    """Say why what was allowed may not be elevated any more, or None where it may, or needs not.

    `wanted_now` tells that only a person in `allowFrom` could allow it by now.
    """
    if not elevates(request):
        return "the level under which this was allowed has ended" if wanted_now else None
    yes = {
        given.reviewer.person or str(given.reviewer)
        for given in request.reviews
        if given.answer.allows and who.admits(given.sender or as_sender(given.reviewer))
    }
    if len(yes) >= request.required:
        return None
    return f"whoever allowed it is not in {who.source} any more"


def sender_of(review: Review) -> Sender:
    """Return who answers; where no chat tells more of them, by the id alone."""
    return review.sender or as_sender(review.reviewer)


def as_sender(reviewer: Reviewer) -> Sender:
    """Return a reviewer as a sender of whom only the id is known."""
    return Sender(reviewer.channel, reviewer.id, reviewer.name)


def alarm_about(request: Request, review: Review, kind: str, now: int) -> AuditEvent:
    """Record that somebody answered who may not."""
    who = review.reviewer
    return AuditEvent(now, kind, f"person:{who.channel}:{who.id}", request.id, {"name": who.name})


def unasked(start: Change, placed: Placed) -> Change:
    """Note with the start of a run that elevated full let it run without asking anybody."""
    request, elevation = start.request, placed.standing.elevation
    data = {
        "session": str(request.call.session),
        "command": request.canonical,
        "why": placed.decision.reason,
        "channel": elevation.set_by.channel if elevation else None,
        "place": elevation.place if elevation else None,
    }
    agent, at = f"agent:{request.call.agent}", request.started_at or request.created_at
    event = AuditEvent(at, "elevated.ran", agent, request.id, data)
    return replace(start, events=(*start.events, event))
