"""One YAML file ▶ a tree with line numbers. No tags of one's own, no duplicate keys, bounded aliases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from bot.config.marks import Source, read_marked
from bot.config.tree import Node, Origin, Problems, Scalar, path_text
from bot.config.yaml_faults import words_of
from core.errors import ConfigError

_MAX_NODES = 100_000
_KNOWN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)


class _Loader(yaml.SafeLoader):
    """The scalars of YAML 1.2: `on`, `off`, `yes`, `no`, dates and `1:30` are text, `010` is no octal."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way; filled below


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<\Z"), ["<"])


def read_file(path: Path, files: dict[Path, Source] | None = None, *, pipes: bool = True) -> Node:
    """Read one file; raises ConfigError that names the file, and the line where there is one.

    `files` is told how the file stood that was read, and by which way.
    """
    text, source = _text_of(path, pipes=pipes)
    if files is not None:
        files[path] = source
    return parse(text, str(path))


def _text_of(path: Path, *, pipes: bool) -> tuple[str, Source]:
    try:
        content, source = read_marked(path, pipes=pipes)
        return content.decode("utf-8-sig"), source
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a directory; name the YAML file in it") from None
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {problem.start}); save it as UTF-8") from None


def parse(text: str, source: str) -> Node:
    """Read YAML text; all duplicate keys and foreign tags are reported together."""
    problems = Problems([source])
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = mark.line + 1 if mark else 0
        raise ConfigError(f"{Origin(source, line)}: is no valid YAML: {words_of(problem, text)}") from None
    except yaml.YAMLError as problem:
        raise ConfigError(
            f"{source}: is no valid YAML: {type(problem).__name__}: control characters?"
        ) from None
    except RecursionError:
        raise ConfigError(f"{source}: is nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()
    if root is None:
        return Node({}, Origin(source, 1))
    tree = _Converter(source, problems).convert(root, (), root.start_mark.line)
    problems.raise_if_any()
    return tree


class _Converter:
    """Turns the parser's nodes into ours."""

    def __init__(self, source: str, problems: Problems) -> None:
        self._source = source
        self._problems = problems
        self._open: set[int] = set()
        self._count = 0

    def convert(self, node: yaml.Node, path: tuple[str | int, ...], line: int) -> Node:
        """Convert one node; an alias that contains itself, or too many of them, is refused."""
        origin = Origin(self._source, line + 1)
        self._count += 1
        if id(node) in self._open or self._count > _MAX_NODES:
            raise ConfigError(f"{origin}: {path_text(path)}: aliases repeat without end; write it out")
        if node.tag not in _KNOWN_TAGS:
            self._problems.add(origin, path_text(path), f"the tag {node.tag!r} is not supported; remove it")
            return Node(None, origin)
        self._open.add(id(node))
        try:
            return self._converted(node, path, origin)
        finally:
            self._open.discard(id(node))

    def _converted(self, node: yaml.Node, path: tuple[str | int, ...], origin: Origin) -> Node:
        if isinstance(node, MappingNode):
            return Node(self._entries(node, path), origin)
        if isinstance(node, SequenceNode):
            items = enumerate(node.value)
            return Node(
                tuple(self.convert(item, (*path, i), item.start_mark.line) for i, item in items), origin
            )
        return self._scalar(node, path, origin)

    def _entries(self, node: MappingNode, path: tuple[str | int, ...]) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        inherited: dict[str, Node] = {}
        for key, value in node.value:
            line = key.start_mark.line
            if key.tag == "tag:yaml.org,2002:merge":
                inherited = {**self._merged(value, path), **inherited}
            elif not isinstance(key, ScalarNode):
                self._problems.add(Origin(self._source, line + 1), path_text(path), "a key must be a word")
            elif key.value in entries:
                first = entries[key.value].origin.line
                text = f"is written twice (first in line {first}); keep one"
                self._problems.add(Origin(self._source, line + 1), path_text((*path, key.value)), text)
            else:
                entries[key.value] = self.convert(value, (*path, key.value), line)
        return {**inherited, **entries}

    def _merged(self, value: yaml.Node, path: tuple[str | int, ...]) -> dict[str, Node]:
        sources = value.value if isinstance(value, SequenceNode) else [value]
        merged: dict[str, Node] = {}
        for source in sources:
            node = self.convert(source, path, source.start_mark.line)
            if node.mapping is None:
                self._problems.add(node.origin, path_text(path), "<< must name a mapping")
                continue
            merged = {**node.mapping, **merged}
        return merged

    def _scalar(self, node: yaml.Node, path: tuple[str | int, ...], origin: Origin) -> Node:
        kind, text = node.tag.rpartition(":")[2], str(node.value)
        try:
            return Node(_value(kind, text), origin, text, quoted=getattr(node, "style", None) is not None)
        except (ValueError, KeyError):
            self._problems.add(origin, path_text(path), f"is not what its tag !!{kind} says; remove the tag")
            return Node(None, origin)


def _value(kind: str, text: str) -> Scalar:
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    number = {"int": int, "float": float}.get(kind)
    return number(text) if number else text
