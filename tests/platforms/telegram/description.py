"""The Bot API as described: decoding of parameters, and what is wrong with a value of a described type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WHOLE = json.loads((Path(__file__).parent / "description.json").read_text(encoding="utf-8"))
VERSION: str = _WHOLE["version"]
METHOD_NAMES = frozenset(_WHOLE["method_names"])
METHODS: dict[str, Any] = _WHOLE["methods"]
TYPES: dict[str, Any] = _WHOLE["types"]

_ARRAY = "Array of "
_PLAIN = {"Integer": int, "String": str, "Boolean": bool}


@dataclass(frozen=True)
class Upload:
    """A file that came in a multipart request."""

    name: str
    mime: str
    content: bytes


class UndecodableError(ValueError):
    """The raw text of a parameter is of none of the described types."""


def decode(types: list[str], raw: object) -> Any:
    """Turn a form's text into the value it stands for; values of a JSON body are left as they are."""
    if not isinstance(raw, str):
        return raw
    if "Integer" in types and re.fullmatch(r"-?[0-9]+", raw):
        return int(raw)
    if "Boolean" in types and raw.lower() in {"true", "false", "1", "0"}:
        return raw.lower() in {"true", "1"}
    if "String" in types:
        return raw
    return _from_json(types, raw)


def _from_json(types: list[str], raw: str) -> Any:
    if types == ["Float"]:
        return float(raw)
    if set(types) <= set(_PLAIN):
        raise UndecodableError(f"must be {' or '.join(types)}, is {raw!r}")
    try:
        return json.loads(raw)
    except ValueError:
        raise UndecodableError(f"must be JSON of {' or '.join(types)}, is {raw[:80]!r}") from None


def parameters(method: str, raw: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Decode a request's parameters; the second value lists everything that breaks the description."""
    fields = METHODS[method]["fields"]
    values: dict[str, Any] = {}
    problems = [f"{name}: required, and missing" for name in _missing(fields, raw)]
    for name, text in raw.items():
        if name not in fields:
            problems.append(f"{name}: no such parameter")
            continue
        try:
            values[name] = decode(fields[name]["types"], text)
        except UndecodableError as error:
            problems.append(f"{name}: {error}")
            continue
        problems += union_problems(fields[name]["types"], values[name], name, outgoing=False)
    return values, problems


def answer_problems(method: str, result: object) -> list[str]:
    """Say what is wrong with an answer of the server itself."""
    return union_problems(METHODS[method]["returns"], result, method, outgoing=True)


def union_problems(types: list[str], value: object, path: str, *, outgoing: bool) -> list[str]:
    """Judge a value by the best fitting of its types."""
    tried = [list(type_problems(kind, value, path, outgoing=outgoing)) for kind in types]
    return min(tried, key=len)


def type_problems(kind: str, value: object, path: str, *, outgoing: bool) -> Iterator[str]:
    """Say what keeps a value from being of a type; `outgoing` values may hold types that are left out."""
    if kind.startswith(_ARRAY):
        yield from _array_problems(kind.removeprefix(_ARRAY), value, path, outgoing=outgoing)
    elif kind == "InputFile":
        if not isinstance(value, Upload):
            yield f"{path}: must be an uploaded file, is {value!r:.80}"
    elif kind == "Float":
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield f"{path}: must be Float, is {value!r:.80}"
    elif kind in _PLAIN:
        if type(value) is not _PLAIN[kind]:
            yield f"{path}: must be {kind}, is {value!r:.80}"
    elif kind in TYPES:
        yield from _object_problems(kind, value, path, outgoing=outgoing)
    elif not outgoing:
        yield f"{path}: {kind} is not a part of the test server's description"


def _array_problems(kind: str, value: object, path: str, *, outgoing: bool) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: must be an array of {kind}, is {value!r:.80}"
        return
    for index, item in enumerate(value):
        yield from type_problems(kind, item, f"{path}[{index}]", outgoing=outgoing)


def _object_problems(kind: str, value: object, path: str, *, outgoing: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: must be {kind}, is {value!r:.80}"
        return
    if subtypes := TYPES[kind].get("subtypes"):
        yield from union_problems(subtypes, value, path, outgoing=outgoing)
        return
    if kind == "MaybeInaccessibleMessage":
        kind = "Message" if value.get("date") else "InaccessibleMessage"
    yield from _field_problems(kind, value, path, outgoing=outgoing)


def _field_problems(kind: str, value: dict[str, Any], path: str, *, outgoing: bool) -> Iterator[str]:
    fields = TYPES[kind]["fields"]
    yield from (f"{path}.{name}: required in {kind}, and missing" for name in _missing(fields, value))
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            yield f"{path}.{name}: no such field in {kind}"
        elif field.get("fixed", item) != item:
            yield f"{path}.{name}: must be {field['fixed']!r}, is {item!r:.80}"
        else:
            yield from union_problems(field["types"], item, f"{path}.{name}", outgoing=outgoing)


def _missing(fields: dict[str, Any], given: dict[str, Any]) -> list[str]:
    return [name for name, field in fields.items() if field.get("required") and name not in given]
