"""People named in one phrase."""

from __future__ import annotations

import pytest

from core.model.principal import Reviewer, named

ANN, BEA, CEM = (Reviewer("web", str(n), name) for n, name in enumerate(("ann", "bea", "cem")))


@pytest.mark.parametrize(
    ("people", "phrase"),
    [
        ((), ""),
        ((ANN,), "ann (web:0)"),
        ((ANN, BEA), "ann (web:0) and bea (web:1)"),
        ((ANN, BEA, CEM), "ann (web:0), bea (web:1) and cem (web:2)"),
    ],
)
def test_people_are_named_in_one_phrase(people, phrase):
    assert named(people) == phrase
