"""The parameters of methods about one session."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adapters.ingress.params import NonEmpty, Params

Session = Annotated[NonEmpty, Field(max_length=1_000)]


class Tighten(Params):
    """`session.tighten`."""

    session: Session
    security: Literal["deny", "allowlist"] | None = None
    ask: Literal["always", "on-miss"] | None = None


class OneSession(Params):
    """A method about one session."""

    session: Session
