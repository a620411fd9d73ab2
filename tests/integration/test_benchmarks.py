"""The benchmarks keep up with what they measure: each step of them still works, however long it takes."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.benchmarks import deciding, press, waiting
from tests.benchmarks.commands import command_lines
from tests.benchmarks.figures import Figure, report, table


async def test_a_command_is_decided_answered_and_handed_to_the_runner():
    async with deciding._system() as system:
        assert next(deciding._pure(system)) > 0
        assert await deciding._from_yes_to_run(system, "touch a") > 0
        assert await deciding._questions_per_second(system, at_once=deciding.AT_ONCE, first=0) > 0


@pytest.mark.parametrize("way", press.WAYS)
async def test_a_press_on_telegram_is_followed_to_the_runner(way):
    (took,) = await press.presses(way, count=1, warm_up=0)
    assert 0 < took < 60_000


@pytest.mark.daemon
@pytest.mark.parametrize("ask", [waiting.put, waiting.ask_to_run])
def test_questions_that_wait_are_weighed(ask):
    assert abs(waiting.per_question(ask, count=5, warm_up=1)) < 10_000


def test_no_two_command_lines_are_the_same():
    lines = list(islice(command_lines(1000), 1000))
    assert len(set(lines)) == 1000


@pytest.mark.parametrize(
    ("figure", "verdict", "target"),
    [
        (Figure("a", "ms", [1, 2, 3], at_most=2), "ok", "≤ 2 ms"),
        (Figure("a", "ms", [1, 2.1, 3], at_most=2), "over", "≤ 2 ms"),
        (Figure("a", "rows/s", [1000, 1001], at_least=1000), "ok", "≥ 1,000 rows/s"),
        (Figure("a", "rows/s", [998, 999], at_least=1000), "under", "≥ 1,000 rows/s"),
        (Figure("a", "ms", [5]), "", "none"),
    ],
)
def test_a_figure_says_whether_it_meets_its_target(figure, verdict, target):
    assert (figure.verdict, figure.target) == (verdict, target)
    assert target in table([figure])
    assert report([figure])["figures"]["a"]["verdict"] == (verdict or None)


def test_the_p95_is_on_the_bad_side_of_the_median():
    samples = list(range(1, 101))
    assert Figure("a", "ms", samples, at_most=1).p95 == 95
    assert Figure("a", "per s", samples, at_least=1).p95 == 6
