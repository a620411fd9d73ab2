"""`--since` and `--until`: a day, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from bot.cli.exits import UsageError
from bot.cli.parser import Parser
from bot.clock import SystemClock

_AGO = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def add_times(parser: Parser) -> None:
    """Take `--since` and `--until`."""
    form = "2h or 3d ago, 2026-11-21, or 2026-11-21T14:30 (local time)"
    parser.add_argument("--since", metavar="WHEN", help=form)
    parser.add_argument("--until", metavar="WHEN", help="likewise; not included")


def times(options: dict[str, Any], command: str) -> dict[str, int | None]:
    """Give both as epoch milliseconds; raises UsageError for what is no time."""
    found = {name: _moment(options[name], name, command) for name in ("since", "until")}
    since, until = found["since"], found["until"]
    if since is not None and until is not None and until <= since:
        raise UsageError(f"{command}: --until is not after --since, so nothing could fit", command)
    return found


def _moment(text: str | None, name: str, command: str) -> int | None:
    if text is None:
        return None
    if ago := _AGO.fullmatch(text):
        return max(0, SystemClock().now() - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError):
        form = "give 2h or 3d for so long ago, or a time as 2026-11-21 or 2026-11-21T14:30"
        raise UsageError(f"{command}: --{name} {text[:40]!r} is no time; {form}", command) from None
