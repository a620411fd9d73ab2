"""Flood control: how many questions one agent may have open, and how many it may put in a minute.

Each agent is counted by itself, so that none takes another's share of people's attention. Of a flood the
first refusal is recorded like every other, the ones after it are counted and recorded as one sum a minute.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from core.approvals.rehearsal import is_rehearsal
from core.config import ExecApprovals
from core.display import span
from core.errors import StoreError
from core.model.decision import Decision, Effect, Layer
from core.model.request import AuditEvent, Request, State
from core.ports import AuditStore, Clock

MINUTE_S = 60.0
LOOK_S = 15.0
TOO_MANY_OPEN = "approvals.too-many-open"
TOO_FAST = "approvals.too-fast"

log = logging.getLogger(__name__)


@dataclass
class _Spell:
    """Refusals of one agent by one rule, since the one that was recorded whole."""

    since: int
    began: float
    counted: int = 0


class FloodControl:
    """Admits questions, agent by agent."""

    def __init__(self, clock: Clock, settings: Callable[[], ExecApprovals] = ExecApprovals) -> None:
        self._clock = clock
        self._settings = settings
        self._open: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._put: defaultdict[str, deque[float]] = defaultdict(deque)
        self._spells: dict[tuple[str, str], _Spell] = {}

    def admit(self, request: Request) -> Decision | None:
        """Count a question in, or say why its agent may not put it now."""
        if is_rehearsal(request):
            return None
        agent = request.call.agent
        refusal = self._too_many_open(agent) or self._too_fast(agent)
        if refusal is None:
            self._open[agent][request.id] = request.deadline
            self._put[agent].append(self._clock.monotonic())
        return refusal

    def note(self, request: Request) -> None:
        """Follow what was committed."""
        if request.state is State.WAITING and not is_rehearsal(request):
            self._open[request.call.agent][request.id] = request.deadline
        else:
            self.drop(request)

    def drop(self, request: Request) -> None:
        """Count out a question that is settled, or could not be kept."""
        waiting = self._open.get(request.call.agent, {})
        waiting.pop(request.id, None)
        if not waiting:
            self._open.pop(request.call.agent, None)

    def _too_many_open(self, agent: str) -> Decision | None:
        most, waiting = self._settings().max_open, self._open.get(agent, {})
        if len(waiting) < most:
            return None
        first_end = span(max(1_000, min(waiting.values()) - self._clock.now()))
        reason = (
            f"agent {agent} has {len(waiting)} questions open and may have {most}, so nobody was asked; "
            f"try again when one is answered, or in {first_end}, when the first of them ends"
        )
        return Decision(Layer.APPROVALS, Effect.DENY, reason, TOO_MANY_OPEN, "approvals.exec.maxOpen")

    def _too_fast(self, agent: str) -> Decision | None:
        most, now, put = self._settings().max_per_minute, self._clock.monotonic(), self._put[agent]
        while put and put[0] <= now - MINUTE_S:
            put.popleft()
        if len(put) < most:
            return None
        wait = max(1, math.ceil(put[len(put) - most] + MINUTE_S - now))
        reason = (
            f"agent {agent} put {len(put)} questions in the last minute and may put {most}, so nobody was "
            f"asked; try again in {span(wait * 1000)}"
        )
        return Decision(Layer.APPROVALS, Effect.DENY, reason, TOO_FAST, "approvals.exec.maxPerMinute")

    def first(self, agent: str, rule: str) -> bool:
        """Tell whether a refusal is the first of its flood, which is recorded whole; count it otherwise."""
        spell = self._spells.get((agent, rule))
        if spell is None:
            self._spells[agent, rule] = _Spell(self._clock.now(), self._clock.monotonic())
            return True
        spell.counted += 1
        return False

    async def keep_account(self, record: AuditStore) -> None:
        """Record the sums, each a minute after its flood began, and all of them in the end."""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                await self.sum_up(record, before=self._clock.monotonic() - MINUTE_S)
        finally:
            await self.sum_up(record, before=math.inf)

    async def sum_up(self, record: AuditStore, *, before: float) -> None:
        """Record the sums of the floods that began before this time; what is refused next begins another."""
        over = {key: spell for key, spell in self._spells.items() if spell.began <= before}
        events = [self._sum(key, spell) for key, spell in over.items() if spell.counted]
        for key in over:
            del self._spells[key]
        try:
            if events:
                await record.append(*events)
        except StoreError as error:
            log.warning("what floods came to is not recorded yet: %s", error)
            self._restore(over)

    def _restore(self, spells: dict[tuple[str, str], _Spell]) -> None:
        for key, spell in spells.items():
            newer = self._spells.get(key)
            spell.counted += newer.counted + 1 if newer else 0
            self._spells[key] = spell

    def _sum(self, key: tuple[str, str], spell: _Spell) -> AuditEvent:
        agent, rule = key
        data = {"rule": rule, "refused": spell.counted, "since": spell.since}
        return AuditEvent(self._clock.now(), "approval.flood", f"agent:{agent}", None, data)
