"""How a decision and a tool set are told in the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import fill
from typing import Any

from bot.cli.follow import terms
from bot.cli.terminal import coloured, facts, note, shown

Json = dict[str, Any]

_EFFECTS = {"allow": "green", "ask": "yellow", "deny": "red"}
_LAYERS = {
    "tool_policy": "tool policy",
    "exec_security": "exec security",
    "approvals": "approvals",
    "elevated": "placement",
}
_WIDTH = 100


def print_decision(answer: Json) -> None:
    """Tell a decision: what, why, by which rule, written where, and what each layer said."""
    effect = answer["effect"]
    print(f"{coloured(effect, _EFFECTS.get(effect, 'bold'))}: {shown(answer['reason'])}")
    always = answer.get("always") or {}
    facts(
        (
            ("rule", answer.get("rule")),
            ("written", written(answer)),
            ("judged as", answer.get("canonical")),
            ("runs in", _place(answer)),
            ("on terms", "\n".join(terms(answer))),
            ("always", ", ".join(always.get("words") or ()) or always.get("why")),
            ("parts", _parts(answer)),
            ("refused", _refused(answer)),
        )
    )
    _print_trace(answer.get("trace") or ())


def print_tools(answer: Json) -> None:
    """Tell a tool set: what is in it, and for all others why not, by which step, written where."""
    print(_listed("allowed", answer["allowed"]))
    for (why, rule), tools in _grouped(answer["denied"]).items():
        print(_listed("denied", tools))
        print(f"{'':<9}  {why}")
        print(f"{'':<9}  {rule}")
    for warning in answer["warnings"]:
        note(f"warning: {warning}", "yellow")


def _listed(head: str, tools: Iterable[str]) -> str:
    names = ", ".join(map(shown, tools)) or "nothing"
    indent = " " * 9
    return fill(names, _WIDTH, initial_indent=f"{head:<9}", subsequent_indent=indent, break_on_hyphens=False)


def _grouped(denied: dict[str, Json]) -> dict[tuple[str, str], list[str]]:
    """Put tools together that the same rule took out: the reason then speaks of each as "it"."""
    groups: dict[tuple[str, str], list[str]] = {}
    for tool, gone in denied.items():
        why = re.sub(rf"(?<![\w.-]){re.escape(tool)}(?![\w.-])", "it", gone.get("reason") or gone["step"])
        groups.setdefault((shown(why), _rule(gone, f"step {gone['step']}, ")), []).append(tool)
    return groups


def written(told: Json) -> str:
    """Say where a rule is written: the configuration path, and file and line where they are known."""
    where = f" ({told['where']})" if told.get("where") and told["where"] != told.get("source") else ""
    return f"{told.get('source') or 'built-in'}{where}"


def _place(answer: Json) -> str | None:
    place = answer.get("placement")
    if place != "client":
        return place
    return None if answer["effect"] == "deny" else "the agent's own program"


def _parts(answer: Json) -> str:
    segments = (answer.get("facts") or {}).get("segments") or ()
    return "\n".join(f"{_program(segment)}: {_admitted(segment)}" for segment in segments)


def _program(segment: Json) -> str:
    through = " ".join(f"{each}:" for each in segment.get("through") or ())
    words = segment.get("argv") or ()
    builtin = words[0] if words and segment.get("satisfiedBy") == "builtin" else None
    return f"{through} {segment.get('executable') or builtin or '(not found)'}".lstrip()


def _admitted(segment: Json) -> str:
    by = segment.get("satisfiedBy")
    if not by:
        return "on no list"
    return f"admitted by {by}, {written(segment)}" if segment.get("source") else f"admitted by {by}"


def _refused(answer: Json) -> str:
    refused = (answer.get("facts") or {}).get("refused") or ()
    return "\n".join(f"{r['construct']} at character {r['position'] + 1}: {r['reason']}" for r in refused)


def _print_trace(trace: Any) -> None:  # noqa: ANN401 - rows of the trace
    for row in trace:
        effect = coloured(f"{row['effect']:<5}", _EFFECTS.get(row["effect"], "bold"))
        print(f"  {effect}  {_LAYERS.get(row['layer'], shown(row['layer'])):<13}  {shown(row['reason'])}")
        print(" " * 24 + _rule(row))


def _rule(told: Json, step: str = "") -> str:
    return coloured(shown(f"{step}{told['rule']}, written: {written(told)}"), "dim")
