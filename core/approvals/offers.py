"""Which answers a question takes in which place. Pure."""

from __future__ import annotations

from core.approvals.rehearsal import is_rehearsal
from core.approvals.terms import Terms
from core.display import span
from core.execsec.allowlist import admits_nothing
from core.model.allowlist import AlwaysOffer
from core.model.request import Answer, Request, Review
from core.model.standing import LONGEST_MS, MOST_USES, OFFERED_MS, SHORTEST_MS


def always_offer(request: Request, terms: Terms) -> AlwaysOffer:
    """Give what Always would leave, or why it is not offered."""
    if any(map(admits_nothing, request.always.entries)):
        return AlwaysOffer(why="it was asked by an older Sayso; allow it once, and Always the next time")
    if request.always.entries and not terms.allow_always:
        return AlwaysOffer(why=f"{terms.always_by} is false")
    return request.always


def durations(request: Request, terms: Terms) -> tuple[int, ...]:
    """Give the times that are offered, shortest first; a short limit is offered itself."""
    if request.counts_once or terms.max_duration_ms < SHORTEST_MS:
        return ()
    return tuple(ms for ms in OFFERED_MS if ms <= terms.max_duration_ms) or (terms.max_duration_ms,)


def not_offered(request: Request, review: Review, terms: Terms) -> str | None:
    """Say why this answer cannot be given to this question, or None where it can."""
    if review.answer is Answer.ALLOW_ALWAYS:
        offer = always_offer(request, terms)
        return None if offer.entries else _no_always(offer)
    if review.answer is Answer.ALLOW_ALWAYS_ANY:
        offer = always_offer(request, terms)
        return None if offer.wider else _no_always_any(offer)
    if review.answer is Answer.ALLOW_FOR:
        return _no_permission(request, review, terms)
    if review.answer is Answer.DENY_ALWAYS and is_rehearsal(request):
        return "A test question leaves nothing behind; deny it once."
    return None


def _no_always(offer: AlwaysOffer) -> str:
    return f"Always is not offered here: {offer.why or 'nothing could be remembered'}."


def _no_always_any(offer: AlwaysOffer) -> str:
    if not offer.entries:
        return _no_always(offer)
    return "Always with any arguments is not offered here: only programs that just read are remembered so."


def _no_permission(request: Request, review: Review, terms: Terms) -> str | None:
    if request.counts_once:
        return f"A time is not offered here, because a yes counts once: {_why_once(request)}."
    if review.for_ms is None or not SHORTEST_MS <= review.for_ms <= LONGEST_MS:
        return f"A time is from {span(SHORTEST_MS)} to {span(LONGEST_MS)}."
    if review.for_ms > terms.max_duration_ms:
        return _too_long(terms)
    if review.max_uses is not None and not 1 <= review.max_uses <= MOST_USES:
        return f"The most uses are from 1 to {MOST_USES:,}."
    return None


def _too_long(terms: Terms) -> str:
    if terms.max_duration_ms < SHORTEST_MS:
        return f"A time is not offered here: {terms.duration_by} is 0."
    return f"A time is at most {span(terms.max_duration_ms)} here ({terms.duration_by})."


def _why_once(request: Request) -> str:
    return request.always.why or str(request.verdict.get("reason", "the rule asks every time"))
