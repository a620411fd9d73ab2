"""Checks the shape of a tree against the models: one spelling per key, no unknown keys, secrets marked."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.alias_generators import to_camel

from adapters.runners.accounts import uid_for_name
from bot.config.tree import Node, Origin, Parts, Problems, path_text
from core.config import (
    AccountOnThisMachine,
    AgentDefaults,
    Agents,
    AgentSettings,
    PathOnThisMachine,
    Section,
)
from core.model.session import is_agent_id


@dataclass(frozen=True, slots=True)
class Shape:
    """What may stand somewhere: the mapping's own model, or what every entry or item is."""

    model: type[Section] | None = None
    each_entry: Any = None
    each_item: Any = None
    secret: bool = False
    path: bool = False
    account: bool = False
    truth: bool = False


@lru_cache(maxsize=512)
def shape_of(annotation: Any, marks: tuple[Any, ...] = ()) -> Shape:  # noqa: ANN401 - a type expression
    """Read a type expression of the models."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        known = (PathOnThisMachine, AccountOnThisMachine)
        return shape_of(
            arguments[0], (*marks, *(type(one) for one in arguments[1:] if isinstance(one, known)))
        )
    if origin in (Union, types.UnionType):
        (kept,) = [argument for argument in arguments if argument is not type(None)]
        return shape_of(kept, marks)
    if origin is dict:
        return Shape(each_entry=arguments[1])
    if origin is tuple:
        return Shape(each_item=arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return Shape(model=annotation)
    return Shape(
        secret=annotation is SecretStr,
        path=PathOnThisMachine in marks,
        account=AccountOnThisMachine in marks,
        truth=annotation is bool,
    )


@lru_cache(maxsize=256)
def spellings(model: type[Section]) -> Mapping[str, str]:
    """Map every accepted spelling of a model's keys to the canonical one."""
    found: dict[str, str] = {}
    for name, field in model.model_fields.items():
        canonical = field.alias or name
        found |= {name: canonical, canonical: canonical, to_camel(name): canonical}
    return types.MappingProxyType(found)


@lru_cache(maxsize=256)
def value_types(model: type[Section]) -> Mapping[str, Any]:
    """Map the canonical keys of a model to the types of their values."""
    return types.MappingProxyType(
        {
            field.alias or name: Annotated[field.annotation, *field.metadata]
            if field.metadata
            else field.annotation
            for name, field in model.model_fields.items()
        }
    )


def canonical(node: Node, annotation: Any, problems: Problems, path: Parts = ()) -> Node | None:  # noqa: ANN401 - as above
    """Return the tree in canonical keys; what has no place in it is reported and left out."""
    shape = shape_of(annotation)
    if shape.model is None and shape.each_entry is None:
        return _leaf_or_list(node, shape, problems, path)
    if node.value is None:
        return None
    if node.mapping is None:
        text = f"must be a mapping (key: value), not {_kind(node)}; indent its keys below it"
        problems.add(node.origin, path_text(path), text)
        return None
    pairs = _entries(node, shape, problems, path)
    checked = ((key, canonical(child, inner, problems, (*path, key))) for key, child, inner in pairs)
    return replace(node, value={key: child for key, child in checked if child is not None})


def _kind(node: Node) -> str:
    # never the value: a secret may stand where a mapping belongs
    return "a list" if node.items is not None else "a single value"


def _leaf_or_list(node: Node, shape: Shape, problems: Problems, path: Parts) -> Node:
    if fault := _misspelt(node, shape):
        problems.add(node.origin, path_text(path), f"{node.shown()} {fault}")
    if shape.each_item is None or node.items is None:
        return replace(node, secret=shape.secret)
    items = (
        canonical(item, shape.each_item, problems, (*path, index)) for index, item in enumerate(node.items)
    )
    return replace(node, value=tuple(item for item in items if item is not None))


def _misspelt(node: Node, shape: Shape) -> str:
    """Say what is wrong with a value that would pass, or be refused in misleading words; or nothing."""
    if shape.path and node.value is None and node.written == "~":
        return 'would be set: YAML reads ~ alone as nothing; write "~/" or the path, in quotes'
    if shape.truth and node.quoted and "${" not in str(node.value):
        return "is text; write true or false, without quotes"
    number = isinstance(node.value, int) and not isinstance(node.value, bool)
    if shape.account and (number or isinstance(node.value, str)):
        return uid_for_name(str(node.value))
    return ""


def _entries(node: Node, shape: Shape, problems: Problems, path: Parts) -> Iterator[tuple[str, Node, Any]]:
    entries = node.mapping or {}
    if shape.model is Agents:
        yield from _agents(entries, problems, path)
    elif shape.model is not None:
        yield from _fields(entries, shape.model, problems, path)
    else:
        yield from ((key, child, shape.each_entry) for key, child in entries.items())


def _agents(entries: Mapping[str, Node], problems: Problems, path: Parts) -> Iterator[tuple[str, Node, Any]]:
    for key, child in entries.items():
        if key == "defaults":
            yield key, child, AgentDefaults
        elif is_agent_id(key):
            # an agent with nothing below it is still an agent
            yield key, replace(child, value={}) if child.value is None else child, AgentSettings
        else:
            text = "is no valid agent id; use lower case letters, digits, _ and -, at most 64"
            problems.add(child.origin, path_text((*path, key)), text)


def _fields(
    entries: Mapping[str, Node], model: type[Section], problems: Problems, path: Parts
) -> Iterator[tuple[str, Node, Any]]:
    known, types_ = spellings(model), value_types(model)
    seen: dict[str, tuple[str, Origin]] = {}
    for key, child in entries.items():
        name = known.get(key)
        if name is None:
            problems.add(child.origin, path_text((*path, key)), f"is no known key{_nearest(key, types_)}")
        elif name in seen:
            other, where = seen[name]
            text = f"is the same key as {other} ({where}); keep one of the two spellings"
            problems.add(child.origin, path_text((*path, key)), text)
        else:
            seen[name] = (key, child.origin)
            yield name, child, types_[name]


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(key.casefold().replace("_", ""), by_folded, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {by_folded[near[0]]}?"
    return f"; known here: {', '.join(known)}" if known else ""
