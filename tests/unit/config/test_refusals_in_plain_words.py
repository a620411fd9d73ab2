"""What a model refuses is said without the model's own words."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.config.refusals import in_plain_words


class Thing(BaseModel):
    model_config = ConfigDict(strict=True)

    name: Annotated[str, Field(min_length=1, max_length=5)] = "x"
    count: Annotated[int, Field(ge=1, le=9)] = 1
    kind: Literal["a", "b"] = "a"
    on: bool = False
    more: dict[str, int] = Field(default_factory=dict)
    some: Annotated[list[int], Field(max_length=1)] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": 7}, "must be a string"),
        ({"name": ""}, "must not be empty"),
        ({"name": "x" * 9}, "may have at most 5 characters, and has 9"),
        ({"count": "1"}, "must be a whole number"),
        ({"count": 0}, "must be at least 1, not 0"),
        ({"count": 10}, "must be at most 9, not 10"),
        ({"kind": "c" * 100}, f"must be a or b, not '{'c' * 40}'"),
        ({"kind": 3}, "must be a or b, not 3"),
        ({"on": "yes"}, "must be true or false"),
        ({"more": []}, "must be an object"),
        ({"some": {}}, "must be a list"),
        ({"some": [1, 2]}, "may have at most 1 items, and has 2"),
    ],
)
def test_a_refusal_names_the_rule_in_plain_words(fields, words):
    with pytest.raises(ValidationError) as refused:
        Thing.model_validate(fields)
    assert in_plain_words(refused.value.errors(include_url=False)[0]) == words
