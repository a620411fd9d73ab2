"""Whether entries that were kept before still admit something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bot.check import Check, Status
from bot.client import Client, ClientError, operator_token

_PATIENCE_S = 5.0
_NAMED = 3


async def outdated_entries(socket: Path) -> list[Check]:
    """Ask the daemon for its entries; where it does not answer, other checks say so."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return [*judged(await asyncio.to_thread(_entries, str(socket)))]
    except (ClientError, TimeoutError):
        return []


def judged(rows: Sequence[dict[str, Any]]) -> Iterator[Check]:
    """Warn of learned entries that admit nothing any more."""
    ids = [row["id"][:8] for row in rows if row.get("admitsNothing")]
    if ids:
        count = "1 learned entry admits" if len(ids) == 1 else f"{len(ids)} learned entries admit"
        named = ", ".join(ids[:_NAMED]) + (", …" if len(ids) > _NAMED else "")
        detail = f"{count} nothing ({named}): left by Always before it noted directory and arguments"
        mend = "sayso allowlist remove ID for each; answer Always the next time such a command is asked about"
        yield Check("allowlist", Status.WARN, detail, mend)


def _entries(socket: str) -> list[dict[str, Any]]:
    with Client(socket, operator_token(), "operator") as client:
        entries: list[dict[str, Any]] = client.call("allowlist.list")["entries"]
        return entries
