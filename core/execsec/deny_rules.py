"""What is denied whatever else says: Sayso's own state and verbs, and the operator's `exec.deny`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import re2

from core.display import safe
from core.execsec.path_pieces import at_home, expanded, path_pieces
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
    up config audit service bind pair people operator
    """
)
_AGENT_VERBS: Final = word_list("exec check wait explain tools doctor pending history show policy")
_VERB_IN_TEXT: Final = re2.compile(rf"\bsayso\b[^|;&\n]*?\b(?:{'|'.join(sorted(OPERATOR_VERBS))})\b")
_ALL_VERBS: Final = OPERATOR_VERBS | _AGENT_VERBS
_STATE_VARIABLE: Final = re.compile(r"\$\{?SAYSO_\w*")
_CARRY: Final = CARRIERS | PRIVILEGE_CHANGERS | RUNS_ANYTHING | {"find"}
_CACHE: Final = 1024
GLOB_SIGN: Final = re.compile(r"[*?\[{]")
# Such a piece may be in what is searched: behind a separator, in a short option, or anywhere for `..`.
_LEADS_AWAY: Final = re.compile(r"^(?:[/~$]|-.*/)|[=:@,](?:[/~$]|-[A-Za-z0-9#]*[/~$])|\.\.", re.MULTILINE)
_BLANK: Final = re.compile(r"\s")
_LONGEST_GLOB: Final = 255
# Begins a path that is not simply below where the command runs, or may climb out of there.
_ELSEWHERE: Final = re.compile(r"[/~$]|.*\.\.", re.DOTALL)
# What a process keeps to itself, and the daemon its tokens in.
_SECRET: Final = ("environ", "mem")
_OF_PROCESS: Final = len(("", "proc", "PID", "mem"))
_OF_THREAD: Final = len(("", "proc", "PID", "task", "TID", "mem"))


def denied(facts: CommandFacts, policy: ExecPolicy) -> Decision | None:
    """Return the first denial that nobody can lift, else the first of the operator's, else None."""
    if not facts.analysable:
        return _text_denied(facts.text, policy)
    for segment in facts.segments:
        decision = _protects_itself(segment, policy)
        if decision:
            return decision
    return _by_operator(facts, policy.deny) if policy.deny else None


def _text_denied(asked: str, policy: ExecPolicy) -> Decision | None:
    text = asked.encode("utf-8", "replace").decode("utf-8")  # halves of characters cannot be searched
    for path in policy.protected_paths:
        if _mentions(text, path) or _STATE_VARIABLE.search(text):
            return _state(path, policy)
    if _VERB_IN_TEXT.search(text):
        return _verb()
    hit = next((p for p in policy.deny if _glob(f"*{p.pattern}*").fullmatch(text)), None)
    return _operator(hit) if hit else None


def _protects_itself(segment: Segment, policy: ExecPolicy) -> Decision | None:
    texts = [word.value for word in segment.words]
    if segment.assignments:
        texts += [word.value for _, word in segment.assignments]
    if not segment.literal:
        texts += expanded(segment, policy.home)
    joined = "\n".join(texts)
    path = _touched(segment, texts, joined, policy) if policy.protected_paths else None
    if path is not None:
        inside = next((place for place in segment.places if _is_below(place, path)), None)
        return _runs_inside(inside) if inside else _state(path, policy)
    named = _OWN in joined or _OWN in names(segment)
    return _verb() if named and _is_operator_verb(segment) else None


def _touched(segment: Segment, texts: Sequence[str], joined: str, policy: ExecPolicy) -> str | None:
    """Return the first protected path that the segment runs in, is a program of, names or leads to."""
    if segment.leads_to is not None:
        return segment.leads_to
    if "$" in joined and _STATE_VARIABLE.search(joined):
        return policy.protected_paths[0]
    places, globs = _reached(segment, texts, joined, policy)
    for path in policy.protected_paths:
        if path in joined and any(_mentions(text, path) for text in texts):
            return path
        for place in places:
            if place.startswith(path) and _is_below(place, path):
                return path
        if globs and any(glob_reaches(glob, path) for glob in globs):
            return path
    return None


def _reached(
    segment: Segment, texts: Sequence[str], joined: str, policy: ExecPolicy
) -> tuple[list[str], list[str]]:
    """Give where the segment runs, what it runs and where its words lead, and those of them that are globs.

    What stays below a directory with nothing protected below it is left out.
    """
    leads_away = _LEADS_AWAY.search(joined) is not None
    runs_in = segment.places
    places = list(runs_in)
    globs: list[str] = []
    if segment.executable is not None:
        places.append(segment.executable.real_path)
    for cwd in runs_in or (None,):
        harmless = cwd is None or not _may_hold(cwd, policy.protected_paths)
        if leads_away or not harmless:
            led = _led(texts, cwd, policy.home, harmless=harmless)
            places += led[0]
            globs += led[1]
    return places, globs


def _led(texts: Iterable[str], cwd: str | None, home: str, *, harmless: bool) -> tuple[set[str], set[str]]:
    """Give where the words lead, as absolute paths, and those of them that are globs."""
    pieces = set(chain.from_iterable(map(path_pieces, texts)))
    places: set[str] = set()
    globs: set[str] = set()
    for piece in pieces:
        if not piece or (harmless and not _ELSEWHERE.match(piece)):
            continue
        full = _absolute(piece, cwd, home)
        if full is not None:
            (globs if GLOB_SIGN.search(piece) else places).add(full)
    return places | globs, globs


