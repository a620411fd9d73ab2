"""What the configuration in force says of answers: who is who, how many must agree, and when to remind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from core.approvals.commands import duration_ms
from core.approvals.quorum import NOBODY, People, WhoseChat, nobody_known
from core.approvals.routes import general_terms
from core.approvals.terms import ANYTHING, Terms
from core.config import Config
from core.elevated.authority import Authority, authority

REMIND_BEFORE_MS = 30_000
SHORTEST_TO_REMIND_MS = 20_000


def _nobody(_agent: str) -> Authority:
    return Authority(enabled=False, allow_from=(), inherit=False, source="tools.elevated.enabled")


@dataclass(frozen=True, slots=True)
class Rules:
    """`people` and what `approvals.exec` says of every question; `terms` are those of page and command line.

    `remind_ms` is how long before its deadline people are reminded of a question: None where Sayso chooses,
    0 where they are not. `authority` tells who may elevate the sessions of an agent.
    """

    people: People = NOBODY
    required: int = 1
    separate: bool = False
    terms: Terms = ANYTHING
    remind_ms: int | None = None
    authority: Callable[[str], Authority] = _nobody

    def remind_at(self, created_at: int, deadline: int) -> int | None:
        """Tell when people are reminded of a question, None where they are not."""
        window = deadline - created_at
        if self.remind_ms is None and window >= SHORTEST_TO_REMIND_MS:
            return max(created_at + window // 2, deadline - REMIND_BEFORE_MS)
        return deadline - self.remind_ms if self.remind_ms and self.remind_ms < window else None


PLAIN = Rules()


def rules_of(config: Config, whose_chat: WhoseChat = nobody_known) -> Rules:
    """Read the rules from a configuration."""
    settings = config.approvals.exec
    return Rules(
        People.named(config.people, whose_chat),
        settings.required,
        settings.separation_of_duties,
        general_terms(settings),
        _remind_ms(settings.reminder),
        partial(authority, config),
    )


def _remind_ms(reminder: str) -> int | None:
    return {"auto": None, "never": 0}[reminder] if reminder in ("auto", "never") else duration_ms(reminder)


class Rulebook:
    """Gives the rules of the configuration in force, read once for each."""

    def __init__(self, config: Callable[[], Config], whose_chat: WhoseChat) -> None:
        self._config, self._whose_chat = config, whose_chat
        self._read: tuple[Config, Rules] | None = None

    def rules(self) -> Rules:
        """Return what holds now."""
        config = self._config()
        if self._read is None or self._read[0] is not config:
            self._read = (config, rules_of(config, self._whose_chat))
        return self._read[1]
