"""What about a segment always needs a person, whatever an allowlist says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from core.display import safe
from core.model.command import CommandFacts, Segment
from core.shell.builtins import CARRYING as CARRYING_BUILTINS
from core.shell.builtins import does, harmless
from core.shell.carrying import carrying_option
from core.shell.environment import dangerous, plain, substitutes
from core.shell.named_files import pieces
from core.shell.names import loads_nothing, names
from core.shell.program_file import module
from core.shell.programs import (
    CARRIERS,
    CARRYING_OPTIONS,
    FETCHING_VERBS,
    ONLY_READ,
    PACKAGE_RUNNERS,
    PRIVILEGE_CHANGERS,
)
from core.shell.scripts import NOT_THERE, starts_at_once

_FILE_LIKE = re.compile(r"[\w@%+./-]*\w\.[A-Za-z]\w*")
# An operand of `env` behind which it still has no command to run.
_IS_SET = re.compile(r"[A-Za-z_]\w*=|-0\Z|--null\Z|-i\Z|-\Z|--ignore-environment\Z", re.ASCII)
_LONGEST_SHOWN = 200
# An assignment wherever one could stand; its value ends where a shell would end a word.
_SETS = re.compile(
    r"(?<![\w$-])(?P<name>[A-Za-z_]\w*)(?:\[[^\]\s]*\])?\+?="
    r"(?P<value>(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\([^()]*\)|\\.|[^\s;&|()<>'\"\\])*)",
    re.ASCII | re.DOTALL,
)

_NOTHING: frozenset[str] = frozenset()
_PUT_NO_FILE = ONLY_READ | frozenset(("mkdir", "rm", "rmdir"))
_NOTED = _NOTHING.union(
    PRIVILEGE_CHANGERS, CARRIERS, PACKAGE_RUNNERS, FETCHING_VERBS.keys(), CARRYING_OPTIONS.keys()
)


class Hazard(Struct, frozen=True):
    """A rule and a sentence; those `even_under_full` ask where everything else may run."""

    rule: str
    reason: str
    even_under_full: bool = False


def hazards(segment: Segment) -> tuple[Hazard, ...]:
    """Name all hazards of a segment, the gravest first; none of them is ever remembered."""
    return () if _is_plain(segment) else tuple(_found(segment))


def environment_hazards(env: Sequence[tuple[str, str]]) -> tuple[Hazard, ...]:
    """Name what the request's own environment would change."""
    if not env:
        return ()
    return tuple(
        _variable(name, value, "the request sets")
        for name, value in env
        if dangerous(name) or substitutes(value)
    )


def text_hazards(text: str) -> tuple[Hazard, ...]:
    """Name what a text that could not be analysed seems to set and would change what runs."""
    found = dict.fromkeys((each["name"], each["value"]) for each in _SETS.finditer(text))
    return tuple(
        _variable(
            name, value if len(value) <= _LONGEST_SHOWN else f"({len(value):,} characters)", "the text sets"
        )
        for name, value in found
        if dangerous(name) or substitutes(value)
    )


def changeable(segment: Segment, facts: CommandFacts) -> tuple[Hazard, ...]:
    """Name a program that another command of the same line could replace after it was looked at."""
    executable = segment.executable
    if executable is None or executable.trusted or _runs_alone(segment, facts):
        return ()
    return (_replaceable(segment.words[0].value),)


def changeable_script(
    segment: Segment, facts: CommandFacts, env: Sequence[tuple[str, str]] = ()
) -> tuple[Hazard, ...]:
    """Name a script that another command of the same line could replace, so that no pin would hold."""
    if len(facts.segments) == 1:
        return ()
    scripts = (path for path, identity in segment.scripts if identity.sha256)
    script = next(scripts, None) or (segment.unpinned or "").removesuffix(f" {NOT_THERE}")
    if script and not _runs_alone(segment, facts):
        return (_replaceable(script),)
    if segment.builtin or not segment.words or loads_nothing(segment):
        return ()
    name = module(segment) or _named_before(segment, facts, env)
    return (_replaceable(name),) if name and _behind_writers(segment, facts) else ()


def unheld(segment: Segment, facts: CommandFacts) -> tuple[Hazard, ...]:
    """Name a file that anybody could replace while the line runs, so that no pin would hold.

    Only what the line begins with is held still.
    """
    executable = segment.executable
    program = segment.words[0].value if executable is not None and not executable.trusted else None
    file = program or next((path for path, identity in segment.scripts if identity.sha256), None)
    if file is None or starts_at_once(segment, facts):
        return ()
    reason = f"`{safe(file)}` could be replaced while the commands before it run, so no entry is tied to it"
    return (Hazard("exec.changeable", reason),)


def _named_before(segment: Segment, facts: CommandFacts, env: Sequence[tuple[str, str]]) -> str | None:
    """Find a file that is not there now, like `b.go` or `./x`, and that another command names as well.

    It stands among the words, or in what is set for them.
    """
    files = [word for word in segment.argv[1:] if _FILE_LIKE.fullmatch(word)]
    if env or segment.assignments or segment.assigned_before:
        files += _named_in_values(segment, env)
    if not files:
        return None
    others = {
        posixpath.basename(word)
        for each in facts.segments
        if each is not segment and not _puts_no_file(each)
        for word in each.argv[1:]
    }
    return next((name for name in files if posixpath.basename(name) in others), None)


