"""What an earlier daemon left, settled before anybody is served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.approvals import lifecycle
from core.approvals.ledger import Ledger
from core.approvals.notices import CUT_OFF
from core.approvals.service import OPEN, Approvals
from core.model.request import AuditEvent, Request, State
from core.ports import Clock, Store

KillLeftovers = Callable[[str], int]

EVERYTHING_LOCKED = "everything was locked"
TOKEN_REVOKED = "the agent's token was revoked"  # noqa: S105 - a reason, told to people


@dataclass(frozen=True, slots=True)
class Left:
    """What was under way when a daemon ended: runs, and questions, of which some have no time left."""

    runs: tuple[Request, ...]
    waiting: tuple[Request, ...]
    over: tuple[Request, ...]


def cut_off(left: Left, last: int | None, now: int) -> AuditEvent:
    """Tell that a daemon ended without being asked to; `last` is when it last recorded something."""
    data = {
        "last": last,
        "runs": [{"id": request.id, "command": request.canonical} for request in left.runs],
        "waiting": [request.id for request in left.waiting],
        "over": [request.id for request in left.over],
    }
    return AuditEvent(now, CUT_OFF, "daemon", None, data)


async def recover(
    store: Store, ledger: Ledger, approvals: Approvals, clock: Clock, kill_leftovers: KillLeftovers
) -> Left:
    """End the runs that were cut off, which are never repeated, and take up the questions that wait.

    A daemon killed within a lock or a revocation did not take all questions back; that is done here.
    """
    runs = await store.in_states(State.RUNNING)
    for request in runs:
        kill_leftovers(request.id)
        await ledger.commit(lifecycle.interrupted(request, "the daemon ended while it ran", clock.now()))
    if await store.locked():
        await approvals.call_off(EVERYTHING_LOCKED)
    for record in await store.agents():
        if record.revoked_at is not None:
            await approvals.call_off(TOKEN_REVOKED, record.id)
    await approvals.recover()
    still = await store.in_states(*OPEN)
    now = clock.now()
    over = tuple(request for request in still if request.deadline <= now)
    return Left(runs, tuple(request for request in still if request.deadline > now), over)
