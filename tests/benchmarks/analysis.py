"""What analysis costs: a hundred commands of agents, never seen before, programs looked up each time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from adapters.parsers.pool import ParserPool
from adapters.resolvers.filesystem import FilesystemResolver
from bot.config import Overrides, load
from core.execsec.decide import decide
from core.execsec.policy import effective
from core.model.call import CommandText
from core.model.command import CommandFacts, Executable, Placement
from core.shell.inspect import inspect
from core.shell.parse import Parse, parse_plain
from core.shell.scan import Refused
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import EXAMPLE

LINES = tuple((Path(__file__).parent / "agent_commands.txt").read_text().splitlines())
PATH = ("/usr/local/bin", "/usr/bin", "/bin")
ROUNDS = 30
MICRO = 1e6


class KnownPrograms(FilesystemResolver):
    """Looks each program up once, so that what remains is the analysis alone."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, str], Executable | None] = {}

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        if (name, cwd) not in self._known:
            self._known[name, cwd] = super().find(name, path=path, cwd=cwd)
        return self._known[name, cwd]


def measure() -> list[Figure]:
    """Measure evaluations a second by kind of line, and the parts of one in microseconds."""
    with ParserPool(deadline_s=5) as pool:
        pool.start()
        return [*_evaluations(pool.parse), *_parts(pool.parse)]


def _evaluations(parse: Parse) -> list[Figure]:
    fast = [line for line in LINES if _is_plain(line)]
    grammar = [line for line in LINES if not _is_plain(line)]
    evaluate = _evaluation(parse)
    each = [_seconds(evaluate, [line]) * 1000 for _ in range(ROUNDS) for line in LINES]
    return [
        Figure("agents' commands on the fast path", "%", [100 * len(fast) / len(LINES)], at_least=70),
        Figure("evaluations, fast path", "per s", _rates(evaluate, fast), at_least=10_000),
        Figure(
            "evaluations, fast path, by processor time", "per s", _rates(evaluate, fast, time.process_time)
        ),
        Figure("evaluations, by the grammar", "per s", _rates(evaluate, grammar), at_least=1_000),
        Figure("evaluations, the whole list", "per s", _rates(evaluate, LINES), at_least=3_000),
        Figure(
            "one evaluation, slowest of a hundred", "ms", [sorted(each)[len(each) * 99 // 100]], at_most=4
        ),
    ]


def _parts(parse: Parse) -> list[Figure]:
    known, looked_up = KnownPrograms(), FilesystemResolver()
    facts = {line: _inspected(line, parse, known) for line in LINES}
    judge = _judging()
    parsing = _micros(lambda line: _parsed(line, parse))
    rest = _micros(lambda line: _inspected(line, parse, known))
    resolving = _micros(lambda line: _inspected(line, parse, looked_up))
    return [
        Figure("of an evaluation: parse", "µs", parsing),
        Figure("of an evaluation: canonical form, wrappers", "µs", _less(rest, parsing)),
        Figure("of an evaluation: resolve programs", "µs", _less(resolving, rest)),
        Figure("of an evaluation: match", "µs", _micros(lambda line: judge(facts[line]))),
    ]


def _evaluation(parse: Parse) -> Callable[[str], object]:
    resolver, judge = FilesystemResolver(), _judging()
    return lambda line: judge(_inspected(line, parse, resolver.for_one_command()))


def _judging() -> Callable[[CommandFacts], object]:
    config = load([EXAMPLE], env=os.environ, overrides=Overrides()).config
    policy = effective(config, "main", Placement.SANDBOX, home="/root", protected_paths=("/root/.sayso",))
    return lambda facts: decide(facts, policy, (), Placement.SANDBOX, env=(), seen_before=False)


def _inspected(line: str, parse: Parse, resolver: FilesystemResolver) -> CommandFacts:
    return inspect(CommandText(line=line), cwd="/usr", path=PATH, resolver=resolver, parse=parse)


def _is_plain(line: str) -> bool:
    try:
        return parse_plain(line) is not None
    except Refused:
        return True


def _parsed(line: str, parse: Parse) -> object:
    try:
        return parse(line)
    except Refused as refused:
        return refused


def _rates(
    work: Callable[[str], object], lines: Sequence[str], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    return [len(lines) / _seconds(work, lines, clock) for _ in range(ROUNDS)]


def _micros(work: Callable[[str], object]) -> list[float]:
    return [_seconds(work, LINES) / len(LINES) * MICRO for _ in range(ROUNDS)]


def _seconds(
    work: Callable[[str], object], lines: Sequence[str], clock: Callable[[], float] = time.perf_counter
) -> float:
    began = clock()
    for line in lines:
        work(line)
    return clock() - began


def _less(whole: Sequence[float], part: Sequence[float]) -> list[float]:
    return [max(0.0, one - other) for one, other in zip(sorted(whole), sorted(part), strict=True)]
