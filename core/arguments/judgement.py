"""What the arguments of a call are answered with."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.decision import Constraint, Decision


@dataclass(frozen=True, slots=True)
class ArgumentJudgement:
    """Decisions for the trace (none where no rule concerns the arguments), and terms of a yes."""

    decisions: tuple[Decision, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    def __add__(self, other: ArgumentJudgement) -> ArgumentJudgement:
        """Put two judgements together; the strictest decision holds, all terms hold."""
        return ArgumentJudgement(self.decisions + other.decisions, self.constraints + other.constraints)
