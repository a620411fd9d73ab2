"""Every step a request can take, as pure functions from a request to the change that the store commits.

(new) ──▶ waiting ──▶ approved ──▶ running ──▶ finished | failed | interrupted
  │        ↺ a yes of several that are needed
  │          │            │           └──────▶ denied     (what would run is no longer what was decided)
  │          │            └──▶ expired | used
  │          └──▶ denied | expired | withdrawn | used (a test question)
  ├──▶ running                                            (policy allowed it: no question)
  ├──▶ approved                                           (likewise, where only an answer was asked for)
  └──▶ denied
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from msgspec import structs

from core.approvals.quorum import Scope
from core.approvals.rehearsal import is_rehearsal
from core.approvals.routes import LOCAL_CHANNELS
from core.model.allowlist import AlwaysOffer
from core.model.command import Placement
from core.model.notice import Notice, NoticeKind
from core.model.plan import RunResult, RunStatus
from core.model.request import (
    Answer,
    AuditEvent,
    Change,
    GivenReview,
    Grant,
    MessageKind,
    OutboxMessage,
    Request,
    RequestKind,
    Resolution,
    Review,
    State,
)
from core.model.standing import DenyRule, StandingPermission

FULL = "elevated.full"
BY_POLICY = "policy"
BY_TIME = "time"
BY_DAEMON = "daemon"
BY_OPERATOR = "operator"
BY_FALLBACK = "fallback-allowlist"
_ALARMING = {
    "tool.owner-only": "security.owner-only",
    "exec.deny-own-state": "security.own-state",
    "exec.deny-operator-verb": "security.operator-verb",
    "tool.path-own-state": "security.own-state",
}
GRACE_MS = 15_000
LAST_MOMENT_MS = 5_000  # in which the asker still starts what was allowed just before the deadline


def asked(request: Request, now: int, remind_at: int | None = None) -> Change:
    """Keep a question, what must be posted for it, and what reminds of it in chats while it is open."""
    created = _event(request, now, "request.created", _agent(request), _admission(request))
    question = _event(
        request,
        now,
        "approval.requested",
        BY_POLICY,
        {"asked": [[copy.channel, copy.place] for copy in request.copies], **_quorum(request)},
    )
    posts = _messages(request, MessageKind.POST, now)
    reminders = () if remind_at is None else _reminders(request, remind_at)
    return Change(request, insert=True, events=(created, question), messages=(*posts, *reminders))


def allowed(request: Request, now: int) -> Change:
    """Keep a call that policy allows; where it runs here, its grant is issued and used in the same step.

    Where the asker's own program carries it out, the answer is taken with this very step.
    """
    created = _event(request, now, "request.created", _agent(request), _admission(request))
    by_rule = {"rule": request.verdict.get("rule"), "permission": request.permission}
    yes = _event(request, now, "request.allowed", BY_POLICY, by_rule)
    grant = _grant(request, now)
    resolution = Resolution(_allowed_by(request), now)
    if request.kind is RequestKind.ASK and request.placement is Placement.CLIENT:
        taken = replace(request, state=State.USED, resolution=resolution, ended_at=now)
        return Change(taken, insert=True, events=(created, yes))
    if request.kind is RequestKind.ASK:
        answered = replace(request, state=State.APPROVED, resolution=resolution)
        return Change(answered, insert=True, issue_grant=grant, events=(created, yes))
    running = replace(request, state=State.RUNNING, resolution=resolution, started_at=now)
    start = _event(running, now, "run.started", BY_POLICY, {"binding": request.binding.digest})
    return Change(running, insert=True, issue_grant=grant, consume_grant_at=now, events=(created, yes, start))


def _allowed_by(request: Request) -> str:
    if request.permission:
        return "allowed-by-permission"
    return "allowed-by-elevation" if request.verdict.get("rule") == FULL else "allowed-by-policy"


def refused(request: Request, now: int) -> Change:
    """Keep a call that policy denies."""
    denied = replace(
        request, state=State.DENIED, ended_at=now, resolution=Resolution("denied-by-policy", now)
    )
    created = _event(request, now, "request.created", _agent(request), _admission(request))
    why = {"rule": request.verdict.get("rule"), "reason": request.verdict.get("reason")}
    no = _event(denied, now, "request.denied", BY_POLICY, why)
    return Change(
        denied, insert=True, events=(created, no, *_alarms(denied, now, denied.verdict.get("rule")))
    )


def counted(request: Request, review: Review, now: int) -> Change:
    """Keep a yes that is not enough by itself: the question goes on waiting for other people."""
    answer = review.given(now)
    waiting = replace(request, reviews=(*request.reviews, answer))
    data = {
        "answer": review.answer.value,
        "name": review.reviewer.name,
        "reason": review.reason,
        "forMs": review.for_ms,
        "maxUses": review.max_uses,
        **_quorum(waiting),
    }
    return Change(
        waiting,
        expect=frozenset({State.WAITING}),
        review=answer,
        events=(_event(waiting, now, "approval.reviewed", _person(review), data),),
        messages=_messages(waiting, MessageKind.UPDATE, now),
    )


def reviewed(request: Request, review: Review, now: int, agreed: Scope | None = None) -> Change:
    """Settle a question by an answer; by the last of several it is allowed as far as they `agreed`."""
    scope = agreed or Scope(review.answer, review.for_ms, review.max_uses)
    until = now + scope.for_ms if scope.for_ms and scope.answer is Answer.ALLOW_FOR else None
    answer = review.given(now)
    reviews = (*request.reviews, answer)
    reason = _reasons(reviews) if agreed else review.reason
    resolution = Resolution(scope.answer.value, now, review.reviewer, reason, until, scope.agreed)
    yes = scope.answer.allows
    state = State.APPROVED if yes else State.DENIED
    settled = replace(
        request, state=state, resolution=resolution, ended_at=None if yes else now, reviews=reviews
    )
    run_follows = yes and not is_rehearsal(request)
    if run_follows:
        settled = replace(settled, deadline=max(request.deadline, now + LAST_MOMENT_MS))
    elif yes:
        settled = replace(settled, state=State.USED, ended_at=now)
    data = {
        "answer": review.answer.value,
        "name": review.reviewer.name,
        "reason": review.reason,
        "until": until,
        "maxUses": scope.max_uses,
        **_agreement(scope),
        **_quorum(settled),
    }
    event = _event(settled, now, "approval.approved" if yes else "approval.denied", _person(review), data)
    return Change(
        settled,
        expect=frozenset({State.WAITING}),
        issue_grant=_grant(settled, now) if run_follows else None,
        learn=_learned(request, scope.answer) if scope.answer.lasts else None,
        permit=_permission(request, resolution, scope) if run_follows else None,
        forbid=_deny_rule(request, review, now) if review.answer is Answer.DENY_ALWAYS else None,
        review=answer,
        events=(event,),
        messages=_messages(settled, MessageKind.UPDATE, now),
    )


def _learned(request: Request, answer: Answer) -> AlwaysOffer:
    always = request.always
    if answer is Answer.ALLOW_ALWAYS_ANY:
        return structs.replace(always, entries=always.wider, words=always.wider_words)
    return always


def fell_back(request: Request, now: int) -> Change:
    """Approve a question nobody answered, because the allowlist admits the command by now."""
    settled = replace(
        request,
        state=State.APPROVED,
        resolution=Resolution(BY_FALLBACK, now),
        deadline=now + GRACE_MS,
    )
    return Change(
        settled,
        expect=frozenset({State.WAITING}),
        issue_grant=_grant(settled, now),
        events=(_event(settled, now, "approval.fallback", BY_TIME),),
        messages=_messages(settled, MessageKind.UPDATE, now),
    )


def started(request: Request, now: int) -> Change:
    """Use up the grant of an approved request and record the start of its run, in one step."""
    running = replace(request, state=State.RUNNING, started_at=now)
    event = _event(running, now, "run.started", _agent(request), {"binding": request.binding.digest})
    return Change(running, expect=frozenset({State.APPROVED}), consume_grant_at=now, events=(event,))


def used(request: Request, now: int) -> Change:
    """Hand an approved answer to its asker, who acts on it; it counts once."""
    gone = replace(request, state=State.USED, ended_at=now)
    event = _event(gone, now, "approval.used", _agent(request))
    return Change(gone, expect=frozenset({State.APPROVED}), consume_grant_at=now, events=(event,))


def finished(request: Request, result: RunResult, now: int) -> Change:
    """Record what a run left."""
    timed_out = result.status is RunStatus.TIMED_OUT
    outcome = {
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "truncated": {"stdout": result.omitted_stdout, "stderr": result.omitted_stderr},
        "timedOut": timed_out,
        "durationMs": result.duration_ms,
        "held": [*result.held],
        "notes": [*result.notes],
    }
    data: dict[str, Any] = {name: outcome[name] for name in ("exitCode", "timedOut", "durationMs")}
    data |= {"notes": [*result.notes]} if result.notes else {}
    change = _ended(request, State.FINISHED, "run.finished", outcome, now, data)
    if not result.tampered:
        return change
    alarm = {"command": request.canonical, "what": " ".join(result.notes)}
    event = _event(change.request, now, "security.changed-under-run", "daemon", alarm)
    return replace(change, events=(*change.events, event))


def failed(request: Request, reason: str, now: int) -> Change:
    """Record that the run could not start."""
    outcome = {"reason": reason}
    return _ended(request, State.FAILED, "run.failed", outcome, now, outcome)


def mismatched(request: Request, reason: str, now: int, rule: str | None = None) -> Change:
    """Record that nothing ran: it was no longer what had been decided, or a rule denies it by now."""
    outcome = {"reason": reason}
    change = _ended(request, State.DENIED, "run.refused", outcome, now, outcome)
    events = (*change.events, *_alarms(change.request, now, rule))
    return replace(change, expect=frozenset({request.state}), events=events)


def interrupted(request: Request, reason: str, now: int) -> Change:
    """Record that a run was cut off; it is never repeated."""
    outcome = {"reason": reason}
    return _ended(request, State.INTERRUPTED, "run.interrupted", outcome, now, outcome)


def expired(request: Request, now: int) -> Change:
    """End a question that nobody answered in time, or a yes that nobody came for."""
    gone = replace(request, state=State.EXPIRED, ended_at=now)
    if request.resolution is None:
        gone = replace(gone, resolution=Resolution("expired", now))
    return Change(
        gone,
        expect=frozenset({request.state}),
        events=(_event(gone, now, "approval.expired", BY_TIME, {"was": request.state.value}),),
        messages=_messages(gone, MessageKind.UPDATE, now),
    )


def withdrawn(request: Request, now: int) -> Change:
    """Take a question back on behalf of its asker."""
    return _taken_back(request, Resolution("withdrawn", now), _agent(request))


def called_off(request: Request, why: str, now: int) -> Change:
    """Take a question back on behalf of the operator, who locked everything or revoked the agent."""
    return _taken_back(request, Resolution("called-off", now, None, why), BY_OPERATOR)


def _taken_back(request: Request, resolution: Resolution, actor: str) -> Change:
    now = resolution.at
    gone = replace(request, state=State.WITHDRAWN, ended_at=now, resolution=resolution)
    why = {"reason": resolution.reason} if resolution.reason else None
    return Change(
        gone,
        expect=frozenset({State.WAITING, State.APPROVED}),
        events=(_event(gone, now, "approval.withdrawn", actor, why),),
        messages=_messages(gone, MessageKind.UPDATE, now),
    )


def _ended(
    request: Request,
    state: State,
    kind: str,
    outcome: dict[str, Any],
    now: int,
    data: dict[str, Any],
) -> Change:
    ended = replace(request, state=state, ended_at=now, outcome=outcome)
    return Change(
        ended,
        expect=frozenset({State.RUNNING}),
        events=(_event(ended, now, kind, BY_DAEMON, data),),
        messages=_messages(ended, MessageKind.UPDATE, now),
    )


def _grant(request: Request, now: int) -> Grant:
    return Grant(request.id, request.binding.digest, now, request.deadline)


def _alarms(request: Request, now: int, rule: str | None) -> tuple[AuditEvent, ...]:
    """Tell the operator of an attempt that no honest agent makes."""
    kind = _ALARMING.get(str(rule))
    data = {"rule": rule, "command": request.canonical}
    return (_event(request, now, kind, _agent(request), data),) if kind else ()


def _reasons(reviews: Sequence[GivenReview]) -> str | None:
    """Give the last reason of everybody who gave one, each with the name of whom it is."""
    last = {review.reviewer.person: review for review in reviews if review.reason}
    return "; ".join(f"{person}: {review.reason}" for person, review in last.items()) or None


def _agreement(scope: Scope) -> dict[str, Any]:
    """Tell the record what several people allowed together, and by which of their ids."""
    if not scope.agreed:
        return {}
    return {"decision": scope.answer.value, "by": [f"{who.channel}:{who.id}" for who in scope.agreed]}


def _quorum(request: Request) -> dict[str, Any]:
    """Tell the record of who said yes, where several people must."""
    if request.required == 1:
        return {}
    yes = [
        [review.reviewer.person, review.answer.value] for review in request.reviews if review.answer.allows
    ]
    return {"required": request.required, "yes": yes}


def _person(review: Review) -> str:
    return f"person:{review.reviewer.channel}:{review.reviewer.id}"


def _permission(request: Request, resolution: Resolution, scope: Scope) -> StandingPermission | None:
    """Let the same be run again until then; the run that follows this very answer is not counted."""
    if not resolution.people or resolution.until is None:
        return None
    return StandingPermission(
        id=request.id,
        agent=request.call.agent,
        session=str(request.call.session),
        binding=request.binding.digest,
        command=request.canonical,
        given_by=resolution.people,
        given_at=resolution.at,
        expires_at=resolution.until,
        max_uses=scope.max_uses,
    )


def _deny_rule(request: Request, review: Review, now: int) -> DenyRule:
    return DenyRule(request.id, request.call.agent, request.canonical, review.reviewer, now, review.reason)


def _messages(request: Request, kind: MessageKind, now: int) -> tuple[OutboxMessage, ...]:
    return tuple(OutboxMessage(copy.channel, kind, request.id, now, copy.place) for copy in request.copies)


def _reminders(request: Request, remind_at: int) -> tuple[OutboxMessage, ...]:
    """Remind later, in chats; the courier words it then, and keeps silent about what is settled."""
    notice = Notice(NoticeKind.REMINDER, "", request.id)
    return tuple(
        OutboxMessage(copy.channel, MessageKind.NOTICE, request.id, remind_at, copy.place, notice)
        for copy in request.copies
        if copy.channel not in LOCAL_CHANNELS
    )


def _agent(request: Request) -> str:
    return f"agent:{request.call.agent}"


def _admission(request: Request) -> dict[str, Any]:
    return {
        "peer": asdict(request.peer) if request.peer else None,
        "kind": request.kind.value,
        "tool": request.call.tool,
        "session": str(request.call.session),
        "command": request.canonical,
        "cwd": request.cwd,
        "placement": request.placement.value,
        "effect": request.verdict.get("effect"),
        "rule": request.verdict.get("rule"),
        "binding": request.binding.digest,
    }


def _event(
    request: Request, now: int, kind: str, actor: str, data: dict[str, Any] | None = None
) -> AuditEvent:
    return AuditEvent(now, kind, actor, request.id, data)
