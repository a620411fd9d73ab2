"""What the operator is told, as plain JSON values: requests, answers, messages, events."""

from __future__ import annotations

from typing import Any

from core.approvals.card import progress_line, settled_line
from core.approvals.offers import always_offer
from core.approvals.terms import ANYTHING
from core.model.allowlist import AlwaysOffer
from core.model.history import Delivery
from core.model.request import ChainedEvent, Change, GivenReview, Request, State

NOTIFICATIONS = {
    "approval.requested": "exec.approval.requested",
    "approval.reviewed": "exec.approval.reviewed",
    "approval.approved": "exec.approval.resolved",
    "approval.fallback": "exec.approval.resolved",
    "approval.denied": "exec.approval.resolved",
    "approval.expired": "exec.approval.expired",
    "approval.withdrawn": "exec.approval.withdrawn",
    "run.started": "exec.running",
    "run.finished": "exec.finished",
    "run.failed": "exec.finished",
    "run.interrupted": "exec.finished",
    "run.refused": "exec.denied",
    "request.denied": "exec.denied",
}


def offered(request: Request) -> AlwaysOffer:
    """Give what Always leaves, or would have left where the question is settled."""
    return always_offer(request, ANYTHING) if request.state is State.WAITING else request.always


def summary(request: Request) -> dict[str, Any]:
    """Tell of a request what fits in a list."""
    always = offered(request)
    return {
        "id": request.id,
        "state": request.state.value,
        "kind": request.kind.value,
        "agent": request.call.agent,
        "session": str(request.call.session),
        "command": request.canonical,
        "cwd": request.cwd,
        "placement": request.placement.value,
        "reason": request.verdict.get("reason"),
        "rule": request.verdict.get("rule"),
        "source": request.verdict.get("source"),
        "where": request.verdict.get("where"),
        "always": list(always.words),
        "alwaysAny": list(always.wider_words),
        "createdAt": request.created_at,
        "deadline": request.deadline,
        "endedAt": request.ended_at,
        "required": request.required,
        "progress": progress_line(request) or None,
        "decided": settled_line(request) if request.resolution else None,
        "exitCode": (request.outcome or {}).get("exitCode"),
    }


def delivery_row(delivery: Delivery) -> dict[str, Any]:
    """Tell how one message of a request fares."""
    return {
        "channel": delivery.copy.channel,
        "place": delivery.copy.place,
        "ref": delivery.ref,
        "state": delivery.state,
        "tries": delivery.tries,
        "pending": delivery.pending.value if delivery.pending else None,
        "dueAt": delivery.due_at,
        "error": delivery.error,
    }


def review_row(given: GivenReview) -> dict[str, Any]:
    """Tell of one answer, and who gave it."""
    who = given.reviewer
    return {
        "answer": given.answer.value,
        "by": str(who),
        "person": who.person,
        "channel": who.channel,
        "id": who.id,
        "name": who.name,
        "at": given.at,
        "reason": given.reason,
        "forMs": given.for_ms,
        "maxUses": given.max_uses,
    }


def event_row(chained: ChainedEvent) -> dict[str, Any]:
    """Tell of one event of the record."""
    event = chained.event
    return {
        "seq": chained.seq,
        "at": event.at,
        "kind": event.kind,
        "actor": event.actor,
        "request": event.request_id,
        "data": event.data,
        "hash": chained.hash,
    }


def notifications(change: Change) -> list[dict[str, Any]]:
    """Give what a subscriber hears of a change, in order."""
    known = [NOTIFICATIONS[event.kind] for event in change.events if event.kind in NOTIFICATIONS]
    return [{"method": method, "params": summary(change.request)} for method in known]