@lru_cache(maxsize=_CACHE)
def _may_hold(directory: str, protected: tuple[str, ...]) -> bool:
    """Tell whether something protected may lie below a directory; one with signs of globs may mislead."""
    return GLOB_SIGN.search(directory) is not None or any(_is_below(path, directory) for path in protected)


def _absolute(piece: str, cwd: str | None, home: str) -> str | None:
    expanded = at_home(piece, home)
    if cwd is None and not expanded.startswith("/"):
        return None
    return posixpath.normpath(posixpath.join(cwd or "/", expanded))


def glob_reaches(pattern: str, path: str) -> bool:
    """Tell whether a glob may become this path, or one below it."""
    theirs, ours = pattern.split("/"), path.split("/")
    if len(theirs) < len(ours):
        return False
    return all(component_may_be(their, our) for their, our in zip(theirs, ours, strict=False))


def component_may_be(pattern: str, name: str) -> bool:
    """Tell whether a part of a glob may become this name; one that takes long to read may."""
    if "{" in pattern or len(pattern) > _LONGEST_GLOB:
        return True
    if "[" in pattern:
        pattern = _without_brackets(pattern)
    return re.match(translate(pattern), name) is not None  # `fnmatch` would keep 32,768 of them


def _without_brackets(pattern: str) -> str:
    """Put `?` for one pair of brackets, and `*` for all from the first to the last of several.

    Which of them end one depends on quotes that are gone, and each shell reads them in its own way.
    """
    before, _, rest = pattern.partition("[")
    within, closed, behind = rest.rpartition("]")
    if not closed or "[" in behind:
        return f"{before}*"
    simple = within.strip("!^") and "[" not in within and "]" not in within
    return f"{before}{'?' if simple else '*'}{behind}"


def is_of_a_process(path: str) -> bool:
    """Tell whether a path, or glob, is the memory or the environment of a process, the daemon's perhaps."""
    parts = path.split("/")
    if len(parts) not in {_OF_PROCESS, _OF_THREAD} or not component_may_be(parts[1], "proc"):
        return False
    if len(parts) == _OF_THREAD and not component_may_be(parts[3], "task"):
        return False
    return any(component_may_be(parts[-1], name) for name in _SECRET)


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
    verbs = (argument for argument in arguments if argument in _ALL_VERBS)
    return next(verbs, "") in OPERATOR_VERBS


def _by_operator(facts: CommandFacts, patterns: tuple[DenyPattern, ...]) -> Decision | None:
    programs = {text for segment in facts.segments for text in _all_programs(segment)}
    texts = {facts.canonical, facts.text}.union(*map(_wrapped_forms, facts.segments))
    carried = ["\0".join(segment.argv[1:]) for segment in facts.segments if _carries_words(segment)]
    hits = (
        each
        for each in patterns
        if any(map(_glob(each.pattern).fullmatch, texts))
        or any(map(_tail(each.pattern).fullmatch, carried))
        or (not _BLANK.search(each.pattern) and any(map(_glob(each.pattern).fullmatch, programs)))
        or any(_denies_by_name(each.pattern, segment) for segment in facts.segments)
    )
    return next(map(_operator, hits), None)


def _denies_by_name(pattern: str, segment: Segment) -> bool:
    """Tell whether a pattern matches the command by any name; of carriers every word counts as one."""
    glob, begins = _glob(pattern), GLOB_SIGN.split(pattern, maxsplit=1)[0]
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
        yield from _carried_parts(segment)


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


def _carried_parts(segment: Segment) -> Iterator[str]:
    """Give what a carrier may run: its arguments, from each of them to the last."""
    if _carries_words(segment):
        for start in range(1, len(segment.argv)):
            yield " ".join(segment.argv[start:])


def _carries_words(segment: Segment) -> bool:
    return len(segment.words) > 1 and _carries(segment)


def _wrapped_forms(segment: Segment) -> Iterator[str]:
    """Give the command with each wrapper before it, by each name, and what the wrapper itself was given."""
    behind = list(segment.argv) if segment.wrappers else []
    for wrapper in reversed(segment.wrappers):
        own = [word.value for word in wrapper.words]
        for name in dict.fromkeys((own[0], *_names_of(wrapper.executable))):
            yield " ".join([name, *own[1:]])
            yield " ".join([name, *own[1:], *behind])
        behind = [*own, *behind]


def _state(path: str, policy: ExecPolicy) -> Decision:
    reason = f"the command touches Sayso's own state or configuration ({path}), which no command may"
    if is_of_a_process(path):
        reason = (
            f"{safe(path)} is what a process keeps to itself, Sayso's own perhaps, which no command may read"
        )
    elif path not in policy.protected_paths:
        reason = f"where {safe(path)} leads cannot be told by its links, and Sayso's own state may lie there"
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny-own-state")


def _runs_inside(place: str) -> Decision:
    reason = f"the command would run in {safe(place)}, among Sayso's own state, where no command may"
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
    return re2.compile("(?s)" + _translated(pattern))


@lru_cache(maxsize=_CACHE)
def _tail(pattern: str) -> Any:  # noqa: ANN401 - re2 is untyped
    """Compile a text pattern for the end of a list of words, with a NUL between each two of them."""
    return re2.compile("(?s)(?:.*\\x00)?(?:" + _translated(pattern).replace("\\ ", "[ \\x00]") + ")")


def _translated(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char) or re2.escape(char) for char in pattern)
