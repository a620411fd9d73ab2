"""Kinds of values in parameters, each with its bounds."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field

from core.model.environment import no_nul


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"must be an absolute path, not {text!r}")
    return text


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64") from None
    return text


Text = Annotated[str, AfterValidator(no_nul)]
NonEmpty = Annotated[Text, Field(min_length=1)]
Directory = Annotated[Text, AfterValidator(_absolute)]
Base64 = Annotated[str, AfterValidator(_base64)]
Claim = Annotated[Text, Field(max_length=200)]  # kept in memory beside what follows from it
RequestId = Annotated[Text, Field(min_length=1, max_length=128)]
ChannelName = Annotated[Text, Field(min_length=1, max_length=100)]
RouteName = Annotated[Text, Field(min_length=1, max_length=128)]
Limit = Annotated[int, Field(ge=1, le=1000)]
