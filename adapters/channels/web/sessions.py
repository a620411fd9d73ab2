"""The page of sessions, and the alarm on all pages while one is elevated: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from adapters.channels.web.render import Alarm, Page, page_html
from core.display import elide, moment, safe
from core.model.elevation import Level

_LINES = 4
_SESSION_HEAD, _SESSION_TAIL = 48, 16
_TO_THE_MINUTE = len("2026-03-01 14:05")

_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        Level.ASK: "Its commands run on this machine itself, outside the sandbox. Every one is asked about.",
        Level.ON: "Its commands run on this machine itself, outside the sandbox. "
        "They are asked about as the policy says.",
        Level.FULL: "Its commands run on this machine itself, outside the sandbox, and nobody is asked.",
    }
)


def alarm(rows: Sequence[Mapping[str, Any]]) -> Alarm:
    """Say which sessions are elevated, full first; nothing where none is."""
    first = sorted(rows, key=_rank, reverse=True)
    lines = [_line(row) for row in first[:_LINES]]
    if len(first) > _LINES:
        lines.append(f"And {len(first) - _LINES:,} more.")
    mark = "• " if len(lines) > 1 else ""
    return Alarm(
        "\n".join(mark + line for line in lines), full=any(row["elevated"] == Level.FULL for row in rows)
    )


def sessions_html(rows: Sequence[Mapping[str, Any]], page: Page) -> str:
    """Render all sessions, those first in which most is let through, each with what can be set."""
    first = sorted(rows, key=_rank, reverse=True)
    return page_html("sessions.html", page, rows=[_worded(row, page.now) for row in first])


def _rank(row: Mapping[str, Any]) -> int:
    return Level(row["elevated"]).rank


def _line(row: Mapping[str, Any]) -> str:
    what = (
        "Elevated full, nobody is asked" if row["elevated"] == Level.FULL else f"Elevated {row['elevated']}"
    )
    until = f" until {moment(row['until'])[:_TO_THE_MINUTE]} UTC" if row["until"] else ""
    glass = ", break-glass" if row["breakGlass"] else ""
    session = elide(row["session"], head=_SESSION_HEAD, tail=_SESSION_TAIL).text
    return safe(f"{what}: {session}{until}{glass}.")


def _worded(row: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Word one row of `SessionDesk.sessions` for the page."""
    until, set_at = row["until"], row["setAt"]
    return {
        "session": row["session"],
        "agent": row["agent"],
        "level": row["elevated"],
        "meaning": _MEANINGS.get(row["elevated"], ""),
        "by": row["setBy"],
        "set_at": set_at,
        "until": until,
        "left_ms": max(until - now, 0) if until else 0,
        "window_ms": max(until - set_at, 1) if until else 1,
        "reason": row["reason"],
        "source": row["source"],
        "break_glass": row["breakGlass"],
        "chats": [f"{channel} {place}".strip() for channel, place in row["chats"]],
        "last_request": row["lastRequest"],
    }
