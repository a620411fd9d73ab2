"""The benchmark of the tool policy still measures what it says."""

from __future__ import annotations

from tests.benchmarks import tool_policy


def test_it_measures_four_figures_with_their_targets() -> None:
    figures = tool_policy.measure()
    assert [figure.at_most for figure in figures] == [5, 2, None, 5]
    assert all(figure.median > 0 for figure in figures)
    assert (len(tool_policy.TOOLS), len(tool_policy.PATTERNS)) == (200, 200)
