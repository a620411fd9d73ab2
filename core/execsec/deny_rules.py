"""What is denied whatever else says: Sayso's own state and verbs, and the operator's `exec.deny`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

import re2

from core.execsec.policy import DenyPattern, ExecPolicy
from core.model.command import CommandFacts, Executable, Segment
from core.model.decision import Decision, Effect, Layer
from core.shell import render
from core.shell.inline_code import inline_code
from core.shell.names import names, variants
from core.shell.programs import CARRIERS, PRIVILEGE_CHANGERS, RUNS_ANYTHING
from core.shell.word_list import word_list

_OWN = "sayso"
OPERATOR_VERBS: Final = word_list(
    """
    approve deny agent lock unlock web elevated allowlist permissions session sessions reload cancel
    up config audit service bind pair people
    """
)
_AGENT_VERBS: Final = word_list("exec check wait explain tools doctor pending history show policy")
_VERB_IN_TEXT: Final = re2.compile(rf"\bsayso\b[^|;&\n]*?\b(?:{'|'.join(sorted(OPERATOR_VERBS))})\b")
_STATE_VARIABLE: Final = re.compile(r"\$\{?SAYSO_\w*")
_HOME_VARIABLE: Final = re.compile(r"^(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
_CARRY: Final = CARRIERS | PRIVILEGE_CHANGERS | RUNS_ANYTHING | {"find"}
_SEPARATOR: Final = re.compile(r"[=:@,]")
_GLOBS: Final = frozenset("*?[{")
_CACHE = 1024


def denied(facts: CommandFacts, policy: ExecPolicy) -> Decision | None:
    """Return the first denial that nobody can lift, else the first of the operator's, else None."""
    if not facts.analysable:
        return _text_denied(facts.text, policy)
    for segment in facts.segments:
        decision = _protects_itself(segment, policy)
        if decision:
            return decision
    return next((d for d in (_by_operator(facts, pattern) for pattern in policy.deny) if d), None)


def _text_denied(asked: str, policy: ExecPolicy) -> Decision | None:
    text = asked.encode("utf-8", "replace").decode("utf-8")  # halves of characters cannot be searched
    for path in policy.protected_paths:
        if _mentions(text, path) or _STATE_VARIABLE.search(text):
            return _state(path)
    if _VERB_IN_TEXT.search(text):
        return _verb()
    hit = next((p for p in policy.deny if _glob(f"*{p.pattern}*").fullmatch(text)), None)
    return _operator(hit) if hit else None


def _protects_itself(segment: Segment, policy: ExecPolicy) -> Decision | None:
    for path in policy.protected_paths:
        if _touches(segment, path, policy.home):
            return _state(path)
    return _verb() if _is_operator_verb(segment) else None


def _touches(segment: Segment, path: str, home: str) -> bool:
    if any(_is_below(place, path) for place in segment.places):
        return True
    executable = segment.executable
    if executable is not None and _is_below(executable.real_path, path):
        return True
    texts = [word.value for word in segment.words] + [word.value for _, word in segment.assignments]
    places = segment.places or (None,)
    return any(_reaches(text, path, place, home) for text in texts for place in places)


