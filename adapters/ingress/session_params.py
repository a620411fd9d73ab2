"""The parameters of the methods about sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adapters.ingress.fields import ChannelName, NonEmpty, Text
from adapters.ingress.params import Params
from core.approvals import commands
from core.model.standing import LONGEST_MS, SHORTEST_MS

Session = Annotated[NonEmpty, Field(max_length=1_000)]


class BySession(Params):
    """A method about one session."""

    session: Session


class BindSession(Params):
    """`session.bind`; `to` is a place of the channel, as targets name it."""

    session: Session
    channel: ChannelName
    to: Annotated[NonEmpty, Field(max_length=128)]


class Elevate(Params):
    """`session.elevated.set`."""

    session: Session
    level: Literal["on", "ask", "full", "off"]
    for_ms: Annotated[int, Field(ge=SHORTEST_MS, le=LONGEST_MS)] | None = None
    reason: Annotated[Text, Field(max_length=2000)] | None = None

    @model_validator(mode="after")
    def _no_time_for_off(self) -> Elevate:
        if self.level == "off" and self.for_ms is not None:
            raise ValueError("forMs goes with on, ask or full")
        return self

    @property
    def safe_reason(self) -> str | None:
        """The reason as one line that is safe to show."""
        return commands.reason(self.reason) if self.reason else None


class Tighten(Params):
    """`session.tighten`."""

    session: Session
    security: Literal["deny", "allowlist"] | None = None
    ask: Literal["always", "on-miss"] | None = None
