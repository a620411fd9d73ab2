"""What must hold for an order before any runner touches it."""

from __future__ import annotations

import asyncio
import hashlib

from adapters.runners.held_still import HeldStill
from core.approvals.binding import reverify
from core.errors import BindingMismatch, RunError
from core.model.plan import RunOrder
from core.ports import Resolver


def check_order(order: RunOrder) -> None:
    """Refuse an order that cannot be run exactly as it is written."""
    texts = (*order.argv, order.bound.cwd, *(text for pair in order.bound.env for text in pair))
    if not order.argv or not order.argv[0]:
        raise RunError("the command is empty")
    if any("\0" in text for text in texts):
        raise RunError(
            "the command, its cwd or its environment holds a NUL byte, which no program can be given"
        )
    for name, _ in order.bound.env:
        if not name or "=" in name:
            raise RunError(f"environment variable name {name!r} is not valid")
    digest = None if order.stdin is None else hashlib.sha256(order.stdin).hexdigest()
    if digest != order.bound.stdin:
        raise BindingMismatch(("stdin",))
    limits = order.bound.plan.limits
    if limits.memory_bytes is not None or limits.processes is not None:
        raise RunError("limits of memory and processes cannot be kept by this runner yet; remove them")


async def reverified(order: RunOrder, resolver: Resolver, still: HeldStill) -> None:
    """Check the binding of an order a last time; raises BindingMismatch naming what changed.

    `still` holds what it begins with, from before the look on.
    """
    bound = order.bound
    if bound.scripts or any(program.identity.sha256 for program in bound.executables):
        await asyncio.to_thread(reverify, order, resolver)  # it reads files of any size
    else:
        reverify(order, resolver)
    still.check()
