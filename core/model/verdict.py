"""The decision of all layers together, with all that explains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.model.allowlist import AllowlistEntry, AlwaysOffer, EntryUse
from core.model.command import CommandFacts, Placement
from core.model.decision import Constraint, Decision, Effect, Obligation
from core.model.standing import StandingPermission


@dataclass(frozen=True, slots=True)
class Verdict:
    """`decision` is the strictest of `trace`; `satisfied_by` names per segment what admitted it.

    `permission` is the one by which a question became an allow. `constraints` are terms of a yes for whoever
    carries the call out. `entries` holds per segment the entry that admitted it. `account` is the Unix
    account that it runs as; None where Sayso does not run it.
    """

    decision: Decision
    trace: tuple[Decision, ...]
    placement: Placement
    facts: CommandFacts | None = None
    satisfied_by: tuple[str | None, ...] = ()
    always: AlwaysOffer = AlwaysOffer()
    permission: StandingPermission | None = None
    constraints: tuple[Constraint, ...] = ()
    entries: tuple[AllowlistEntry | None, ...] = ()
    account: str | None = None

    @property
    def effect(self) -> Effect:
        """The effect of the strictest layer."""
        return self.decision.effect

    def uses(self) -> tuple[EntryUse, ...]:
        """Tell which kept entries admitted what, each once, by the first segment that it admitted."""
        segments = self.facts.segments if self.facts else ()
        pairs = zip(self.entries, segments, strict=False)
        first = {e.id: s for e, s in reversed(list(pairs)) if e and e.id and s.executable}
        return tuple(
            EntryUse(entry_id, " ".join(word.source for word in segment.words), segment.executable.real_path)
            for entry_id, segment in first.items()
            if segment.executable
        )

    def _sources(self) -> tuple[str | None, ...]:
        return tuple(entry.source if entry else None for entry in self.entries)

    def obliges(self, obligation: Obligation) -> bool:
        """Tell whether any layer attached this obligation."""
        return any(obligation in decision.obligations for decision in self.trace)

    def to_json(self) -> dict[str, Any]:
        """Give an output row of `explain`, but for its id."""
        return {
            **self.decision.to_json(),
            "placement": self.placement.value,
            "account": self.account,
            "trace": [decision.to_json() for decision in self.trace],
            "constraints": [constraint.to_json() for constraint in self.constraints],
            "canonical": self.facts.canonical if self.facts else None,
            "facts": self.facts.to_json(self.satisfied_by, self._sources()) if self.facts else None,
            "always": {
                "patterns": [entry.pattern for entry in self.always.entries],
                "words": list(self.always.words),
                "why": self.always.why,
            },
        }
