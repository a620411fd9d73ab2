"""RE2 expressions in settings: refused where they do not compile, so that nothing matches by accident."""

from __future__ import annotations

import re2


def re2_fault(text: str) -> str | None:
    """Say why a text is no RE2 expression, or None where it is one."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error as problem:
        detail = problem.args[0]
        return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    return None


def delimited(text: str) -> str | None:
    """Return the expression of a text written /like this/, or None for any other text."""
    return text[1:-1] if len(text) > 1 and text.startswith("/") and text.endswith("/") else None
