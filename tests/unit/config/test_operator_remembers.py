"""`operator`: what proves the operator, and for how long that is remembered."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from core.config import OperatorSettings


@pytest.mark.parametrize(
    ("written", "ms"),
    [(0, 0), ("0", 0), ("1s", 1_000), ("15m", 900_000), ("12h", 43_200_000), (60_000, 60_000)],
)
def test_a_time_is_kept_in_milliseconds(written, ms):
    assert OperatorSettings.model_validate({"rememberFor": written}).remember_for == ms


@pytest.mark.parametrize("written", ["13h", "1d", -1, 999, "soon", "", None, "15"])
def test_what_is_out_of_bounds_or_no_time_is_refused(written):
    with pytest.raises(ValidationError):
        OperatorSettings.model_validate({"rememberFor": written})


def test_a_quarter_of_an_hour_and_the_token_are_the_defaults():
    assert (OperatorSettings().local, OperatorSettings().remember_for) == ("token", 900_000)
