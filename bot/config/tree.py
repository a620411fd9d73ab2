"""The configuration before it is checked: values that remember where they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import ConfigError

Part = str | int
Parts = tuple[Part, ...]
Scalar = str | int | float | bool | None

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Origin:
    """A file and line; line 0 where there are no lines. `start` marks flags and environment variables."""

    source: str
    line: int = 0
    start: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the configuration. `written` is its text before variables were put in.

    `quoted` marks a text that can only be meant as one.
    """

    value: Mapping[str, Node] | Sequence[Node] | Scalar = field(repr=False)
    origin: Origin
    written: str | None = field(default=None, repr=False)
    secret: bool = False
    quoted: bool = False

    @property
    def mapping(self) -> Mapping[str, Node] | None:
        """The entries, where this is a mapping."""
        return self.value if isinstance(self.value, Mapping) else None

    @property
    def items(self) -> Sequence[Node] | None:
        """The items, where this is a list."""
        return self.value if isinstance(self.value, tuple | list) else None

    def child(self, part: Part) -> Node | None:
        """Return what is below a key or an index."""
        if self.mapping is not None and isinstance(part, str):
            return self.mapping.get(part)
        if self.items is not None and isinstance(part, int) and part < len(self.items):
            return self.items[part]
        return None

    def shown(self) -> str:
        """Describe the value for an error message; a secret, a mapping or a list is only named."""
        if self.secret:
            return "the secret"
        if self.mapping is not None:
            return "a mapping"
        if self.items is not None:
            return "a list"
        if self.value is None:
            return "nothing"
        written = self.written if self.written is not None else str(self.value)
        text = repr(written) if isinstance(self.value, str) else written
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Problems:
    """Collects everything that is wrong, so that it is told at once."""

    def __init__(self, sources: Sequence[str] = ()) -> None:
        self._order = {source: index for index, source in enumerate(sources)}
        self._found: list[tuple[int, int, str]] = []
        self._paths: set[str] = set()

    def add(self, origin: Origin, path: str, text: str) -> None:
        """Note a problem: where it is written, which key, what is wrong and what to do."""
        self._paths.add(path)
        rank = self._order.get(origin.source, len(self._order))
        self._found.append((rank, origin.line, ": ".join(part for part in (str(origin), path, text) if part)))

    def at(self, path: str) -> bool:
        """Tell whether something was found wrong with exactly this key."""
        return path in self._paths

    def raise_if_any(self) -> None:
        """Raise one ConfigError with a line for each problem, in the order of the files."""
        if self._found:
            raise ConfigError("\n".join(dict.fromkeys(text for _, _, text in sorted(self._found))))


def path_text(parts: Parts) -> str:
    """Write a path as people do: `agents.main.exec.allowlist[0]`."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def from_python(value: Any, origin: Origin) -> Node:  # noqa: ANN401 - a JSON value
    """Make a tree of a JSON value."""
    if isinstance(value, Mapping):
        return Node({str(key): from_python(item, origin) for key, item in value.items()}, origin)
    if isinstance(value, list | tuple):
        return Node(tuple(from_python(item, origin) for item in value), origin)
    return Node(value, origin, quoted=isinstance(value, str))


def to_python(node: Node) -> Any:  # noqa: ANN401 - a JSON value
    """Give the plain value."""
    if node.mapping is not None:
        return {key: to_python(child) for key, child in node.mapping.items()}
    if node.items is not None:
        return [to_python(child) for child in node.items]
    return node.value


def overlay(base: Node, over: Node) -> Node:
    """Lay one tree over another: mappings merge, everything else replaces."""
    if base.mapping is None or over.mapping is None:
        return over
    merged = dict(base.mapping)
    for key, child in over.mapping.items():
        merged[key] = overlay(merged[key], child) if key in merged else child
    return replace(over, value=merged)


def put(node: Node, parts: Sequence[str], leaf: Node) -> Node:
    """Return the tree with one value replaced; missing mappings on the way get the leaf's origin."""
    if not parts:
        return leaf
    head, *rest = parts
    entries = dict(node.mapping or {})
    entries[head] = put(entries.get(head, Node({}, leaf.origin)), rest, leaf)
    return replace(node, value=entries)


def find(node: Node, parts: Sequence[Part]) -> Node | None:
    """Return the node at a path, or None."""
    for part in parts:
        below = node.child(part)
        if below is None:
            return None
        node = below
    return node


def nearest(node: Node, parts: Sequence[Part]) -> Node:
    """Return the node at a path, or the nearest one that encloses it."""
    for part in parts:
        below = node.child(part)
        if below is None:
            return node
        node = below
    return node


def locate(node: Node, path: str) -> tuple[Node, str]:
    """Return the nearest node for a path in text, and the rest of the path that is not there.

    Keys may hold dots; of several that fit, the longest counts.
    """
    while path:
        part, rest = _first_part(node, path)
        below = None if part is None else node.child(part)
        if below is None:
            break
        node, path = below, rest
    return node, path


def _first_part(node: Node, path: str) -> tuple[Part | None, str]:
    if node.items is not None:
        index, bracket, rest = path.removeprefix("[").partition("]")
        known = path.startswith("[") and bracket and index.isdecimal()
        return (int(index), rest.removeprefix(".")) if known else (None, path)
    key = max((key for key in node.mapping or () if _leads(path, key)), key=len, default=None)
    return key, path[len(key or "") :].removeprefix(".")


def _leads(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))


def leaves(node: Node, parts: Parts = ()) -> Iterator[tuple[Parts, Node]]:
    """Yield every value that is neither mapping nor list, with its path."""
    if node.mapping is not None:
        for key, child in node.mapping.items():
            yield from leaves(child, (*parts, key))
    elif node.items is not None:
        for index, child in enumerate(node.items):
            yield from leaves(child, (*parts, index))
    else:
        yield parts, node
