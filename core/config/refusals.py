"""What a model refuses, in plain words: the rule, and the value where that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LONGEST_VALUE = 40

_KINDS = {
    "missing": "is missing",
    "string_type": "must be a string",
    "string_sub_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "finite_number": "must be a finite number",
}
_BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda context: f"must be more than {context['gt']}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']}",
    "less_than": lambda context: f"must be less than {context['lt']}",
    "less_than_equal": lambda context: f"must be at most {context['le']}",
}


def in_plain_words(error: Mapping[str, Any]) -> str:
    """Say what is wrong with a value, from one of the errors of a `ValidationError`."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in ("too_long", "string_too_long"):
        return _too_long(error["input"], context["max_length"])
    if kind in _BOUNDS:
        return _BOUNDS[kind](context) + _given(error)
    if kind in ("literal_error", "enum"):
        return f"must be {str(context['expected']).replace(chr(39), '')}{_given(error)}"
    if kind == "value_error":
        return str(context["error"])
    return str(error["msg"]).replace("Input should", "must", 1)


def _too_long(value: Any, most: int) -> str:  # noqa: ANN401 - any JSON value
    what = "characters" if isinstance(value, str) else "items"
    return f"may have at most {most} {what}, and has {len(value)}"


def _given(error: Mapping[str, Any]) -> str:
    value = error.get("input")
    if isinstance(value, str):
        return f", not {value[:LONGEST_VALUE]!r}"
    return f", not {value}" if isinstance(value, int | float) else ""
