"""Kinds of values in parameters, each with its bounds."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"must be an absolute path, not {text!r}")
    return text


def _variable(name: str) -> str:
    if not name or "=" in name:
        raise ValueError("names of variables are not empty and contain no =")
    return _no_nul(name)


def _not_huge(env: dict[str, str]) -> dict[str, str]:
    size = sum(len(name) + len(value) for name, value in env.items())
    if size > LONGEST_ENV:
        raise ValueError(f"has {size} characters and may have {LONGEST_ENV}; put long values into a file")
    return env


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64") from None
    return text


MOST_VARIABLES = 1_000
LONGEST_ENV = 128 * 1024  # as long as a single string may be that Linux hands to a program
Text = Annotated[str, AfterValidator(_no_nul)]
NonEmpty = Annotated[Text, Field(min_length=1)]
Directory = Annotated[Text, AfterValidator(_absolute)]
Variable = Annotated[str, AfterValidator(_variable)]
Environment = Annotated[dict[Variable, Text], Field(max_length=MOST_VARIABLES), AfterValidator(_not_huge)]
Base64 = Annotated[str, AfterValidator(_base64)]
Claim = Annotated[Text, Field(max_length=200)]  # kept in memory beside what follows from it
RequestId = Annotated[Text, Field(min_length=1, max_length=128)]
ChannelName = Annotated[Text, Field(min_length=1, max_length=100)]
RouteName = Annotated[Text, Field(min_length=1, max_length=128)]
Limit = Annotated[int, Field(ge=1, le=1000)]
