"""The version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """Return the version, or `unknown` where Sayso runs from a bare checkout."""
    try:
        return installed("sayso")
    except PackageNotFoundError:
        return "unknown"
