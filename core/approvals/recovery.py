"""What an earlier daemon left, settled before anybody is served."""

from __future__ import annotations

from collections.abc import Callable

from core.approvals import lifecycle
from core.approvals.ledger import Ledger
from core.approvals.service import Approvals
from core.model.request import State
from core.ports import Clock, Store

KillLeftovers = Callable[[str], int]


async def recover(
    store: Store, ledger: Ledger, approvals: Approvals, clock: Clock, kill_leftovers: KillLeftovers
) -> None:
    """Runs were cut off: what is left of them is killed and they are never repeated; questions wait on."""
    for request in await store.in_states(State.RUNNING):
        kill_leftovers(request.id)
        await ledger.commit(lifecycle.interrupted(request, "the daemon ended while it ran", clock.now()))
    await approvals.recover()
