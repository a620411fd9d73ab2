"""What it means for the routes that somebody was let in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.approvals.routes import PAIRED, Route, to_place
from core.config import ExecApprovals, RouteTarget
from core.model.pairing import PairedPerson

Place = Callable[[str, str], str]


def paired_routes(settings: ExecApprovals, people: Sequence[PairedPerson], place: Place) -> tuple[Route, ...]:
    """Make a route of each person's own, to `join` those that the settings make.

    It leads to the target they were let in for, or else to their direct messages. A target that is not
    there any more, or that is not asked (`mode: session`), lets nobody in.
    """
    return tuple(_routes(settings, people, place))


def approver(person: PairedPerson) -> str:
    """Name a person as approvers are named: by the stable id, in this channel alone."""
    return f"{person.channel}:id:{person.id}"


def _routes(settings: ExecApprovals, people: Sequence[PairedPerson], place: Place) -> Iterator[Route]:
    asked = () if settings.mode == "session" else settings.targets
    targets: dict[tuple[str, str], RouteTarget] = {}
    for target in asked:
        targets.setdefault((target.channel, place(target.channel, target.to)), target)
    for person in people:
        own = RouteTarget(channel=person.channel, to=f"user:{person.id}")
        leads_to = targets.get((person.channel, person.route)) if person.route else own
        if leads_to is not None:
            yield to_place(settings, leads_to, (approver(person),), PAIRED)
