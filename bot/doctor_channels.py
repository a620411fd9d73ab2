"""How the channels of the living daemon are: what it says itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bot.check import Check, Status
from bot.client import Client, ClientError, Unreachable, operator_token

_PATIENCE_S = 5.0
_STATUS = {"ok": Status.OK, "degraded": Status.WARN}
_MENDS = {
    "degraded": "it tries again by itself; sayso status tells whether it got better",
    "down": "put this right and start the daemon again; until then nobody is asked there",
}


async def channels(socket: Path) -> list[Check]:
    """Ask the daemon; without one there is nothing to tell."""
    try:
        status = await status_of(socket)
    except Unreachable:
        return []
    except (ClientError, TimeoutError) as error:
        why = str(error) or "no answer in time"
        detail = f"the daemon does not tell how they are: {why}"
        return [Check("channels", Status.WARN, detail, "sayso status shows more")]
    if "passphrase" in status and "health" not in status:
        detail = "the daemon tells how they are once it has the operator's passphrase"
        return [Check("channels", Status.WARN, detail, "sayso operator unlock, then sayso doctor again")]
    return [*judged(status.get("health", ())), *undecided(status.get("undecided", ()))]


async def status_of(socket: Path) -> dict[str, Any]:
    """Ask how the daemon is; raises ClientError or TimeoutError."""
    async with asyncio.timeout(_PATIENCE_S):
        return await asyncio.to_thread(_status, str(socket))


def judged(rows: Sequence[dict[str, str]]) -> Iterator[Check]:
    """Turn what the daemon says of each channel into checks; an unknown state is a failure."""
    for row in rows:
        state = row["state"]
        mend = "" if state == "ok" else _MENDS.get(state, _MENDS["down"])
        yield Check(f"channel {row['channel']}", _STATUS.get(state, Status.FAIL), row["words"], mend)


def undecided(channels: Sequence[str]) -> Iterator[Check]:
    """Warn of open chats in which nobody may decide."""
    for channel in channels:
        detail = "nobody can decide there: nobody was let in, and no approver is configured"
        mend = f"sayso pair {channel}, or set approvals.exec.approvers and approvals.exec.targets"
        yield Check(f"people in {channel}", Status.WARN, detail, mend)


def _status(socket: str) -> dict[str, Any]:
    with Client(socket, operator_token(), "operator") as client:
        status: dict[str, Any] = client.call("daemon.status")
        return status