def _reaches(text: str, path: str, cwd: str | None, home: str) -> bool:
    if _mentions(text, path) or _STATE_VARIABLE.search(text):
        return True
    return any(_names(piece, path, cwd, home) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """Give the word, and what may be a path inside it: behind `=`, `:`, `@`, `,`, or a short option."""
    yield text
    yield from _SEPARATOR.split(text)[1:]
    if text[:1] == "-" and "/" in text:
        yield text[text.index("/") :]


def _names(piece: str, path: str, cwd: str | None, home: str) -> bool:
    if not piece:
        return False
    expanded = _HOME_VARIABLE.sub(lambda _: home, piece) if home and piece[0] in "~$" else piece
    if not expanded.startswith("/") and cwd is None:
        return False
    full = posixpath.normpath(posixpath.join(cwd or "/", expanded))
    return _is_below(full, path) or (not _GLOBS.isdisjoint(piece) and _glob_reaches(full, path))


def _glob_reaches(pattern: str, path: str) -> bool:
    theirs, ours = pattern.split("/"), path.split("/")
    if len(theirs) < len(ours):
        return False
    return all("{" in their or fnmatchcase(our, their) for their, our in zip(theirs, ours, strict=False))


def _is_below(place: str, path: str) -> bool:
    return place.startswith(path) and (place == path or place.startswith(path.rstrip("/") + "/"))


def _mentions(text: str, path: str) -> bool:
    at = text.find(path)
    while at >= 0:
        following = text[at + len(path) : at + len(path) + 1]
        if not (following.isalnum() or following in {"_", "-", "."}) or not following:
            return True
        at = text.find(path, at + 1)
    return False


def _is_operator_verb(segment: Segment) -> bool:
    if not segment.words:
        return False
    arguments = segment.argv
    if _OWN in names(segment) and _asks_verb(arguments[1:]):
        return True
    for index, argument in enumerate(arguments):
        if (
            _OWN in argument
            and posixpath.basename(argument) == _OWN
            and _asks_verb(arguments[index + 1 :])
            and _carries(segment)
        ):
            return True
    return any(_OWN in argument and _VERB_IN_TEXT.search(argument) for argument in arguments) and inline_code(
        segment
    )


def _carries(segment: Segment) -> bool:
    return segment.builtin or bool(names(segment) & _CARRY)


def _asks_verb(arguments: tuple[str, ...]) -> bool:
    verbs = (argument for argument in arguments if argument in OPERATOR_VERBS | _AGENT_VERBS)
    return next(verbs, "") in OPERATOR_VERBS


def _by_operator(facts: CommandFacts, pattern: DenyPattern) -> Decision | None:
    glob = _glob(pattern.pattern)
    texts = spellings(facts)
    plain_name = not re.search(r"\s", pattern.pattern)
    hit = any(glob.fullmatch(text) for text in texts) or (
        plain_name and any(glob.fullmatch(text) for each in facts.segments for text in _all_programs(each))
    )
    return _operator(pattern) if hit else None


def spellings(facts: CommandFacts) -> set[str]:
    """Give every text that names the command, or a part of it: as asked, canonical, and by each name."""
    return {facts.canonical, facts.text}.union(*(_forms(segment) for segment in facts.segments))


def _programs(segment: Segment) -> Iterator[str]:
    """Give every way to name the program, and for carriers every word that may be one."""
    if not segment.words:
        return
    yield from segment.argv if _carries(segment) else segment.argv[:1]
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


def _forms(segment: Segment) -> Iterator[str]:
    """Give the command as text: each name of the program, arguments quoted and plain, carried parts too."""
    if not segment.words:
        return
    yield from _wrapped_forms(segment)
    arguments = segment.argv[1:]
    for name in dict.fromkeys([*_programs(segment)]):
        yield f"{name} {' '.join(arguments)}".strip()
        yield f"{name} {render.words(segment.words[1:])}".strip()
    if _carries(segment):
        for start in range(1, len(segment.argv)):
            yield " ".join(segment.argv[start:])


def _wrapped_forms(segment: Segment) -> Iterator[str]:
    """Give the command with each wrapper before it, by each name, and what the wrapper itself was given."""
    behind = list(segment.argv)
    for wrapper in reversed(segment.wrappers):
        own = [word.value for word in wrapper.words]
        for name in dict.fromkeys((own[0], *_names_of(wrapper.executable))):
            yield " ".join([name, *own[1:]])
            yield " ".join([name, *own[1:], *behind])
        behind = [*own, *behind]


def _state(path: str) -> Decision:
    reason = f"the command touches Sayso's own state or configuration ({path}), which no command may"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny-own-state")


def _verb() -> Decision:
    reason = "the command calls one of Sayso's operator verbs, which are for people and not for agents"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny-operator-verb")


def _operator(pattern: DenyPattern) -> Decision:
    reason = f"the operator's deny rule `{pattern.pattern}` matches the command"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny", pattern.source)


@lru_cache(maxsize=_CACHE)
def _glob(pattern: str) -> Any:  # noqa: ANN401 - re2 is untyped
    """Compile a text pattern: `*` is any run, blanks and slashes too; `?` is one character."""
    pieces = ({"*": ".*", "?": "."}.get(char) or re2.escape(char) for char in pattern)
    return re2.compile("(?s)" + "".join(pieces))
