"""From a decided call to the request that is kept of it. Pure."""

from __future__ import annotations

import uuid

from core.judge import Case
from core.model.command import Placement
from core.model.principal import PeerCredentials
from core.model.request import Request, RequestKind, State
from core.model.verdict import Verdict


def admitted(
    case: Case,
    verdict: Verdict,
    kind: RequestKind,
    peer: PeerCredentials | None,
    now: int,
    deadline: int,
    where: str | None,
) -> Request:
    """Make the request of a call as it was decided; `where` is file and line of the rule that did."""
    permission = verdict.permission
    return Request(
        id=str(uuid.uuid4()),
        kind=kind,
        state=State.WAITING,
        call=case.call,
        canonical=case.bound.canonical,
        cwd=case.bound.cwd,
        placement=case.placed.placement,
        sandbox=case.bound.plan.backend if case.placed.placement is Placement.SANDBOX else None,
        verdict={**verdict.to_json(), "where": where},
        binding=case.binding,
        created_at=now,
        deadline=min(deadline, permission.expires_at) if permission else deadline,
        always=verdict.always,
        obligations=frozenset().union(*(decision.obligations for decision in verdict.trace)),
        peer=peer,
        permission=permission.id if permission else None,
        elevation=rests_on(case),
    )


def rests_on(case: Case) -> str | None:
    """Name what was set for the session, where the placement follows from it."""
    elevation = case.placed.standing.elevation
    return elevation.id if elevation else None
