"""May this file tool touch these paths? Text 002 §15, read and write.

What is judged is where a path leads at this moment. The client opens the file itself, later: it must open the
`realPath` of the constraint and follow no link there, or it may open another file than the one judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from core.arguments.ask import asked_by_path
from core.arguments.carried import CARRIERS, carried_paths
from core.arguments.fields import FILE_TOOLS, Target, Use, targets_of
from core.arguments.judgement import ArgumentJudgement
from core.arguments.path_globs import is_below
from core.arguments.path_rules import admitting_rule, catching_rule, covering_rule, reaching_rule
from core.arguments.places import Follow, Place, locate, shown
from core.arguments.surroundings import FileRules, Surroundings, WrittenRule
from core.arguments.unclear import UnclearArgumentError
from core.model.decision import Constraint, Decision, Effect, Layer
from core.policy.names import normalise
from core.ports import Resolver

_READS = frozenset({Use.READ, Use.SEARCH})
# Reading a directory is listing it, and looking through one file is reading it, by whatever tool.
_WAY_OUT = (
    " and may mean files in it; search a narrower path that the rule cannot reach or read single files, "
    "or let the rule name its directories instead of `**`"
)
_READ_AS = MappingProxyType({"file": Use.READ, "directory": Use.SEARCH})


def judge_files(
    tool: str, args: Mapping[str, Any], surroundings: Surroundings, resolver: Resolver
) -> ArgumentJudgement:
    """Judge every path that a call of a file tool names, or of another tool that carries paths."""
    if normalise(tool) not in FILE_TOOLS | CARRIERS:
        return ArgumentJudgement()
    follow = cache(resolver.real_path)  # a rule's directory is looked at once, also for a patch of many files
    try:
        uses = [_use_of(target, surroundings, follow) for target in _targets(tool, args, surroundings)]
    except UnclearArgumentError as unclear:
        return ArgumentJudgement((_denied("tool.path-unclear", str(unclear), "built-in"),))
    judgement = sum((_judged(use) for use in uses), ArgumentJudgement())
    if any(decision.effect is Effect.DENY for decision in judgement.decisions):
        return ArgumentJudgement(judgement.decisions)
    return judgement


def _targets(tool: str, args: Mapping[str, Any], surroundings: Surroundings) -> tuple[Target, ...]:
    if normalise(tool) in FILE_TOOLS:
        return targets_of(tool, args)
    return carried_paths(tool, args, ruled=surroundings.rules_paths)


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
    checks = (_own_state, _special, _confined, _forbidden, _too_large, _unreadable)
    denial = next(filter(None, (check(case) for check in checks)), None)
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
    matching = reaching_rule if case.use is Use.SEARCH else catching_rule
    rule = matching(case.place, case.rules.deny, case.around, case.follow)
    if rule is None:
        return None
    below = _WAY_OUT if case.use is Use.SEARCH else ""
    return case.denied("tool.path-denied", f"{rule.source} is `{shown(rule.text)}`{below}", rule.source)


def _unreadable(case: _Case) -> Decision | None:
    """Deny an edit of what may not be read: it shows what stood there, and a move takes it elsewhere."""
    if case.use is not Use.EDIT:
        return None
    read = replace(case, rules=case.around.read, brings=0)
    return _forbidden(read) or _too_large(read) or _not_allowed(read)


def _allowed(case: _Case) -> Decision | None:
    if not case.rules.allow:
        return None
    rule = _admitting(case)
    if rule is None:
        return _not_allowed(case)
    reason = (
        f"{case.named} can be {case.use.value}: {rule.source} is `{shown(rule.text)}`; this holds for what "
        "is there now, so the client must open this very path and follow no link"
    )
    return Decision(Layer.TOOL_POLICY, Effect.ALLOW, reason, "tool.path-allowed", rule.source)


def _not_allowed(case: _Case) -> Decision | None:
    if not case.rules.allow or _admitting(case):
        return None
    source = f"{case.rules.source}.allow"
    what = "it and all that is in it" if case.use is Use.SEARCH else "it"
    return case.denied("tool.path-not-allowed", f"no pattern of {source} matches {what}", source)


def _admitting(case: _Case) -> WrittenRule | None:
    matching = covering_rule if case.use is Use.SEARCH else admitting_rule
    return matching(case.place, case.rules.allow, case.around, case.follow)


def _too_large(case: _Case) -> Decision | None:
    known = case.place.real.size or 0 if case.use in {Use.READ, Use.EDIT} else 0
    size, most = max(known, case.brings), case.rules.max_size_bytes
    if size <= most:
        return None
    source = f"{case.rules.source}.maxSizeBytes"
    what = "it has" if known > most else "the call brings"
    return case.denied("tool.path-too-large", f"{what} {size:,} bytes and {source} is {most:,}", source)


def _terms(case: _Case) -> tuple[Constraint, ...]:
    written = ("path", case.place.written)
    real = Constraint("real-path", (written, ("realPath", case.place.real.path)))
    if case.use in {Use.REMOVE, Use.SEARCH}:
        return (real,)
    most = case.rules.max_size_bytes
    if case.use is Use.EDIT:
        most = min(most, case.around.read.max_size_bytes)
    return real, Constraint("max-size-bytes", (written, ("bytes", most)))


def _denied(rule: str, reason: str, source: str) -> Decision:
    return Decision(Layer.TOOL_POLICY, Effect.DENY, reason, rule, source)
