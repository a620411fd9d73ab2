"""The operator's desks for a test that is about some of them."""

from __future__ import annotations

from dataclasses import fields

from core.desks import OperatorDesks


def some_desks(**given):
    """Return all desks, of which only those that are given are there."""
    return OperatorDesks(**{field.name: given.get(field.name) for field in fields(OperatorDesks)})
