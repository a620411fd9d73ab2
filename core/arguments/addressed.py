"""Finds the address among a call's arguments: one that is judged, and no other that could be used instead."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from core.arguments.unclear import UnclearArgumentError
from core.arguments.urls import Refusal, Target, read_url
from core.display import elide, safe

# Names of arguments that lead somewhere, without `_`, `-` and capitals.
_LEADING = frozenset(
    {
        "href", "link", "links", "src", "srcset", "proxy", "host", "hostname", "server", "upstream", "origin",
        "endpoint", "domain",
    }
)  # fmt: skip
_ENDINGS = ("url", "urls", "uri", "uris")
# A window or a machine for some tools, an address for others.
_WHERE = frozenset({"target", "location", "page", "address", "site", "source"})
# What a value begins with that is an address under whatever name.
_BEGINNINGS = (
    "http:",
    "https:",
    "file:",
    "ftp:",
    "data:",
    "javascript:",
    "about:",
    "view-source:",
    "blob:",
    "//",
)


def target_of(
    args: Mapping[str, Any], places: tuple[str, ...], *, texts: frozenset[str] | None = None
) -> Target | None:
    """Return the target of the one address, None where there is none; raises UnclearArgumentError.

    `places` are the paths (`url`, `request.url`) under which the tool takes its address. With `texts`
    (arguments that are mere words) a value that begins like an address counts under every other name.
    """
    found = list(_found(args, texts))
    if not found:
        return None
    if len(found) > 1:
        both = " and ".join(safe(path[:60]) for path, _ in found[:2])
        raise UnclearArgumentError(f"{both} both lead somewhere; one address is judged, so give one")
    path, value = found[0]
    if path not in places:
        raise UnclearArgumentError(
            f"{safe(path[:60])} leads somewhere; this tool takes its address in {places[0]}"
        )
    if not isinstance(value, str):
        raise UnclearArgumentError(f"{path} must be text, one absolute URL")
    return read(value, path)


def read(value: str, path: str) -> Target:
    """Read an address; raises UnclearArgumentError that shows it."""
    target = read_url(value)
    if isinstance(target, Refusal):
        shown = safe(elide(value, head=80, tail=20).text)
        raise UnclearArgumentError(f"{safe(path[:60])} {shown!r} is refused: {target.reason}")
    return target


def looks_like_address(value: object) -> bool:
    """Tell whether a value would be taken for an address, whatever blanks and capitals it begins with."""
    if not isinstance(value, str):
        return False
    text = _bare(value)
    return "://" in text or text.startswith(_BEGINNINGS)


def addresses_in(args: Mapping[str, Any], *, texts: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Give path and value of every argument that would be taken for an address; `texts` are mere words."""
    judged = {key: value for key, value in args.items() if key not in texts}
    for path, value in _leaves(judged):
        if isinstance(value, str) and looks_like_address(value):
            yield path, value


def squashed(name: str) -> str:
    """Give a name without case and separators: `target_url`, `targetUrl` and `TARGET-URL` are one."""
    return "".join(char for char in name.casefold() if char.isalnum())


def _found(args: Mapping[str, Any], texts: frozenset[str] | None) -> Iterator[tuple[str, object]]:
    """Give path and value of whatever leads somewhere, at any depth."""
    for path, value in _leaves(args):
        names = [squashed(name) for name in re.split(r"[.\[\]]", path)]
        if any(name in _LEADING or name.endswith(_ENDINGS) for name in names):
            if value is not None and not isinstance(value, bool):
                yield path, value
            continue
        anywhere = texts is not None and path not in texts and _begins_as_address(value)
        if anywhere or (names[-1] in _WHERE and looks_like_address(value)):
            yield path, value


def _leaves(args: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Give path and value of everything that is no mapping and no list, however deep."""
    waiting: deque[tuple[str, object]] = deque([("", args)])
    while waiting:
        path, value = waiting.popleft()
        if isinstance(value, Mapping):
            waiting.extend((f"{path}.{key}" if path else str(key), below) for key, below in value.items())
        elif isinstance(value, (list, tuple)):
            waiting.extend((f"{path}[{index}]", below) for index, below in enumerate(value))
        else:
            yield path, value


def _begins_as_address(value: object) -> bool:
    return isinstance(value, str) and _bare(value).startswith(_BEGINNINGS)


def _bare(text: str) -> str:
    return "".join(char for char in text[:200].casefold() if char.isprintable() and not char.isspace())
