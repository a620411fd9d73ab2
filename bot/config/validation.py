"""A tree ▶ `Config`; what the models refuse is told with file, line, key, value, rule and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bot.config.tree import Node, Parts, Problems, find, nearest, path_text, to_python
from core.config import Config
from core.policy.checks import faults, hopeless_allow_lists

_TYPES = {
    "string_type": "must be text; write it in quotes",
    "tuple_type": "must be a list; write [a, b], or one item a line, each with a dash before it",
    "missing": "is missing; add it",
    "string_too_short": "must not be empty; give a value or remove the key",
    "too_short": "must not be empty; give a value or remove the key",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
}
_FORMS = {
    "^/": "must be an absolute path; begin it with / or ~/",
    "^https://": "must be an address that begins with https://",
    r"^[1-9][0-9]{0,4}[hd]$": "must be a number of hours or days, such as 12h or 30d",
    "^https?://": "must be an address that begins with https:// or http://",
}
_PLACE_FORMS = "must be user:ID, channel:ID, thread:ID (thread:CHAT/TOPIC in Telegram), or an id alone"
_WITHOUT_VALUE = frozenset({"missing", "string_too_short", "too_short"})
_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def validate(root: Node, problems: Problems) -> Config | None:
    """Build the configuration, or report what is wrong and return None."""
    try:
        config = Config.model_validate(_as_models_want(root))
    except ValidationError as refused:
        for error in refused.errors(include_url=False, include_input=False):
            _report(root, _parts(error["loc"]), error, problems)
        return None
    for fault in faults(config):
        problems.add(nearest(root, fault.path).origin, path_text(fault.path), fault.text)
    return config


def report_hopeless_lists(root: Node, config: Config, problems: Problems) -> None:
    """Refuse allow lists in which nothing is known: they would silently block every tool."""
    for path in hopeless_allow_lists(config):
        text = (
            "names no known tool or group, so it would block every tool; a plugin's tools belong in alsoAllow"
        )
        problems.add(nearest(root, path).origin, path_text(path), text)


def _as_models_want(root: Node) -> Any:  # noqa: ANN401 - a JSON value
    plain = to_python(root)
    agents = plain.get("agents")
    if isinstance(agents, dict):
        by_id = {key: agent for key, agent in agents.items() if key != "defaults"}
        defaults = {"defaults": agents["defaults"]} if "defaults" in agents else {}
        plain = {**plain, "agents": {**defaults, "byId": by_id}}
    return plain


def _parts(loc: tuple[str | int, ...]) -> Parts:
    return (loc[0], *loc[2:]) if loc[:2] == ("agents", "byId") else loc


def _report(root: Node, parts: Parts, error: Mapping[str, Any], problems: Problems) -> None:
    path = path_text(parts)
    if problems.at(path):
        return
    node = find(root, parts)
    problems.add(nearest(root, parts).origin, path, _value(error, node) + _rule(error, node))


def _value(error: Mapping[str, Any], node: Node | None) -> str:
    about_several_keys = node is not None and node.mapping is not None and error["type"] == "value_error"
    if node is None or error["type"] in _WITHOUT_VALUE or about_several_keys:
        return ""
    return f"{node.shown()} "


def _rule(error: Mapping[str, Any], node: Node | None) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _TYPES:
        return _TYPES[kind]
    if kind == "string_pattern_mismatch":
        return _FORMS.get(context["pattern"], _PLACE_FORMS)
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"{words} {context[key]}"
    if kind in ("enum", "literal_error"):
        return _choice(context["expected"], node)
    if kind == "value_error":
        return str(context["error"])
    return str(error["msg"]).replace("Input should", "must", 1)


def _choice(expected: str, node: Node | None) -> str:
    known = re.findall(r"'([^']*)'", expected)
    near = difflib.get_close_matches(str(node.value), known, n=1) if node and not node.secret else []
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"must be one of {', '.join(known)}{hint}"
