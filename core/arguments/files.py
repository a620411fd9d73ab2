"""May this file tool touch these paths? Text 002 §15, read and write.

What is judged is where a path leads at this moment. The client opens the file itself, later: it must open the
`realPath` of the constraint and follow no link there, or it may open another file than the one judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from core.arguments.ask import asked_by_path
from core.arguments.fields import FILE_TOOLS, Target, Use, targets_of
from core.arguments.judgement import ArgumentJudgement
from core.arguments.path_globs import is_below
from core.arguments.path_rules import admitting_rule, catching_rule, covering_rule, reaching_rule
from core.arguments.places import Follow, Place, locate, shown
from core.arguments.surroundings import FileRules, Surroundings
from core.arguments.unclear import UnclearArgumentError
from core.model.decision import Constraint, Decision, Effect, Layer
from core.policy.names import normalise
from core.ports import Resolver

_READS = frozenset({Use.READ, Use.SEARCH})
# Reading a directory is listing it, and looking through one file is reading it, by whatever tool.
_READ_AS = MappingProxyType({"file": Use.READ, "directory": Use.SEARCH})


def judge_files(
    tool: str, args: Mapping[str, Any], surroundings: Surroundings, resolver: Resolver
) -> ArgumentJudgement:
    """Judge every path that a call of a file tool names; nothing is said about other tools."""
    if normalise(tool) not in FILE_TOOLS:
        return ArgumentJudgement()
    follow = cache(resolver.real_path)  # a rule's directory is looked at once, also for a patch of many files
    try:
        uses = [_use_of(target, surroundings, follow) for target in targets_of(tool, args)]
    except UnclearArgumentError as unclear:
        return ArgumentJudgement((_denied("tool.path-unclear", str(unclear), "built-in"),))
    judgement = sum((_judged(use) for use in uses), ArgumentJudgement())
    if any(decision.effect is Effect.DENY for decision in judgement.decisions):
        return ArgumentJudgement(judgement.decisions)
    return judgement


@dataclass(frozen=True, slots=True)
class _Case:
    """One path of a call, looked at, and all that it is judged by."""

    use: Use
    brings: int
    place: Place
    rules: FileRules
    around: Surroundings
    follow: Follow

    @property
    def named(self) -> str:
        """The path as written, and where it leads if that is another."""
        written, real = shown(self.place.written), shown(self.place.real.path)
        return real if written == real else f"{written} ({real})"

    def denied(self, rule: str, why: str, source: str = "built-in") -> Decision:
        """Make a denial of this path."""
        return _denied(rule, f"{self.named} cannot be {self.use.value}: {why}", source)


def _use_of(target: Target, around: Surroundings, follow: Follow) -> _Case:
    place = locate(target.path, around, follow)
    use = target.use
    if use in _READS and place.real.kind in _READ_AS:
        use = _READ_AS[place.real.kind]
    return _Case(use, target.brings, place, around.read if use in _READS else around.write, around, follow)


def _judged(case: _Case) -> ArgumentJudgement:
    denial = _own_state(case) or _special(case) or _confined(case) or _forbidden(case) or _too_large(case)
    if denial:
        return ArgumentJudgement((denial,))
    allowed = _allowed(case)
    if allowed is not None and allowed.effect is Effect.DENY:
        return ArgumentJudgement((allowed,))
    asked = asked_by_path(case.place, case.around, case.follow, below=case.use is Use.SEARCH)
    return ArgumentJudgement(tuple(each for each in (allowed, asked) if each), _terms(case))


def _own_state(case: _Case) -> Decision | None:
    """Deny Sayso's own files, and a search that would come by them."""
    for path in case.around.protected:
        if any(_touches(case, own) for own in _spellings(path, case.follow)):
            why = "it is or holds Sayso's own state or configuration, which no tool may touch"
            return case.denied("tool.path-own-state", why)
    return None


def _touches(case: _Case, own: str) -> bool:
    names = (*case.place.names, case.place.real.path)
    if case.use is Use.SEARCH and any(is_below(own, name) for name in names):
        return True
    return any(is_below(name, own) for name in names)


def _spellings(path: str, follow: Follow) -> tuple[str, ...]:
    real = follow(path)
    return tuple(dict.fromkeys((path, real.path if real else path)))


def _special(case: _Case) -> Decision | None:
    kind = case.place.real.kind
    if kind in {"file", "missing"} or (kind == "directory" and case.use is Use.SEARCH):
        return None
    what = "a directory" if kind == "directory" else "a device, pipe or socket"
    return case.denied("tool.path-special", f"it is {what} and not a file")


def _confined(case: _Case) -> Decision | None:
    source = case.around.confined_by
    if source is None:
        return None
    workspace = case.follow(case.around.workspace)
    if workspace is not None and is_below(case.place.real.path, workspace.path):
        return None
    why = f"{source} keeps file tools in the workspace {shown(case.around.workspace)}"
    return case.denied("tool.path-outside-workspace", why, source)


def _forbidden(case: _Case) -> Decision | None:
    # An edit shows what stood there before, so what may not be read may not be edited either.
    lists = case.rules.deny + (case.around.read.deny if case.use is Use.EDIT else ())
    matching = reaching_rule if case.use is Use.SEARCH else catching_rule
    rule = matching(case.place, lists, case.around, case.follow)
    if rule is None:
        return None
    below = " and may mean files in it" if case.use is Use.SEARCH else ""
    return case.denied("tool.path-denied", f"{rule.source} is `{shown(rule.text)}`{below}", rule.source)


def _allowed(case: _Case) -> Decision | None:
    if not case.rules.allow:
        return None
    searched = case.use is Use.SEARCH
    matching = covering_rule if searched else admitting_rule
    rule = matching(case.place, case.rules.allow, case.around, case.follow)
    source = f"{case.rules.source}.allow"
    if rule is None:
        what = "it and all that is in it" if searched else "it"
        return case.denied("tool.path-not-allowed", f"no pattern of {source} matches {what}", source)
    reason = (
        f"{case.named} can be {case.use.value}: {rule.source} is `{shown(rule.text)}`; this holds for what "
        "is there now, so the client must open this very path and follow no link"
    )
    return Decision(Layer.TOOL_POLICY, Effect.ALLOW, reason, "tool.path-allowed", rule.source)


def _too_large(case: _Case) -> Decision | None:
    known = case.place.real.size or 0 if case.use in {Use.READ, Use.EDIT} else 0
    size, most = max(known, case.brings), case.rules.max_size_bytes
    if size <= most:
        return None
    source = f"{case.rules.source}.maxSizeBytes"
    return case.denied("tool.path-too-large", f"it has {size:,} bytes and {source} is {most:,}", source)


def _terms(case: _Case) -> tuple[Constraint, ...]:
    written = ("path", case.place.written)
    real = Constraint("real-path", (written, ("realPath", case.place.real.path)))
    if case.use in {Use.REMOVE, Use.SEARCH}:
        return (real,)
    return real, Constraint("max-size-bytes", (written, ("bytes", case.rules.max_size_bytes)))


def _denied(rule: str, reason: str, source: str) -> Decision:
    return Decision(Layer.TOOL_POLICY, Effect.DENY, reason, rule, source)
