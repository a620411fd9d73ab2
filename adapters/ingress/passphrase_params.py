"""The parameters of the methods that take a passphrase; what is refused is never repeated."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr

from adapters.ingress.params import Params
from core.passphrase.rules import LONGEST

Passphrase = Annotated[SecretStr, Field(max_length=LONGEST)]


class Unlock(Params):
    """`operator.unlock`."""

    passphrase: Passphrase


class SetPassphrase(Params):
    """`operator.passphrase.set`; `old` where one is set."""

    passphrase: Passphrase
    old: Passphrase | None = None
