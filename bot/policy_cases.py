"""Policy cases, read from YAML: a call or a tool set each, and what the policy must answer."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bot.config.tree import Node, Origin, Problems, nearest, path_text, to_python
from bot.config.yaml_file import read_file
from core.errors import ConfigError, RequestError
from core.explain import Row, call_of, read_row
from core.model.command import Placement
from core.model.decision import Effect, Layer
from core.policy import identity_of

SUFFIX = ".cases.yaml"

_FILE_KEYS = ("config", "cases")
_CALL_KEYS = tuple(field.name for field in fields(Row) if field.name != "id")
_ABOUT_A_CALL = ("tool", "args", "command", "argv", "cwd", "env", "allowlist", "sender", "elevated")
_EXPECTED_KEYS = ("rule", "source", "reason", "layer", "placement", "canonical")
_CASE_KEYS = ("name", *_CALL_KEYS, "plugins", "expect", *_EXPECTED_KEYS, "terms", "tools")
_NOT_OF_A_SET = (*_ABOUT_A_CALL, *_EXPECTED_KEYS, "terms")
_SET_KEYS = ("allowed", "denied", "only")
_CHOICES = {
    "expect": tuple(str(effect) for effect in Effect),
    "layer": tuple(layer.value for layer in Layer),
    "placement": tuple(place.value for place in Placement),
}
_WORDS = ("argv", "env")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `row` is a row of `explain`, or of `tools` where a tool set is expected.

    `expected` holds `effect` and the other fields of an answer that are compared, or lists of tools.
    """

    name: str
    node: Node
    row: Json
    expected: Json
    about_tools: bool = False

    @property
    def origin(self) -> Origin:
        """Where the case is written."""
        return self.node.origin


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The cases of a file, and the configuration files that it names."""

    path: Path
    config: tuple[Path, ...]
    cases: tuple[Case, ...]


def case_files(paths: Iterable[Path]) -> list[Path]:
    """List the files of cases; a directory stands for every `*.cases.yaml` below it."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not inside:
            raise ConfigError(f"{path}: no file in it ends in {SUFFIX}; name the file of cases")
        found += inside
    return list(dict.fromkeys(found))


def read_cases(path: Path) -> CaseFile:
    """Read a file of cases; raises one ConfigError that tells all problems with file, line and key."""
    root = read_file(path)
    problems = Problems([str(path)])
    entries = _mapping(root, "", _FILE_KEYS, problems)
    cases = _cases(entries.get("cases", Node((), root.origin)), problems) if root.mapping is not None else ()
    config = _config_files(entries.get("config"), path.parent, problems)
    problems.raise_if_any()
    return CaseFile(path, config, cases)


def field_parts(field: str | None) -> tuple[str | int, ...]:
    """Split the field that an error names into keys and indices."""
    return tuple(int(part) if part.isdecimal() else part for part in (field or "").split("."))


def near(word: str, known: Sequence[str]) -> str:
    """Name the known word that is meant, or all of them where none is near and they are few."""
    near = difflib.get_close_matches(word.casefold(), known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}" if len(known) < 40 else ""  # noqa: PLR2004 - more than a line


def _cases(listed: Node, problems: Problems) -> tuple[Case, ...]:
    if not listed.items:
        text = "must be a list of cases; begin each with a dash" if listed.value else "there are no cases"
        problems.add(listed.origin, "cases", text)
        return ()
    found = [_case(node, f"cases[{index}]", problems) for index, node in enumerate(listed.items)]
    _refuse_same_names(found, problems)
    return tuple(case for case in found if case)


def _case(node: Node, path: str, problems: Problems) -> Case | None:
    entries = _mapping(node, path, _CASE_KEYS, problems)
    about_tools = "tools" in entries
    if problems.at(path) or not _one_question(node, entries, path, problems):
        return None
    expected = (
        _tool_lists(entries["tools"], path, problems) if about_tools else _answer(entries, path, problems)
    )
    row = {key: _plain(key, entries[key]) for key in entries if key in (*_CALL_KEYS, "plugins")}
    if len(entries) == len(node.mapping or ()):
        _check_row(node, row, path, problems, about_tools=about_tools)
    return Case(_name(entries, row, path, problems), node, row, expected, about_tools)


def _mapping(node: Node, path: str, known: Sequence[str], problems: Problems) -> Mapping[str, Node]:
    if node.mapping is None:
        problems.add(node.origin, path, "must be a mapping (key: value)")
        return {}
    for key, child in node.mapping.items():
        if key not in known:
            at = f"{path}.{key}" if path else key
            problems.add(child.origin, at, f"is no known key{near(key, known)}")
    return {key: child for key, child in node.mapping.items() if key in known}


