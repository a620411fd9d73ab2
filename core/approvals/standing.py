"""What standing answers mean for a decision: deny rules deny, permissions answer questions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.display import moment
from core.model.decision import Decision, Effect, Layer, Obligation, strictest
from core.model.principal import named
from core.model.standing import DenyRule, StandingPermission

ENDED = Decision(
    Layer.APPROVALS,
    Effect.DENY,
    "the permission under which this would run has just ended; asked again, it is put to people",
    "permission-ended",
    "sayso permissions",
)


def forbidding(rules: Sequence[DenyRule], spellings: Collection[str]) -> Decision | None:
    """Deny what a person denied always, whichever of its spellings was used."""
    rule = next((rule for rule in rules if rule.command in spellings), None)
    if rule is None:
        return None
    why = f": {rule.reason}" if rule.reason else ""
    reason = f"{rule.given_by} denied exactly this always, on {moment(rule.given_at)}{why}"
    return Decision(Layer.APPROVALS, Effect.DENY, reason, "denied-always", _kept_as(rule.id))


def permitting(permission: StandingPermission | None, trace: Sequence[Decision]) -> Decision | None:
    """Answer the questions in a trace by a permission; None where it cannot answer them all."""
    if permission is None or strictest(trace).effect is not Effect.ASK:
        return None
    if any(Obligation.NEVER_REMEMBER in decision.obligations for decision in trace):
        return None
    reason = f"{named(permission.given_by)} allowed exactly this until {moment(permission.expires_at)}"
    return Decision(Layer.APPROVALS, Effect.ALLOW, reason, "standing-permission", _kept_as(permission.id))


def _kept_as(answer_id: str) -> str:
    return f"sayso permissions ({answer_id[:8]})"
