"""What an earlier daemon left, settled before anybody is served."""

from __future__ import annotations

from collections.abc import Callable

from core.approvals import lifecycle
from core.approvals.ledger import Ledger
from core.approvals.service import Approvals
from core.model.request import State
from core.ports import Clock, Store

KillLeftovers = Callable[[str], int]

EVERYTHING_LOCKED = "everything was locked"
TOKEN_REVOKED = "the agent's token was revoked"  # noqa: S105 - a reason, told to people


async def recover(
    store: Store, ledger: Ledger, approvals: Approvals, clock: Clock, kill_leftovers: KillLeftovers
) -> None:
    """End the runs that were cut off, which are never repeated, and take up the questions that wait.

    A daemon killed within a lock or a revocation did not take all questions back; that is done here.
    """
    for request in await store.in_states(State.RUNNING):
        kill_leftovers(request.id)
        await ledger.commit(lifecycle.interrupted(request, "the daemon ended while it ran", clock.now()))
    if await store.locked():
        await approvals.call_off(EVERYTHING_LOCKED)
    for record in await store.agents():
        if record.revoked_at is not None:
            await approvals.call_off(TOKEN_REVOKED, record.id)
    await approvals.recover()
