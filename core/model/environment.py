"""The environment that a request sets, and what no program could be given."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field

MOST_VARIABLES: Final = 1_000
LONGEST_ENV: Final = 128 * 1024  # as long as a single string may be that Linux hands to a program


def no_nul(text: str) -> str:
    """Return a text; raises ValueError where it holds a NUL."""
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain half of a surrogate pair") from None
    return no_nul(text)


def _variable(name: str) -> str:
    if not name or "=" in name:
        raise ValueError("names of variables are not empty and contain no =")
    return _encodable(name)


def _not_huge(env: dict[str, str]) -> dict[str, str]:
    size = sum(len(name) + len(value) for name, value in env.items())
    if size > LONGEST_ENV:
        raise ValueError(f"has {size} characters and may have {LONGEST_ENV}; put long values into a file")
    return env


_Name = Annotated[str, AfterValidator(_variable)]
_Value = Annotated[str, AfterValidator(_encodable)]
Environment = Annotated[dict[_Name, _Value], Field(max_length=MOST_VARIABLES), AfterValidator(_not_huge)]
