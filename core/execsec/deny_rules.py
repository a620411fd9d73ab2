"""What is denied whatever else says: Sayso's own state and verbs, and the operator's `exec.deny`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import re2

from core.execsec.carried_words import (
    carried_commands,
    carried_pattern,
    carried_programs,
    carried_texts,
    carries,
)
from core.execsec.own_state import mentions_own_state, names_own_state
from core.execsec.policy import DenyPattern, ExecPolicy
from core.model.command import CommandFacts, Executable, Segment
from core.model.decision import Decision, Effect, Layer
from core.shell import render
from core.shell.inline_code import inline_code
from core.shell.names import names, variants
from core.shell.word_list import word_list

_OWN = "sayso"
OPERATOR_VERBS: Final = word_list(
    """
    approve deny agent lock unlock web elevated allowlist permissions session sessions reload cancel
    up config audit service bind pair people operator
    """
)
_AGENT_VERBS: Final = word_list("exec check wait explain tools doctor pending history show policy")
_VERB_IN_TEXT: Final = re2.compile(rf"\bsayso\b[^|;&\n]*?\b(?:{'|'.join(sorted(OPERATOR_VERBS))})\b")
_ALL_VERBS: Final = OPERATOR_VERBS | _AGENT_VERBS
_CACHE: Final = 1024
_GLOB_SIGN: Final = re.compile(r"[*?\[{]")
_BLANK: Final = re.compile(r"\s")


def denied(facts: CommandFacts, policy: ExecPolicy, env: Sequence[tuple[str, str]] = ()) -> Decision | None:
    """Return the first denial that nobody can lift, else the first of the operator's, else None.

    `env` is what the request sets; it is looked at like the words.
    """
    if not facts.analysable:
        return mentions_own_state((value for _, value in env), policy) or _text_denied(facts.text, policy)
    for segment in facts.segments:
        decision = names_own_state(segment, env, policy) or _calls_verb(segment)
        if decision:
            return decision
    return _by_operator(facts, policy.deny) if policy.deny else None


def _text_denied(asked: str, policy: ExecPolicy) -> Decision | None:
    text = asked.encode("utf-8", "replace").decode("utf-8")  # halves of characters cannot be searched
    if own := mentions_own_state((text,), policy):
        return own
    if _VERB_IN_TEXT.search(text):
        return _verb()
    hit = next((p for p in policy.deny if _glob(f"*{p.pattern}*").fullmatch(text)), None)
    return _operator(hit) if hit else None


def _calls_verb(segment: Segment) -> Decision | None:
    named = any(_OWN in text for text in segment.argv) or _OWN in names(segment)
    return _verb() if named and _is_operator_verb(segment) else None


def _is_operator_verb(segment: Segment) -> bool:
    arguments = segment.argv
    if _OWN in names(segment) and _asks_verb(arguments[1:]):
        return True
    for index, argument in enumerate(arguments):
        if (
            _OWN in argument
            and posixpath.basename(argument) == _OWN
            and _asks_verb(arguments[index + 1 :])
            and (segment.builtin or carries(segment))
        ):
            return True
    return any(_OWN in argument and _VERB_IN_TEXT.search(argument) for argument in arguments) and inline_code(
        segment
    )


def _asks_verb(arguments: tuple[str, ...]) -> bool:
    verbs = (argument for argument in arguments if argument in _ALL_VERBS)
    return next(verbs, "") in OPERATOR_VERBS


def _by_operator(facts: CommandFacts, patterns: tuple[DenyPattern, ...]) -> Decision | None:
    programs = {text for segment in facts.segments for text in _all_programs(segment)}
    texts = {facts.canonical, facts.text}.union(*map(_wrapped_forms, facts.segments))
    carried = [text for segment in facts.segments for text in carried_texts(segment)]
    hits = (
        each
        for each in patterns
        if any(map(_glob(each.pattern).fullmatch, texts))
        or any(map(carried_pattern(each.pattern).fullmatch, carried))
        or (not _BLANK.search(each.pattern) and any(map(_glob(each.pattern).fullmatch, programs)))
        or any(_denies_by_name(each.pattern, segment) for segment in facts.segments)
    )
    return next(map(_operator, hits), None)


def _denies_by_name(pattern: str, segment: Segment) -> bool:
    """Tell whether a pattern matches the command by any name; of carriers every word counts as one."""
    glob, begins = _glob(pattern), _GLOB_SIGN.split(pattern, maxsplit=1)[0]
    forms = (form for form in _forms(segment, begins) if form.startswith(begins))
    return any(map(glob.fullmatch, forms))


def spellings(facts: CommandFacts) -> Iterator[str]:
    """Give every text that names the command, or a part of it: as asked, canonical, and by each name.

    Of a long command these are many times as long as itself, so they are given one by one.
    """
    yield from (facts.canonical, facts.text)
    for segment in facts.segments:
        yield from _wrapped_forms(segment)
        yield from _forms(segment)
        yield from carried_commands(segment)


def _programs(segment: Segment) -> Iterator[str]:
    """Give every way to name the program, and for carriers every word that may be one."""
    if not segment.words:
        return
    yield segment.words[0].value
    yield from carried_programs(segment)
    yield from names(segment)
    if segment.executable is not None:
        yield from (segment.executable.path, segment.executable.real_path)


def _all_programs(segment: Segment) -> Iterator[str]:
    yield from _programs(segment)
    for wrapper in segment.wrappers:
        yield wrapper.words[0].value
        yield from _names_of(wrapper.executable)


def _names_of(executable: Executable | None) -> Iterator[str]:
    if executable is not None:
        yield from (executable.path, executable.real_path)
        yield from variants(executable.path) | variants(executable.real_path)


def _forms(segment: Segment, begins: str = "") -> Iterator[str]:
    """Give the command as text: each name of the program, arguments quoted and plain.

    Names with which no text can begin as it must are left out.
    """
    plain, quoted = " ".join(segment.argv[1:]), render.words(segment.words[1:])
    for name in dict.fromkeys(_programs(segment)):
        shown = name.lstrip()
        if not shown.startswith(begins[: len(shown)]):
            continue
        yield f"{name} {plain}".strip()
        if quoted != plain:
            yield f"{name} {quoted}".strip()


def _wrapped_forms(segment: Segment) -> Iterator[str]:
    """Give the command with each wrapper before it, by each name, and what the wrapper itself was given."""
    behind = list(segment.argv) if segment.wrappers else []
    for wrapper in reversed(segment.wrappers):
        own = [word.value for word in wrapper.words]
        for name in dict.fromkeys((own[0], *_names_of(wrapper.executable))):
            yield " ".join([name, *own[1:]])
            yield " ".join([name, *own[1:], *behind])
        behind = [*own, *behind]


def _verb() -> Decision:
    reason = "the command calls one of Sayso's operator verbs, which are for people and not for agents"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny-operator-verb")


def _operator(pattern: DenyPattern) -> Decision:
    reason = f"the operator's deny rule `{pattern.pattern}` matches the command"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny", pattern.source)


@lru_cache(maxsize=_CACHE)
def _glob(pattern: str) -> Any:  # noqa: ANN401 - re2 is untyped
    """Compile a text pattern: `*` is any run, blanks and slashes too; `?` is one character."""
    return re2.compile("(?s)" + _translated(pattern))


def _translated(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char) or re2.escape(char) for char in pattern)
