"""When a channel's trouble is worth telling: for good at once, for long once, and its end once. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from bot.health import DEGRADED, DOWN, OK
from core.approvals.notices import CHANNEL_FAILED, CHANNEL_RECOVERED
from core.model.request import AuditEvent

PATIENCE_S = 120.0  # what gets better by itself within this is a hiccup
STEADY_S = 10.0  # a channel that works only for moments does not work

Row = Mapping[str, str]


class Grade(IntEnum):
    """How grave a state is."""

    OK = 0
    DEGRADED = 1
    DOWN = 2


_GRADES = {OK: Grade.OK, DEGRADED: Grade.DEGRADED, DOWN: Grade.DOWN}


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a channel is not steadily ok.

    `since` is epoch milliseconds; `began` and `well` (since when it is ok again, if it is) are seconds that
    never go back; `told` is the gravest state that was told of.
    """

    since: int
    began: float
    told: Grade = Grade.OK
    well: float | None = None


def observe(
    outages: Mapping[str, Outage], rows: Iterable[Row], now: int, steady: float
) -> tuple[dict[str, Outage], tuple[AuditEvent, ...]]:
    """Work out, from what is known and how the channels are, what is known next and what is to be told."""
    known: dict[str, Outage] = {}
    events: list[AuditEvent] = []
    for row in rows:
        before = outages.get(row["channel"]) or Outage(now, steady, well=-math.inf)
        after, kind = _step(before, grade(row["state"]), steady)
        if kind is not None:
            events.append(_event(kind, row, before.since, now))
        if after is not None:
            known[row["channel"]] = after
    return known, tuple(events)


def grade(state: str) -> Grade:
    """Return how grave a state is; one that is unknown is the gravest."""
    return _GRADES.get(state, Grade.DOWN)


def _step(outage: Outage, seen: Grade, steady: float) -> tuple[Outage | None, str | None]:
    if seen is Grade.OK:
        return _better(outage, steady)
    outage = replace(outage, well=None)
    lasts = seen is Grade.DOWN or steady - outage.began >= PATIENCE_S
    if seen <= outage.told or not lasts:
        return outage, None
    return replace(outage, told=seen), CHANNEL_FAILED


def _better(outage: Outage, steady: float) -> tuple[Outage | None, str | None]:
    well = steady if outage.well is None else outage.well
    if steady - well < STEADY_S:
        return replace(outage, well=well), None
    return None, CHANNEL_RECOVERED if outage.told else None


def _event(kind: str, row: Row, since: int, now: int) -> AuditEvent:
    return AuditEvent(now, kind, f"channel:{row['channel']}", None, {**row, "since": since})
