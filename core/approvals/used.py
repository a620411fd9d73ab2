"""What is answered to who comes again with an approval that was used: it counts once."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from core.approvals.card import outcome_line, outcome_of
from core.model.outcome import Outcome, Status
from core.model.plan import Binding
from core.model.request import Request, State

REPEATED: Final = "the approval was used already: this is what came of it then, and nothing ran again"
# What its asker says of a command; the rest of a binding is how the machine was then.
_SAID: Final = frozenset(("agent", "session", "command", "cwd", "env", "stdin", "placement"))


def told_again(request: Request, binding: Binding) -> Outcome:
    """Answer a run of what has this binding now, under an approval that is no longer open.

    Whoever lost the reply gets it again, marked as such; another command gets no outcome that is not its own.
    """
    told = outcome_of(request)
    if request.state is State.USED:
        return _refusal(request, "its answer was taken as an answer alone, and no run here goes with it")
    if request.started_at is None:
        return told
    if not _SAID.isdisjoint(request.binding.changed(binding)):
        return _refusal(request, f"for another command, which {_became(request)}")
    return replace(told, notes=(*told.notes, REPEATED)) if request.state.final else told


def taken(request: Request) -> Outcome:
    """Refuse an answer that cannot be handed over: it was taken already, or is open no more."""
    late = "this answer was taken already, and it counts once; ask again"
    closed = "it was allowed, but by now its time is over, or Sayso is locked; ask again"
    reason = late if request.state is State.USED else closed
    return replace(outcome_of(request), status=Status.DENIED, reason=reason)


def _refusal(request: Request, how: str) -> Outcome:
    reason = f"the approval {request.id} was used already, {how}; nothing ran, ask again"
    approval = request.resolution.to_json(request.id) if request.resolution else None
    return Outcome(Status.DENIED, reason, request.id, approval=approval)


def _became(request: Request) -> str:
    return outcome_line(request.state, request.outcome or {}) if request.state.final else "is still running"
