"""Under which further paths a program is known."""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import Final

# In the root directory, links below /usr on merged systems.
_MERGED: Final = ("/bin", "/sbin", "/lib", "/lib64")


def aliases(place: str, found: str, real: str) -> tuple[str, ...]:
    """Give the other absolute paths of a program: as it was looked up, and through the links of `/`."""
    through = (
        link + path[len(target) :]
        for link, target in _links()
        for path in (found, real)
        if path.startswith(target + "/")
    )
    given = [place] if posixpath.normpath(place) == place else []
    return tuple(dict.fromkeys(path for path in (*given, *through) if path not in {found, real}))


@lru_cache(maxsize=1)
def _links() -> tuple[tuple[str, str], ...]:
    return tuple((link, posixpath.realpath(link)) for link in _MERGED if posixpath.islink(link))
