"""RE2 expressions in settings: refused where they do not compile, so that nothing matches by accident."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

_KEPT: Final = 4096  # more than there are in a configuration: going through all in order compiles none anew


@lru_cache(maxsize=_KEPT)
def compiled(text: str) -> Any:  # noqa: ANN401 - re2 is untyped
    """Compile an expression once, as a rule when it is loaded; raises re2.error for what is none."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)


def re2_fault(text: str) -> str | None:
    """Say why a text is no RE2 expression, or None where it is one."""
    try:
        compiled(text)
    except re2.error as problem:
        detail = problem.args[0]
        return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    return None


def delimited(text: str) -> str | None:
    """Return the expression of a text written /like this/, or None for any other text."""
    return text[1:-1] if len(text) > 1 and text.startswith("/") and text.endswith("/") else None
