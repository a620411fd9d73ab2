"""Policy cases judged without a daemon, as one would that has learned nothing yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.config import LoadedConfig, merge
from bot.config.tree import nearest
from bot.explain import Explainer
from bot.policy_cases import Case, field_parts, near
from core.errors import ConfigError, RequestError
from core.policy import normalise, tools_row

Json = dict[str, Any]

_OF_EACH_LAYER = ("reason", "rule", "source", "layer")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of the answer that is not what was expected; what follows `got` tells why it is as it is."""

    field: str
    expected: str
    got: str
    reason: str = ""
    rule: str = ""
    source: str = ""
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A case, what differs, and the answer that it got."""

    case: Case
    differences: tuple[Difference, ...]
    answer: Json


class Bench:
    """Judges cases under one configuration."""

    def __init__(self, loaded: LoadedConfig, home: Path) -> None:
        self._loaded = loaded
        self._explainer = Explainer(loaded, home, any_machine=True)

    def result(self, case: Case) -> Result:
        """Judge one case; raises ConfigError, with file and line, where it cannot be judged."""
        try:
            return self._tools(case) if case.about_tools else self._call(case)
        except RequestError as error:
            at = nearest(case.node, field_parts(error.field)).origin
            raise ConfigError(f"{at}: {case.name}: {error}") from None
        except ConfigError as error:
            at = nearest(case.node, ("config",)).origin
            lines = str(error).splitlines()
            raise ConfigError("\n".join(f"{at}: {case.name}: {line}" for line in lines)) from None

    def _call(self, case: Case) -> Result:
        answer = self._explainer.row(case.row)
        told = (answer["reason"], answer["rule"], answer["source"], answer["where"])
        differing = (
            Difference(field, _listed(expected), _listed(got), *told)
            for field, expected in case.expected.items()
            if not _as_expected(field, expected, got := _got(answer, field))
        )
        return Result(case, tuple(differing), answer)

    def _tools(self, case: Case) -> Result:
        own = case.row.get("config")
        loaded = merge(self._loaded, own) if own else self._loaded
        answer = tools_row(loaded.config, case.row)
        for listed, names in case.expected.items():
            _refuse_unknown_tools(answer, listed, names)
        differing = (
            difference
            for listed, names in case.expected.items()
            for difference in _tool_differences(listed, [normalise(name) for name in names], answer)
        )
        told = tuple(replace(each, where=loaded.where(each.source)) for each in differing)
        return Result(case, told, answer)


def _listed(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value) or "nothing"


def _got(answer: Json, field: str) -> list[str]:
    """Give what an answer has in a field; a yes is the work of all layers, so each of their rules counts."""
    if field == "terms":
        return [row["kind"] for row in answer["constraints"]]
    if field not in _OF_EACH_LAYER:
        return [] if answer.get(field) is None else [str(answer[field])]
    rows = [answer, *(row for row in answer["trace"] if row["effect"] == answer["effect"])]
    return list(dict.fromkeys(row[field] for row in rows))


def _as_expected(field: str, expected: Any, got: Sequence[str]) -> bool:  # noqa: ANN401 - text or a list
    if field == "terms":
        return set(expected) == set(got)
    if field == "reason":
        return any(expected.casefold() in text.casefold() for text in got)
    return expected in got


def _refuse_unknown_tools(answer: Json, listed: str, names: Sequence[str]) -> None:
    known = sorted({*answer["allowed"], *answer["denied"]})
    for name in names:
        if normalise(name) not in known:
            text = f"tools.{listed}: no tool is registered as {name!r}{near(normalise(name), known)}"
            raise RequestError(text, field=f"tools.{listed}")


def _tool_differences(listed: str, names: Sequence[str], answer: Json) -> list[Difference]:
    allowed, denied = answer["allowed"], answer["denied"]
    lost = [] if listed == "denied" else [name for name in names if name not in allowed]
    extra = {
        "allowed": [],
        "denied": [name for name in names if name in allowed],
        "only": [name for name in allowed if name not in names],
    }[listed]
    return [
        *(_taken_out(name, denied[name]) for name in lost),
        *(Difference(name, "denied", "allowed") for name in extra),
    ]


def _taken_out(name: str, gone: Mapping[str, str]) -> Difference:
    return Difference(name, "allowed", "denied", gone["reason"], gone["rule"], gone["source"])
