"""Tool names as agents and operators write them, brought to one spelling before anything is compared."""

from __future__ import annotations

from types import MappingProxyType

# Keys are already trimmed and casefolded. The later ones are what coding agents call the same tools.
ALIASES = MappingProxyType(
    {
        "bash": "exec",
        "apply-patch": "apply_patch",
        "applypatch": "apply_patch",
        "bashoutput": "process",
        "killshell": "process",
        "multiedit": "edit",
        "notebookedit": "edit",
        "webfetch": "web_fetch",
        "web-fetch": "web_fetch",
        "websearch": "web_search",
        "web-search": "web_search",
    }
)


def normalise(name: str) -> str:
    """Trim, casefold and resolve aliases; what is unknown comes back casefolded."""
    folded = name.strip().casefold()
    return ALIASES.get(folded, folded)