def _one_question(node: Node, entries: Mapping[str, Node], path: str, problems: Problems) -> bool:
    """Tell whether the case asks about one thing: a call with `expect`, or a set with `tools`."""
    if ("tools" in entries) is ("expect" in entries):
        text = "needs `expect: allow, ask or deny` for a call, or `tools:` for a tool set (one of the two)"
        problems.add(node.origin, path, text)
        return False
    kind, barred = ("a tool set", _NOT_OF_A_SET) if "tools" in entries else ("a call", ("plugins",))
    foreign = [key for key in barred if key in entries]
    for key in foreign:
        problems.add(entries[key].origin, f"{path}.{key}", f"has no place in a case about {kind}; remove it")
    if entries.keys() >= {"command", "argv"}:
        problems.add(entries["argv"].origin, f"{path}.argv", "excludes command; keep one of the two")
    return not foreign


def _answer(entries: Mapping[str, Node], path: str, problems: Problems) -> Json:
    expected: Json = {}
    for key in ("expect", *_EXPECTED_KEYS):
        node = entries.get(key)
        if node is None:
            continue
        choices = _CHOICES.get(key)
        if not isinstance(node.value, str) or not node.value:
            problems.add(node.origin, f"{path}.{key}", f"{node.shown()} must be text")
        elif choices and node.value not in choices:
            text = f"{node.shown()} must be one of {', '.join(choices)}{near(node.value, choices)}"
            problems.add(node.origin, f"{path}.{key}", text)
        expected["effect" if key == "expect" else key] = node.value
    if "terms" in entries:
        expected["terms"] = _texts(entries["terms"], f"{path}.terms", "kinds of terms", problems)
    return expected


def _tool_lists(node: Node, path: str, problems: Problems) -> Json:
    lists = _mapping(node, f"{path}.tools", _SET_KEYS, problems)
    found = {key: _texts(each, f"{path}.tools.{key}", "tool names", problems) for key, each in lists.items()}
    if node.mapping is not None and not lists:
        problems.add(node.origin, f"{path}.tools", f"needs one of {', '.join(_SET_KEYS)}")
    return found


def _texts(node: Node, path: str, what: str, problems: Problems) -> list[str]:
    texts = to_python(node)
    if isinstance(texts, list) and all(isinstance(text, str) and text for text in texts):
        return texts
    problems.add(node.origin, path, f"must be a list of {what}")
    return []


def _plain(key: str, node: Node) -> Any:  # noqa: ANN401 - a JSON value
    """Give the value of an input key; in a command's words and variables numbers are the text they are."""
    if key not in _WORDS:
        return to_python(node)
    if node.items is not None:
        return [_word(item) for item in node.items]
    return {name: _word(item) for name, item in node.mapping.items()} if node.mapping else to_python(node)


def _word(node: Node) -> Any:  # noqa: ANN401 - a JSON value
    return node.written if isinstance(node.value, int | float) else to_python(node)


def _check_row(node: Node, row: Json, path: str, problems: Problems, *, about_tools: bool) -> None:
    try:
        if about_tools:
            identity_of(row)
        else:
            call_of(read_row(row))
    except RequestError as error:
        parts = field_parts(error.field)
        problems.add(nearest(node, parts).origin, path, str(error))


def _name(entries: Mapping[str, Node], row: Json, path: str, problems: Problems) -> str:
    node = entries.get("name")
    if node is None:
        return _described(row) or path
    if not isinstance(node.value, str) or not node.value.strip():
        problems.add(node.origin, f"{path}.name", "must be text")
    return str(node.value)


def _described(row: Json) -> str:
    argv = row.get("argv")
    words = " ".join(map(str, argv)) if isinstance(argv, list) else ""
    return str(row.get("command") or words or row.get("tool") or "")


def _refuse_same_names(cases: Sequence[Case | None], problems: Problems) -> None:
    first: dict[str, Case] = {}
    for index, case in enumerate(cases):
        if case is None:
            continue
        before = first.setdefault(case.name, case)
        if before is not case:
            text = (
                f"{case.name!r} is the name of another case too (line {before.origin.line}); give it its own"
            )
            problems.add(case.origin, path_text(("cases", index, "name")), text)


def _config_files(node: Node | None, base: Path, problems: Problems) -> tuple[Path, ...]:
    if node is None:
        return ()
    named = to_python(node)
    texts = [named] if isinstance(named, str) else named
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or not texts:
        problems.add(node.origin, "config", "must be a file, or a list of files, relative to this one")
        return ()
    return tuple(base / Path(text).expanduser() for text in texts)
