"""What the arguments of a call are answered with."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.decision import Constraint, Decision


@dataclass(frozen=True, slots=True)
class ArgumentJudgement:
    """Decisions for the trace (none where no rule concerns the arguments), and terms of a yes.

    `unresolved`: a host was judged by its name alone; a yes must wait until its addresses are judged too.
    """

    decisions: tuple[Decision, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    unresolved: bool = False

    def __add__(self, other: ArgumentJudgement) -> ArgumentJudgement:
        """Put two judgements together; the strictest decision holds, all terms hold."""
        return ArgumentJudgement(
            self.decisions + other.decisions,
            self.constraints + other.constraints,
            self.unresolved or other.unresolved,
        )
