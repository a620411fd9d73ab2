"""Under which further paths a program is known."""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import Final

# In the root directory, links below /usr on merged systems.
_MERGED: Final = ("/bin", "/sbin", "/lib", "/lib64")
_KEPT: Final = 256


def aliases(place: str, found: str, real: str) -> tuple[str, ...]:
    """Give the other absolute paths of a program: as it was looked up, and through the links of `/`."""
    if place == found == real:
        directory, _, base = real.rpartition("/")
        return tuple([linked + base for linked in _linked(directory)])
    given = (place,) if place not in (found, real) and posixpath.normpath(place) == place else ()
    both = (found,) if found == real else (found, real)
    through = [
        link + path[len(target) :] for link, target in _links() for path in both if path.startswith(target)
    ]
    return tuple(dict.fromkeys((*given, *(path for path in through if path not in both))))


@lru_cache(maxsize=_KEPT)
def _linked(directory: str) -> tuple[str, ...]:
    """Give how a directory, and the `/` behind it, reads through the links of `/`."""
    return tuple(
        link + f"{directory}/"[len(target) :]
        for link, target in _links()
        if f"{directory}/".startswith(target)
    )


@lru_cache(maxsize=1)
def _links() -> tuple[tuple[str, str], ...]:
    links = (link for link in _MERGED if posixpath.islink(link))
    return tuple((f"{link}/", f"{posixpath.realpath(link)}/") for link in links)
