"""Text for people: notes on stderr, tables, colour where it is wanted."""

from __future__ import annotations

import json
import os
import sys

from bot.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
_MINUTE_S, _HOUR_S = 60, 3600
_SOON_S = 90
_GAP = "  "


def shown(text: object, *, multiline: bool = False) -> str:
    """Make any value safe to print."""
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    from core.display import safe  # noqa: PLC0415 - plain text needs none of it

    return safe(text, multiline=multiline)


def coloured(text: str, colour: str, stream: Any = None) -> str:  # noqa: ANN401 - any text stream
    """Colour a text where the stream is a terminal and NO_COLOR is not set."""
    stream = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def note(text: str, colour: str | None = None) -> None:
    """Say something of Sayso's own on stderr."""
    text = shown(text, multiline=True)
    sys.stderr.write((coloured(text, colour, sys.stderr) if colour else text) + "\n")
    sys.stderr.flush()


def put_json(value: object) -> None:
    """Print one JSON value as one line."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()


def left(deadline_ms: int | None) -> str:
    """Say how much time is left until an epoch time."""
    if deadline_ms is None:
        return ""
    return f"{span(max(0.0, (deadline_ms - SystemClock().now()) / 1000))} left"


def ago(at_ms: int | None) -> str:
    """Say how long ago something was."""
    return f"{span(max(0.0, (SystemClock().now() - at_ms) / 1000))} ago" if at_ms is not None else ""


def span(seconds: float) -> str:
    """Say a length of time in words."""
    if seconds < _SOON_S:
        return f"{round(seconds)} s"
    if seconds < _HOUR_S:
        return f"{round(seconds / _MINUTE_S)} min"
    hours, minutes = divmod(round(seconds / _MINUTE_S), _MINUTE_S)
    if hours < 48:  # noqa: PLR2004 - two days
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns; the last column is as long as it needs to be."""
    cells = [list(heads), *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    for index, row in enumerate(cells):
        line = _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(coloured(line, "bold") if index == 0 else line)


def facts(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names and values below each other; what is empty is left out."""
    told = [(name, shown(value, multiline=True)) for name, value in pairs if value not in (None, "", (), [])]
    width = max((len(name) for name, _ in told), default=0)
    for name, text in told:
        print(f"{coloured(name.ljust(width), 'dim')}  {_indented(text, width + 2)}")


def _indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)
