"""What an input row of `explain` may set in the environment is what a request may."""

from __future__ import annotations

import pytest

from core.errors import RequestError
from core.explain import call_of, read_row

BAD = [
    ({"A": "x\0y"}, "must not contain a NUL"),
    ({"A\0": "x"}, "must not contain a NUL"),
    ({"A": "\ud800"}, "half of a surrogate pair"),
    ({"\udcff": "x"}, "half of a surrogate pair"),
    ({"": "x"}, "not empty and contain no ="),
    ({"A=B": "x"}, "not empty and contain no ="),
    ({"A": "x" * 200_000}, "put long values into a file"),
    ({f"A{number}": "" for number in range(1_001)}, "at most 1000"),
]


@pytest.mark.parametrize(("env", "told"), BAD)
def test_what_no_program_could_be_given_is_an_error_that_names_the_field(env, told):
    with pytest.raises(RequestError) as refused:
        read_row({"command": "ls", "env": env})
    assert told in str(refused.value)
    assert refused.value.field.startswith("env")


def test_an_ordinary_environment_is_read():
    assert read_row({"command": "ls", "env": {"A": "é", "B": ""}}).env == {"A": "é", "B": ""}


@pytest.mark.parametrize(
    ("row", "by_client"),
    [
        ({"command": "ls"}, False),
        ({"argv": ["ls"]}, False),
        ({"tool": "exec", "command": "ls"}, False),
        ({"tool": " EXEC ", "argv": ["ls"]}, False),
        ({"tool": "Bash", "command": "ls"}, True),
        ({"tool": "Bash", "args": {"command": "ls"}}, True),
        ({"tool": "exec", "args": {"command": "ls"}}, True),
        ({"tool": "read", "args": {"path": "/x"}}, True),
    ],
)
def test_a_row_tells_who_would_carry_it_out(row, by_client):
    assert call_of(read_row(row)).by_client is by_client
