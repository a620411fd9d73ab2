"""A measured figure, its target, and the table they make."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HEADS = ("figure", "median", "p95", "target", "")
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; `at_most` and `at_least` are targets for the median."""

    name: str
    unit: str
    samples: Sequence[float]
    at_most: float | None = None
    at_least: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        """The sample that 95 % are no worse than."""
        worst_last = sorted(self.samples, reverse=self.at_least is not None)
        return worst_last[round(0.95 * (len(worst_last) - 1))]

    @property
    def verdict(self) -> str:
        if self.at_most is None and self.at_least is None:
            return ""
        low = float("-inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return "ok" if low <= self.median <= high else "over" if self.at_least is None else "under"

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"≥ {_short(self.at_least)} {self.unit}"
        return f"≤ {_short(self.at_most)} {self.unit}" if self.at_most is not None else "none"

    def to_json(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "median": round(self.median, 4),
            "p95": round(self.p95, 4),
            "samples": len(self.samples),
            "atMost": self.at_most,
            "atLeast": self.at_least,
            "verdict": self.verdict or None,
        }

    def row(self) -> tuple[str, ...]:
        p95 = _short(self.p95) if len(self.samples) > 1 else ""
        return (self.name, f"{_short(self.median)} {self.unit}", p95, self.target, self.verdict)


def table(figures: Sequence[Figure]) -> str:
    """Lay the figures out in columns."""
    rows = [HEADS, *(figure.row() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def report(figures: Sequence[Figure]) -> dict[str, Any]:
    """Tell the figures, and what they were measured on."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "processors": os.cpu_count(),
            "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
            "load": [round(load, 2) for load in os.getloadavg()],
        },
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "figures": {figure.name: figure.to_json() for figure in figures},
    }


def _processor() -> str:
    lines = _CPUINFO.read_text().splitlines() if _CPUINFO.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
