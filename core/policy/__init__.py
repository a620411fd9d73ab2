"""Layer 1: may this agent use this tool at all? Pure."""

from __future__ import annotations

from core.policy.decide import decide, refuse_owner_only
from core.policy.names import normalise
from core.policy.pipeline import resolve
from core.policy.rows import identity_of, tools_row
from core.policy.toolset import Admission, Removal, ToolIdentity, ToolSet

__all__ = [
    "Admission",
    "Removal",
    "ToolIdentity",
    "ToolSet",
    "decide",
    "identity_of",
    "normalise",
    "refuse_owner_only",
    "resolve",
    "tools_row",
]
