"""What a call whose arguments cannot be understood is refused with."""

from __future__ import annotations


class UnclearArgumentError(ValueError):
    """The arguments leave open what would be touched; the text says why and what to send instead."""
