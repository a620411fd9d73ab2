"""How long layer 1 takes: patterns over tools, the pipeline, and one decision on its frozen set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from core.config import Config
from core.policy import ToolIdentity, decide, patterns, resolve
from tests.benchmarks.figures import Figure

ROUNDS = 100
DECISIONS = 5_000
TOOLS = tuple(
    sorted(
        f"{area}_{verb}{number}"
        for area in ("files", "mail", "calendar", "issues")
        for verb in ("list", "get", "put", "find", "drop")
        for number in range(10)
    )
)
PATTERNS = tuple(
    text
    for number in range(50)
    for text in (f"files_*{number}", f"*_find{number}", f"*a*i*{number % 10}", f"mail_g?t{number % 10}")
)
PLUGINS = 11  # with nine lists elsewhere they make twenty
WHO = ToolIdentity("main", "acme", "small", depth=1, sandboxed=True, channel="slack", peer="C1")


def measure() -> list[Figure]:
    """Measure with 200 tools, 200 patterns and 20 policies."""
    names = patterns.Names.of(TOOLS)
    compiled = [patterns.Pattern.compile(text) for text in PATTERNS]
    config = _policies()
    found = resolve(config, WHO)
    return [
        Figure(
            f"{len(PATTERNS)} patterns against {len(TOOLS)} tools",
            "ms",
            list(_timed(lambda: [pattern.among(names) for pattern in compiled])),
            at_most=5,
        ),
        Figure(
            f"tool pipeline, {len(TOOLS)} tools, 20 policies",
            "ms",
            list(_timed(lambda: resolve(config, WHO))),
            at_most=2,
        ),
        Figure("the same, for tools never seen before", "ms", list(_each_for_the_first_time())),
        Figure("one tool decision on the frozen set", "µs", list(_decisions(found)), at_most=5),
    ]


def _timed(work: Callable[[], object], rounds: int = ROUNDS) -> Iterator[float]:
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        yield (time.perf_counter() - began) * 1000


def _each_for_the_first_time() -> Iterator[float]:
    """Register one more tool each time, so that no list was read against these tools before."""
    for number in range(ROUNDS):
        config = _policies(f"never_seen{number}")
        yield from _timed(lambda config=config: resolve(config, WHO), 1)


def _decisions(found: Any) -> Iterator[float]:
    names = [*TOOLS[:20], "Bash", "read"]
    for _ in range(20):
        began = time.perf_counter()
        for number in range(DECISIONS):
            decide(found, names[number % len(names)])
        yield (time.perf_counter() - began) / DECISIONS * 1_000_000


def _policies(*more: str) -> Config:
    own = {**_lists(5), "byProvider": {"acme": _lists(6), "acme/small": _lists(7)}}
    tools = {
        **_lists(0),
        "registered": (*TOOLS, *more),
        "byProvider": {"acme": _lists(1), "acme/small": _lists(2)},
        "sandbox": {"tools": _lists(3)},
        "subagents": {"tools": _lists(4)},
    }
    plugins = {
        f"plugin{number}": {"groups": {"slack": {"C1": {"tools": _lists(number + 9)}}}}
        for number in range(PLUGINS)
    }
    return Config.model_validate(
        {
            "tools": tools,
            "agents": {"byId": {"main": {"tools": own}}},
            "groups": {"slack": {"C1": {"tools": _lists(8)}}},
            "plugins": plugins,
        }
    )


def _lists(number: int) -> dict[str, list[str]]:
    deny = [f"files_*{number}", f"*_drop{number % 3}"]
    return {"deny": deny, "allow": ["*", "mail_*"], "alsoAllow": ["group:web"]}
