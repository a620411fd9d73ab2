"""The doctor counts the learned entries that admit nothing, and says what to do."""

from __future__ import annotations

from bot.check import Status
from bot.doctor_allowlist import judged


def row(number: int, why: str | None) -> dict[str, str | None]:
    return {"id": f"{number}" * 36, "admitsNothing": why}


def test_entries_that_admit_nothing_are_counted_and_the_first_named() -> None:
    (check,) = judged([row(1, "outdated"), row(2, None), row(3, "outdated")])
    assert (check.name, check.status) == ("allowlist", Status.WARN)
    assert check.detail.startswith("2 learned entries admit nothing (11111111, 33333333): ")
    assert "sayso allowlist remove ID" in check.mend


def test_of_one_it_speaks_as_of_one_and_of_many_it_names_a_few() -> None:
    (one,) = judged([row(1, "outdated")])
    assert one.detail.startswith("1 learned entry admits nothing (11111111): ")
    (many,) = judged([row(number, "outdated") for number in range(1, 6)])
    assert "5 learned entries admit nothing (11111111, 22222222, 33333333, …)" in many.detail


def test_where_every_entry_counts_there_is_nothing_to_say() -> None:
    assert list(judged([row(1, None), {"id": None, "admitsNothing": None}])) == []