def _named_in_values(segment: Segment, env: Sequence[tuple[str, str]]) -> Iterator[str]:
    set_here = (*segment.assigned_before, *segment.assignments)
    for text in (*(value.value for _, value in set_here), *(value for _, value in env)):
        yield from (piece for piece in pieces(text) if "/" in piece or _FILE_LIKE.fullmatch(piece))


def _behind_writers(segment: Segment, facts: CommandFacts) -> bool:
    """Tell whether something that is not known to only read runs before it, or at the same time."""
    return any(not _only_reads(each) for each in _before_or_beside(segment, facts))


def _before_or_beside(segment: Segment, facts: CommandFacts) -> Sequence[Segment]:
    """Give the commands that may have run, or run, when this one does."""
    at = next(index for index, each in enumerate(facts.segments) if each is segment)
    together = any(each.operator in {"|", "&"} for each in facts.segments[at:])
    behind = facts.segments[at + 1 :] if together else ()
    return (*facts.segments[:at], *behind)


def _only_reads(segment: Segment, only: frozenset[str] = ONLY_READ) -> bool:
    if segment.builtin or not segment.words:
        return not segment.words or harmless(segment)
    trusted = segment.executable is not None and segment.executable.trusted
    return trusted and names(segment) <= only


def _puts_no_file(segment: Segment) -> bool:
    """Tell whether it writes no file, though it may make or remove directories."""
    return _only_reads(segment, _PUT_NO_FILE)


def _runs_alone(segment: Segment, facts: CommandFacts) -> bool:
    """Tell whether nothing else in the line could write a file."""
    return all(_only_reads(each) for each in facts.segments if each is not segment)


def _replaceable(name: str) -> Hazard:
    reason = f"another command of this line could replace `{safe(name)}` before it runs"
    return Hazard("exec.changeable", reason)


def _is_plain(segment: Segment) -> bool:
    """Tell at once of a program that no table notes, with literal words and nothing set, that it has none."""
    return (
        segment.cwd is not None
        and not segment.assignments
        and not segment.builtin
        and segment.literal
        and names(segment).isdisjoint(_NOTED)
    )


def _found(segment: Segment) -> Iterator[Hazard]:
    yield from _program(segment)
    for name, value in segment.assignments:
        if dangerous(name):
            yield _variable(name, value.source, "the command sets")
        elif not value.literal:
            yield Hazard("exec.not-literal", f"what `{name}` is set to is not literal: {safe(value.source)}")
        elif not plain(value.value):
            reason = f"the command sets {safe(name)} to what a shell could evaluate: {safe(value.source)}"
            yield Hazard("exec.environment", reason)
    for word in segment.words:
        if word.expansions:
            kinds = " and ".join(sorted(kind.value for kind in word.expansions))
            yield Hazard(
                "exec.not-literal", f"`{safe(word.source)}` is not literal: bash would expand it ({kinds})"
            )
    if segment.cwd is None:
        why = "a command before it may change the shell, or its directory, in a way that cannot be followed"
        if not segment.places:
            why = "no cwd came with it, so it is not known where it would run"
        elif segment.nowhere is not None:
            why = f"`cd {safe(segment.nowhere)}` stands before it, and there is no such directory now"
        yield Hazard("exec.cwd-unknown", why, even_under_full=not segment.places)


def _program(segment: Segment) -> Iterator[Hazard]:
    if not segment.words:
        return
    name = safe(segment.words[0].value)
    if segment.builtin:
        if not harmless(segment):
            carrying = segment.words[0].value in CARRYING_BUILTINS
            rule = "exec.carrier" if carrying else "exec.builtin"
            yield Hazard(rule, f"the builtin `{name}` {does(segment)}")
        return
    found = names(segment)
    if found.isdisjoint(_NOTED):
        return
    if found & PRIVILEGE_CHANGERS:
        yield Hazard(
            "exec.privilege", f"`{name}` runs a command as somebody else, or elsewhere", even_under_full=True
        )
    elif found & CARRIERS:
        yield Hazard("exec.carrier", f"`{name}` {_carries(segment)}")
    elif found & PACKAGE_RUNNERS:
        yield Hazard("exec.package-runner", f"`{name}` may download what it runs")
    elif verb := _fetching_verb(segment, found):
        yield Hazard("exec.package-runner", f"`{name} {safe(verb)}` may download what it runs")
    elif option := carrying_option(segment, found):
        what = "a command on what it finds" if "find" in found else "or loads another program"
        yield Hazard("exec.carrier", f"`{name} {safe(option)}` runs {what}, which is not judged")


def _carries(segment: Segment) -> str:
    if "env" in names(segment) and all(map(_IS_SET.match, segment.argv[1:])):
        return "prints the whole environment, in which secrets may stand"
    return "runs another command, which is not judged"


def _fetching_verb(segment: Segment, found: frozenset[str]) -> str | None:
    """Find a word that makes a package manager run a package; npm also takes its first letters."""
    verbs = _NOTHING.union(*[FETCHING_VERBS[each] for each in found if each in FETCHING_VERBS])
    if not verbs:
        return None
    words = (word for word in segment.argv[1:] if _means(word, verbs))
    return next(words, None)


def _means(word: str, verbs: frozenset[str]) -> bool:
    return word in verbs or (len(word) > 1 and any(verb.startswith(word) for verb in verbs))


def _variable(name: str, value: str, who: str) -> Hazard:
    return Hazard("exec.environment", f"{who} {safe(name)}={safe(value)}, which can change what runs")
