"""`tools.ask`: calls that are put to a person, by tool and by path."""

from __future__ import annotations

from core.arguments.path_rules import catching_rule, reaching_rule
from core.arguments.places import Follow, Place, shown
from core.arguments.surroundings import Surroundings, WrittenRule
from core.model.decision import Decision, Effect, Layer, Obligation
from core.policy.names import normalise
from core.policy.patterns import compiled


def asked_by_tool(tool: str, around: Surroundings) -> Decision | None:
    """Return the question that a pattern of `tools.ask.tools` makes of every call of this tool."""
    name = normalise(tool)
    rule = next((rule for rule in around.ask_tools if _names(rule.text, name, around)), None)
    if rule is None:
        return None
    return question("tool.ask", f"every call of {shown(name)} is put to a person", rule)


def asked_by_path(
    place: Place, around: Surroundings, follow: Follow, *, below: bool = False
) -> Decision | None:
    """Return the question that a glob of `tools.ask.paths` makes of a path, `below` of what is in it too."""
    matching = reaching_rule if below else catching_rule
    rule = matching(place, around.ask_paths, around, follow)
    if rule is None:
        return None
    return question("tool.ask-path", f"{shown(place.real.path)} is put to a person", rule)


def question(name: str, what: str, rule: WrittenRule) -> Decision:
    """Make the decision of a rule that asks; `name` is its stable machine name."""
    reason = f"{what}: {rule.source} is `{shown(rule.text)}`"
    return Decision(
        Layer.TOOL_POLICY, Effect.ASK, reason, name, rule.source, frozenset({Obligation.NO_FALLBACK})
    )


def _names(pattern: str, tool: str, around: Surroundings) -> bool:
    # A tool that was registered a moment ago is meant by its name and by wildcards, too.
    text = normalise(pattern)
    return tool in around.universe.read(pattern).tools or bool(compiled(text).expression.fullmatch(tool))
