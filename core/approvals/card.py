"""Builds what people see of a request, and what its asker gets back, from the kept request alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from core.approvals.offers import always_offer, durations
from core.approvals.rehearsal import is_rehearsal
from core.approvals.terms import ANYTHING, Terms
from core.display import duration, elide, moment, safe, span
from core.model.card import Card, CardOutcome, Mark
from core.model.command import Placement
from core.model.outcome import Outcome, Status
from core.model.principal import named
from core.model.request import Answer, GivenReview, Request, RequestKind, State

_ELEVATED = "elevated."
_UNHELD = "host."
_CHANGEABLE = "exec.changeable"
ON_HOST = Mark("HOST", "on this machine itself, outside the sandbox")
_BY_CLIENT = Mark("HOST", "the agent's own program runs it: Sayso neither holds it back nor can end it")
_WORDS = {
    "allow-once": "Allowed once",
    "allow-for": "Allowed for a time",
    "allow-always": "Allowed always",
    "allow-always-any": "Allowed always, with any arguments",
    "deny": "Denied",
    "deny-always": "Denied always",
    "allowed-by-permission": "Allowed by a permission given earlier",
    "allowed-by-elevation": "Allowed by elevated full, without asking",
    "allowed-by-policy": "Allowed by policy",
    "denied-by-policy": "Denied by policy",
    "fallback-allowlist": "Allowed by askFallback, after nobody answered",
    "expired": "Expired: nobody answered in time",
    "withdrawn": "Withdrawn by the one who asked",
    "called-off": "Called off",
}

_NOT_TOLD = "(no directory was told)"
_PLACES = {Placement.HOST: "HOST", Placement.CLIENT: "HOST, by the agent's own program"}

_STATUS = {
    State.WAITING: Status.PENDING,
    State.APPROVED: Status.PENDING,
    State.RUNNING: Status.PENDING,
    State.FINISHED: Status.FINISHED,
    State.FAILED: Status.FAILED,
    State.DENIED: Status.DENIED,
    State.EXPIRED: Status.EXPIRED,
    State.WITHDRAWN: Status.WITHDRAWN,
    State.INTERRUPTED: Status.INTERRUPTED,
    State.USED: Status.ALLOWED,
}


def card_of(request: Request, secrets: Sequence[str] = (), terms: Terms = ANYTHING) -> Card:
    """Build the card of a request as it stands, for a place with these terms.

    Configured secrets are masked by value.
    """

    def shown(text: str) -> str:
        return safe(text, secrets=secrets)

    command = request.call.command
    always = always_offer(request, terms)
    return Card(
        request_id=request.id,
        state=request.state,
        agent=shown(request.call.agent),
        session=shown(str(request.call.session)),
        command=safe(request.canonical, secrets=secrets, multiline=True),
        cwd=shown(request.cwd) or _NOT_TOLD,
        placement=_PLACES.get(request.placement) or f"sandbox ({request.sandbox})",
        on_host=request.placement is not Placement.SANDBOX,
        reason=shown(str(request.verdict.get("reason", ""))),
        rule=shown(str(request.verdict.get("rule", ""))),
        written=shown(str(request.verdict.get("where") or request.verdict.get("source", ""))),
        env=tuple((shown(name), shown(value)) for name, value in (command.env if command else ())),
        always=tuple(shown(words) for words in always.words),
        always_why=always.why,
        always_any=tuple(shown(words) for words in always.wider_words),
        durations=durations(request, terms),
        denies_always=not is_rehearsal(request),
        created_at=request.created_at,
        deadline=request.deadline,
        decided=None if request.state is State.WAITING else shown(settled_line(request)),
        decided_at=request.resolution.at if request.resolution else None,
        outcome=_card_outcome(request, secrets),
        progress=shown(progress_line(request)),
        account=shown(str(request.verdict.get("account") or "")),
        marks=tuple(Mark(mark.word, shown(mark.text)) for mark in marks_of(request)),
    )


def progress_line(request: Request) -> str:
    """Say how many of the people who are needed have said yes, and who; nothing where one is enough."""
    if request.required == 1:
        return ""
    given = given_yes(request)
    said = "; ".join(f"{review.reviewer} {_spoken(review)}" for review in given)
    most = request.required - 1 if request.state is State.WAITING else request.required
    count = f"{min(len(given), most)} of {request.required}"
    return f"{count}: {said}" if said else f"{count}: {request.required} different people must say yes"


def elevated_line(request: Request) -> str:
    """Say how elevated mode bears on a request; nothing where it does not."""
    return _told(request, _ELEVATED)


def marks_of(request: Request) -> Iterator[Mark]:
    """Give what nobody may overlook; of what could happen only while it can be prevented."""
    if request.placement is not Placement.SANDBOX:
        yield _BY_CLIENT if request.placement is Placement.CLIENT else ON_HOST
    if request.state is State.WAITING and (unheld := _told(request, _UNHELD)):
        yield Mark("UNPROTECTED", unheld)
    if elevated := elevated_line(request):
        yield Mark("ELEVATED", elevated)
    if request.state is State.WAITING and (changeable := _told(request, _CHANGEABLE)):
        yield Mark("CHANGEABLE", changeable)


def _told(request: Request, rules: str) -> str:
    """Give the reason of the first decision under these rules, none where there is none."""
    rows = request.verdict.get("trace", ())
    told = (str(row.get("reason", "")) for row in rows if str(row.get("rule", "")).startswith(rules))
    return next(told, "")


def given_yes(request: Request) -> tuple[GivenReview, ...]:
    """Give the last yes of each person, in the order in which they first said it."""
    yes = {review.reviewer.person: review for review in request.reviews if review.answer.allows}
    return tuple(yes.values())


def _spoken(review: GivenReview) -> str:
    said = _WORDS[review.answer.value].lower()
    if review.answer is Answer.ALLOW_FOR and review.for_ms is not None:
        said = f"allowed for {span(review.for_ms)}"
    uses = f" ({review.max_uses} more at most)" if review.max_uses else ""
    reason = f", because: {elide(review.reason, head=100, tail=40).text}" if review.reason else ""
    return f"{said}{uses}{reason}"


def settled_line(request: Request) -> str:
    """Say in one line who decided what, and how it went on."""
    resolution = request.resolution
    if resolution is None:
        return "Waiting for an answer"
    words = _WORDS.get(resolution.decision, resolution.decision)
    by = f" by {named(resolution.people)}" if resolution.people else ""
    until = f" until {moment(resolution.until)}" if resolution.until is not None else ""
    reason = f": {resolution.reason}" if resolution.reason else ""
    after = ""
    if request.state is State.EXPIRED and resolution.decision != "expired":
        after = "; nobody came for it in time, so it did not run"
    return f"{words}{by}{until}{reason}{after}"


def outcome_of(request: Request) -> Outcome:
    """Build what the asker gets back."""
    left: dict[str, Any] = request.outcome or {}
    truncated = left.get("truncated") or {}
    status = _STATUS[request.state]
    if request.kind is RequestKind.ASK and request.state is State.APPROVED:
        status = Status.ALLOWED
    resolution = request.resolution
    return Outcome(
        status=status,
        reason=_reason(request),
        request_id=request.id,
        decision=request.verdict,
        approval=resolution.to_json(request.id) if resolution else None,
        placement=request.placement.value,
        sandbox=request.sandbox,
        cwd=request.cwd,
        exit_code=left.get("exitCode"),
        stdout=left.get("stdout", ""),
        stderr=left.get("stderr", ""),
        truncated_stdout=truncated.get("stdout", 0),
        truncated_stderr=truncated.get("stderr", 0),
        duration_ms=left.get("durationMs"),
        timed_out=bool(left.get("timedOut")),
        held=tuple(left.get("held", ())),
        notes=tuple(left.get("notes", ())),
    )


def _reason(request: Request) -> str:
    left = request.outcome or {}
    if "reason" in left:
        return str(left["reason"])
    resolution = request.resolution
    if resolution is None or resolution.decision.startswith(("allowed-by-", "denied-by-")):
        return str(request.verdict.get("reason", ""))
    return settled_line(request)


def _card_outcome(request: Request, secrets: Sequence[str]) -> CardOutcome | None:
    if request.outcome is None:
        return None
    left = request.outcome
    return CardOutcome(
        line=outcome_line(request.state, left),
        exit_code=left.get("exitCode"),
        duration_ms=left.get("durationMs"),
        stdout=safe(left.get("stdout", ""), secrets=secrets, multiline=True),
        stderr=safe(left.get("stderr", ""), secrets=secrets, multiline=True),
    )


def outcome_line(state: State, left: dict[str, Any]) -> str:
    """Say in one line how a run ended."""
    if state is not State.FINISHED:
        return f"{state.value}: {left.get('reason', 'no reason was recorded')}"
    took = duration(int(left.get("durationMs") or 0))
    how = f"finished with status {left.get('exitCode')} after {took}"
    how = f"killed after its time limit ({took})" if left.get("timedOut") else how
    return "; ".join((how, *left.get("notes", ())))
