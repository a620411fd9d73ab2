"""Layer 2: what a command's facts mean under a policy. Pure; denial is what is left when nothing admits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, structs

from core.config import AskFallback, AskMode, ExecSecurity, Unanalysable
from core.display import safe
from core.execsec.allowlist import Circumstances, admitting
from core.execsec.deny_rules import denied
from core.execsec.hazards import (
    Hazard,
    changeable,
    changeable_script,
    environment_hazards,
    hazards,
    text_hazards,
    unheld,
)
from core.execsec.learn import Place, offer
from core.execsec.pins import variables
from core.execsec.policy import ExecPolicy
from core.execsec.reasons import joined, may_change, why_missed
from core.execsec.safe_bins import is_safe_bin
from core.execsec.skills import is_skill_bin
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.command import CommandFacts, Placement, Segment
from core.model.decision import Decision, Effect, Layer, Obligation, strictest
from core.shell.builtins import harmless
from core.shell.characters import HARD, OF_THE_WHOLE
from core.shell.environment import searches_elsewhere
from core.shell.inline_code import inline_code

_ONCE = frozenset((Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK))
_NO_FALLBACK = frozenset((Obligation.NO_FALLBACK,))
_NEVER_REMEMBER = frozenset((Obligation.NEVER_REMEMBER,))
_PLAIN: frozenset[Obligation] = frozenset()
# Hazards that explain why a program could not be found, or that count whether it is there or not.
_BEFORE_NOT_FOUND = frozenset(("exec.privilege", "exec.carrier", "exec.package-runner", "exec.cwd-unknown"))


class ExecJudgement(Struct, frozen=True):
    """What layer 2 answers: decisions for the trace, what admitted each segment, what Always would save.

    `entries` holds per segment the allowlist entry that admitted it.
    """

    decisions: tuple[Decision, ...]
    satisfied_by: tuple[str | None, ...] = ()
    always: AlwaysOffer = AlwaysOffer()
    entries: tuple[AllowlistEntry | None, ...] = ()

    @property
    def decision(self) -> Decision:
        """The strictest of the decisions."""
        return strictest(self.decisions)


class _Finding(Struct, frozen=True):
    """Why the command needs a person; `missing` segments could be admitted by an entry."""

    satisfied_by: tuple[str | None, ...]
    hazards: tuple[Hazard, ...]
    missing: tuple[Segment, ...]
    entries: tuple[AllowlistEntry | None, ...]


def decide(
    facts: CommandFacts,
    policy: ExecPolicy,
    learned: Sequence[AllowlistEntry],
    placement: Placement,
    *,
    env: Sequence[tuple[str, str]],
    seen_before: bool,
) -> ExecJudgement:
    """Judge a command; `seen_before` tells that a person approved exactly this binding for this agent."""
    final = denied(facts, policy, env) or _security_deny(policy)
    if final is not None:
        return ExecJudgement((final,), always=AlwaysOffer(why="it is denied"))
    if not facts.analysable:
        return ExecJudgement(
            _unanalysable(facts, policy, env),
            always=AlwaysOffer(why="what cannot be analysed is never remembered"),
        )
    finding = _find(facts, policy, learned, placement, env)
    missing_program = _not_found(facts, env)
    if missing_program is not None:
        return ExecJudgement((missing_program,), finding.satisfied_by, AlwaysOffer(why="it is denied"))
    if policy.security is ExecSecurity.FULL:
        judged = _full(facts, policy, finding, seen_before=seen_before)
    else:
        judged = _allowlist(facts, policy, finding, placement, env)
    return _unless_unread(facts, judged)


def together(judgements: Sequence[ExecJudgement]) -> ExecJudgement:
    """Join judgements of one command under several policies: all decisions count, the strictest holds.

    Always is offered only where each policy offers it.
    """
    first = judgements[0]
    if len(judgements) == 1:
        return first
    decisions = tuple(dict.fromkeys(decision for each in judgements for decision in each.decisions))
    always = next((each.always for each in judgements if not each.always.entries), first.always)
    return ExecJudgement(decisions, first.satisfied_by, always, first.entries)


def fallback_allows(
    facts: CommandFacts,
    policy: ExecPolicy,
    learned: Sequence[AllowlistEntry],
    placement: Placement,
    env: Sequence[tuple[str, str]],
) -> bool:
    """Tell whether a question nobody answered may turn into a yes because the allowlist admits it all."""
    open_to_it = (
        policy.ask_fallback is AskFallback.ALLOWLIST
        and policy.ask is not AskMode.ALWAYS
        and policy.security is not ExecSecurity.DENY
        and placement is Placement.SANDBOX
        and facts.analysable
        and not facts.inline_code
    )
    if not open_to_it or denied(facts, policy, env) is not None:
        return False
    finding = _find(facts, policy, learned, placement, env)
    return not finding.hazards and not finding.missing


def _unless_unread(facts: CommandFacts, judged: ExecJudgement) -> ExecJudgement:
    """Deny what would be put to a person, who could not say yes to any text in particular."""
    unread = next((each.unread for each in facts.segments if each.unread), None)
    if unread is None or judged.decision.effect is not Effect.ASK:
        return judged
    reason = (
        f"{safe(unread)} would run, and its text cannot be tied to a yes: it is too large to be read before "
        "each run, or cannot be read now; make it smaller or readable, or write an entry that admits it"
    )
    denied_for = _exec(Effect.DENY, reason, "exec.unread", "built-in")
    return structs.replace(
        judged, decisions=(*judged.decisions, denied_for), always=AlwaysOffer(why="it is denied")
    )


def _security_deny(policy: ExecPolicy) -> Decision | None:
    if policy.security is not ExecSecurity.DENY:
        return None
    reason = "exec is switched off here (security: deny); set security: allowlist to let listed commands run"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.security-deny", policy.source("security"))


def _unanalysable(
    facts: CommandFacts, policy: ExecPolicy, env: Sequence[tuple[str, str]]
) -> tuple[Decision, ...]:
    refusals = facts.refused
    construct = refusals[0].construct if refusals else "empty"
    where = (
        f" (at character {refusals[0].position + 1})" if refusals and construct not in OF_THE_WHOLE else ""
    )
    set_here = joined(hazard.reason for hazard in (*text_hazards(facts.text), *environment_hazards(env)))
    why = "; ".join(filter(None, (refusals[0].reason if refusals else "there is no command in it", set_here)))
    asks = policy.on_unanalysable is Unanalysable.ASK and construct not in HARD
    silent = policy.ask is AskMode.OFF and policy.security is ExecSecurity.ALLOWLIST
    if asks and not silent:
        reason = f"{construct}{where}: {why}; a person may allow the literal text once"
        return (_exec(Effect.ASK, reason, f"exec.{construct}", policy.source("on_unanalysable"), _ONCE),)
    source = "built-in" if construct in HARD else policy.source("on_unanalysable")
    return (_exec(Effect.DENY, f"{construct}{where}: {why}", f"exec.{construct}", source),)


def _find(
    facts: CommandFacts,
    policy: ExecPolicy,
    learned: Sequence[AllowlistEntry],
    placement: Placement,
    env: Sequence[tuple[str, str]],
) -> _Finding:
    where = (policy.trusted_dirs, policy.home, tuple(env), facts.directories)
    around = Circumstances(policy.agent, placement, *where)
    entries = (*policy.allowlist, *learned)
    every = [*environment_hazards(env)]
    missing: list[Segment] = []
    satisfied_by: list[str | None] = []
    admitting_entries: list[AllowlistEntry | None] = []
    for segment in facts.segments:
        risks = _risks(segment, facts, entries, around, policy)
        entry = admitting(segment, entries, around) if entries and not risks else None
        by = None if risks else _satisfied_by(segment, entry, policy, around.env)
        every += risks
        satisfied_by.append(by)
        admitting_entries.append(entry)
        if by is None and not risks:
            missing.append(segment)
    return _Finding(tuple(satisfied_by), tuple(every), tuple(missing), tuple(admitting_entries))


def _risks(
    segment: Segment,
    facts: CommandFacts,
    entries: Sequence[AllowlistEntry],
    around: Circumstances,
    policy: ExecPolicy,
) -> tuple[Hazard, ...]:
    found = hazards(segment)
    if len(facts.segments) == 1:
        return found  # there is no other command that could change what it runs
    found += changeable(segment, facts)
    exposed = changeable_script(segment, facts, around.env)
    if exposed and not admitting(segment, (each for each in entries if not each.learned), around):
        return (*found, *exposed)  # no operator trusts the command whatever the script says
    late = () if found or exposed else unheld(segment, facts)
    if late and not _satisfied_by(segment, _whatever_it_says(segment, entries, around), policy, around.env):
        return late
    return found


def _whatever_it_says(
    segment: Segment, entries: Sequence[AllowlistEntry], around: Circumstances
) -> AllowlistEntry | None:
    return admitting(segment, (each for each in entries if each.sha256 is None), around)


def _satisfied_by(
    segment: Segment, entry: AllowlistEntry | None, policy: ExecPolicy, env: Sequence[tuple[str, str]]
) -> str | None:
    if not segment.words:
        return "assignment"
    if segment.builtin:
        return "builtin" if harmless(segment) else None
    if entry is not None:
        return f"allowlist:{entry.pattern}"
    if variables(segment, env):
        return None
    bins = (policy.safe_bins, policy.trusted_dirs, policy.safe_bin_profiles)
    if is_safe_bin(segment, *bins):
        return "safe_bin"
    return "skill" if is_skill_bin(segment, policy.skill_bins, policy.trusted_dirs) else None


def _not_found(facts: CommandFacts, env: Sequence[tuple[str, str]]) -> Decision | None:
    """Deny for a program that is not there, unless a table asks about it first.

    Nobody is asked about a name that would be looked for elsewhere than where we looked.
    """
    for segment in filter(_unresolved, facts.segments):
        name = safe(segment.words[0].value)
        if searches_elsewhere(segment, env):
            reason = f"`{name}` is not on our PATH, and no other PATH is searched; name it by its whole path"
            return _exec(Effect.DENY, reason, "exec.not-found", "built-in")
        if not any(h.rule in _BEFORE_NOT_FOUND for h in hazards(segment)):
            reason = _why_not_found(name)
            return _exec(Effect.DENY, reason, "exec.not-found", "built-in")
    return None


def _why_not_found(name: str) -> str:
    if re.search(r"\s", name):
        return f"`{name}` is one word and no program; give each word by itself, or all of it as a shell line"
    if "/" not in name:
        where = "tools.exec.pathPrepend adds directories to it"
        return f"`{name}` is not a program on the PATH of runs, or not one that may be run; {where}"
    return f"`{name}` is no program that may be run: there is no such file, or it is not executable"


def _unresolved(segment: Segment) -> bool:
    return segment.executable is None and not segment.builtin and bool(segment.words)


def _full(facts: CommandFacts, policy: ExecPolicy, finding: _Finding, *, seen_before: bool) -> ExecJudgement:
    decisions = [
        _exec(
            Effect.ALLOW,
            "security is full: no list is checked",
            "exec.security-full",
            policy.source("security"),
        )
    ]
    always_asks = _asks_even_under_full(facts, finding)
    if always_asks is not None:
        decisions.append(_exec(Effect.ASK, always_asks.reason, always_asks.rule, "built-in", _ONCE))
    if facts.inline_code and policy.strict_inline_eval:
        decisions.append(_strict_inline(policy))
    hazard = finding.hazards[0] if finding.hazards else None
    if policy.ask is AskMode.ALWAYS:
        decisions.append(_always(policy))
    elif policy.ask is AskMode.ON_MISS and (hazard is not None or not seen_before):
        reason = hazard.reason if hazard else "this exact command was not approved before"
        reason += may_change(facts)
        rule = hazard.rule if hazard else "exec.ask-on-miss"
        terms = _ONCE if hazard else _NO_FALLBACK if facts.inline_code else _PLAIN
        decisions.append(Decision(Layer.APPROVALS, Effect.ASK, reason, rule, policy.source("ask"), terms))
    why = "security is full, so no list is checked and none is added to"
    return ExecJudgement(tuple(decisions), finding.satisfied_by, AlwaysOffer(why=why))


def _asks_even_under_full(facts: CommandFacts, finding: _Finding) -> Hazard | None:
    """Return a change of privilege, or why it is not known where, or as which file, it would run."""
    always = next((hazard for hazard in finding.hazards if hazard.even_under_full), None)
    unresolved = (hazard for each in facts.segments if _unresolved(each) for hazard in hazards(each))
    return always or next(unresolved, None)


def _allowlist(
    facts: CommandFacts,
    policy: ExecPolicy,
    finding: _Finding,
    placement: Placement,
    env: Sequence[tuple[str, str]],
) -> ExecJudgement:
    decisions = [_listed(facts, policy, finding, env)]
    if facts.inline_code and policy.strict_inline_eval:
        decisions.append(_strict_inline(policy))
    if policy.ask is AskMode.ALWAYS and decisions[0].effect is not Effect.DENY:
        decisions.append(_always(policy))
    always = _offer(facts, policy, finding, placement, decisions, env)
    return ExecJudgement(tuple(decisions), finding.satisfied_by, always, finding.entries)


def _listed(
    facts: CommandFacts, policy: ExecPolicy, finding: _Finding, env: Sequence[tuple[str, str]]
) -> Decision:
    if finding.hazards:
        return _missed(policy, _reasons(facts, policy, finding, env), finding.hazards[0].rule, _ONCE)
    if finding.missing:
        terms = _NO_FALLBACK if facts.inline_code else _PLAIN
        inline = facts.inline_code and inline_code(finding.missing[0])
        rule = "exec.inline-code" if inline else "exec.allowlist-miss"
        return _missed(policy, _reasons(facts, policy, finding, env), rule, terms)
    admitted = ", ".join(dict.fromkeys(by for by in finding.satisfied_by if by)) or "nothing"
    return _exec(
        Effect.ALLOW,
        f"every command in it is admitted: {admitted}",
        "exec.allowlist",
        policy.source("security"),
    )


def _reasons(
    facts: CommandFacts, policy: ExecPolicy, finding: _Finding, env: Sequence[tuple[str, str]]
) -> str:
    """Say of every part of the line why it needs a person, and what no binding holds."""
    if not finding.hazards and len(finding.missing) == 1 and not facts.inline_code:
        return why_missed(finding.missing[0], policy, env, inline=False) + may_change(facts)
    reasons = [hazard.reason for hazard in finding.hazards]
    for each in finding.missing:
        inline = facts.inline_code and inline_code(each)
        reasons.append(why_missed(each, policy, env, inline=inline))
    return joined(reasons) + may_change(facts)


def _missed(policy: ExecPolicy, reason: str, rule: str, terms: frozenset[Obligation]) -> Decision:
    if policy.ask is AskMode.OFF:
        return _exec(Effect.DENY, f"{reason}; nobody is asked (ask: off)", rule, policy.source("ask"))
    return _exec(Effect.ASK, reason, rule, policy.source("security"), terms)


def _strict_inline(policy: ExecPolicy) -> Decision:
    reason = "code in the command line always needs a person (strictInlineEval)"
    return _exec(Effect.ASK, reason, "exec.inline-code", policy.source("strict_inline_eval"), _ONCE)


def _always(policy: ExecPolicy) -> Decision:
    reason = "every command is put to a person (ask: always)"
    return Decision(Layer.APPROVALS, Effect.ASK, reason, "exec.ask-always", policy.source("ask"), _ONCE)


def _offer(
    facts: CommandFacts,
    policy: ExecPolicy,
    finding: _Finding,
    placement: Placement,
    decisions: Sequence[Decision],
    env: Sequence[tuple[str, str]],
) -> AlwaysOffer:
    if policy.ask is AskMode.ALWAYS:
        return AlwaysOffer(
            why="every command is asked about (ask: always), so remembering would change nothing"
        )
    if finding.hazards:
        return AlwaysOffer(why=finding.hazards[0].reason)
    if any(decision.obligations >= _NEVER_REMEMBER for decision in decisions):
        return AlwaysOffer(why="code in the command line is never remembered (strictInlineEval)")
    if policy.ask is AskMode.OFF and finding.missing:
        return AlwaysOffer(why="nobody is asked here (ask: off); sayso allowlist add lets a command run")
    place = Place(placement, facts.directories, policy.workspaces)
    return offer(finding.missing, policy.agent, place, env)


def _exec(
    effect: Effect, reason: str, rule: str, source: str, terms: frozenset[Obligation] = _PLAIN
) -> Decision:
    return Decision(Layer.EXEC_SECURITY, effect, reason, rule, source, terms)
