"""`make bench`: measure the hot paths, print figures, write bench/latest.json; no figure makes it fail."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks import (
    analysis,
    client_start,
    deciding,
    host_start,
    hostile,
    press,
    sandbox_start,
    scale,
    tool_policy,
    waiting,
    whole_daemon,
)
from tests.benchmarks.figures import Figure, report, table

RESULT = Path(__file__).parents[2] / "bench" / "latest.json"
PARTS = {
    "start of the client": client_start.measure,
    "analysis of commands": analysis.measure,
    "decisions and the store": deciding.measure,
    "hostile calls": hostile.measure,
    "which tools": tool_policy.measure,
    "a press on Telegram": press.measure,
    "start of the sandbox": sandbox_start.measure,
    "start of a held run on the host": host_start.measure,
    "a whole daemon": whole_daemon.measure,
    "questions that wait": waiting.measure,
    "many at once": scale.measure,
}


def main() -> None:
    figures: list[Figure] = []
    for name, measure in PARTS.items():
        print(f"measuring: {name} …", flush=True)
        figures += measure()
    print(f"\n{table(figures)}\n")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report(figures), indent=2, ensure_ascii=False) + "\n")
    print(f"written to {RESULT.relative_to(Path.cwd()) if RESULT.is_relative_to(Path.cwd()) else RESULT}")


if __name__ == "__main__":
    main()
