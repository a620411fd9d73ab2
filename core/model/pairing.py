"""People whom the operator let in through a chat: a code, a claim, a confirmation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PairedPerson:
    """Somebody who may decide: `id` is the platform's stable id, `name` what the operator was shown.

    `route` is the place (as the channel names it) of the target in which this person may decide; empty means
    the person's own direct messages, which become a place to ask in.
    """

    channel: str
    id: str
    name: str
    route: str
    paired_at: int
