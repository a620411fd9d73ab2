"""The operator's desks for a test that is about some of them."""

from __future__ import annotations

from dataclasses import fields

from bot.clock import SystemClock
from core.config import OperatorSettings
from core.desks import OperatorDesks
from core.passphrase.guard import PassphraseGuard


def some_desks(**given):
    """Return all desks, of which only those that are given are there."""
    given.setdefault("passphrase", PassphraseGuard(None, None, SystemClock(), OperatorSettings, None))
    return OperatorDesks(**{field.name: given.get(field.name) for field in fields(OperatorDesks)})
