"""What the analysis of command lines promises for every text whatever."""

from __future__ import annotations

import re
import time
from collections import Counter

from adapters.parsers.pool import DEADLINE_S, ParserPool
from core.model.command import CommandFacts
from core.shell.inspect import MAX_SCRIPTS
from core.shell.parse import parse_by_grammar, parse_plain
from core.shell.plain import plain_tokens
from core.shell.render import run_argv
from core.shell.scan import Refused, scan
from core.shell.word_list import word_list
from tests.shell_world import judge
from tests.stub_machine import BASH, STUBS, Machine, judged_row

_SLACK_S = 1.0  # a busy machine, and the start of another parser
STUBBED = sorted({*STUBS, *word_list("git ls rg cat grep make pytest head tail wc npm sed python3 node")})
_SETTINGS = ({}, {"security": "full"}, {"ask": "always", "strictInlineEval": True, "onUnanalysable": "ask"})
_ENTRIES = ("/**/one", "/usr/bin/*")
_LOOKED_THROUGH = word_list("env nice timeout nohup stdbuf ionice") | {"bash -c", "sh -c", "dash -c"}
_HARMLESS = word_list("cd echo true pwd :")
# Shells: some `sh` reads `&>` as `&` and `>`, and files of a login, which are left out, may change the PATH.
_READ_OTHERWISE = re.compile(r"sh.*&>|sh.*-[a-z]*l", re.DOTALL)
_UNSTEADY = frozenset(("parser-busy", "parser-failed", "too-slow"))


class Broken(AssertionError):  # noqa: N818 - a promise that was broken
    """A promise that does not hold for a line."""

    def __init__(self, promise: str, line: str, told: object = "") -> None:
        super().__init__(f"{promise}: {line!r} {told}")
        self.promise, self.line = promise, line


class Promises:
    """Holds lines against what is promised; raises Broken, or whatever the analysis raises."""

    def __init__(self, machine: Machine, parsers: ParserPool) -> None:
        self._machine = machine
        self._parsers = parsers
        self.compared = 0

    def look(self, line: str) -> CommandFacts:
        """Analyse a line, in time."""
        began = time.monotonic()
        facts = self._machine.inspect(line, self._parsers.parse)
        took = time.monotonic() - began
        if took > DEADLINE_S * (MAX_SCRIPTS + 1) + _SLACK_S:
            raise Broken("a line is analysed before its deadline", line, f"{took:.2f} s")
        return facts

    def hold(self, line: str, facts: CommandFacts) -> None:
        """Check what needs no bash."""
        if facts.analysable is bool(facts.refused):
            raise Broken("a line is either analysed or refused", line)
        if facts.analysable:
            self._fixed_point(line, facts)
        _fast_path_agrees(line)
        for settings in _SETTINGS:
            judge(facts, *_ENTRIES, **settings)  # whatever the answer is, there is one

    def compare(self, line: str, facts: CommandFacts) -> None:
        """Run a line in a real bash, where all that it may run are stubs."""
        if not _comparable(line, facts, str(self._machine.bin)):
            return
        self.compared += 1
        allowed = Counter(judged_row(segment) for segment in facts.segments if segment.executable)
        ran = self._machine.run((*BASH, line))
        if ran - allowed:
            raise Broken(
                "bash runs what was judged, and nothing else", line, (ran - allowed, facts.canonical)
            )
        if self._machine.run(run_argv(facts)) != ran:
            raise Broken("what is rebuilt runs the same", line, facts.canonical)

    def _fixed_point(self, line: str, facts: CommandFacts) -> None:
        again = self._machine.inspect(facts.canonical, self._parsers.parse)
        if {refusal.construct for refusal in again.refused} & _UNSTEADY:
            return
        if (again.canonical, again.refused) != (facts.canonical, ()):
            told = (facts.canonical, again.canonical, again.refused)
            raise Broken("the canonical form of the canonical form is itself", line, told)
        if _words(again) != _words(facts):
            raise Broken("the canonical form has the same words", line, (_words(facts), _words(again)))


def _fast_path_agrees(line: str) -> None:
    tokens = plain_tokens(line)
    if tokens is None:
        return
    if tokens != scan(line):
        raise Broken("the fast path finds the tokens of the scanner", line)
    try:
        commands = parse_plain(line)
    except Refused:
        return
    try:
        confirmed = parse_by_grammar(line)
    except Refused as refused:
        raise Broken("the grammar agrees with the fast path", line, refused) from refused
    if confirmed != commands:
        raise Broken("the grammar agrees with the fast path", line)


def _words(facts: CommandFacts) -> list[tuple[str, ...]]:
    """Give the words behind each command's name; where a followed `cd` leads is written out."""
    return [segment.argv[1:] for segment in facts.segments if segment.argv[:1] != ("cd",)]


def _comparable(line: str, facts: CommandFacts, stubs: str) -> bool:
    """Tell whether all that a line does is to run stubs with words that are known, one after the other."""
    if not facts.analysable or _READ_OTHERWISE.search(line):
        return False
    for segment in facts.segments:
        known = segment.literal and all(value.literal for _, value in segment.assignments)
        if not known or segment.cwd is None or segment.operator == "&":
            return False
        if not set(segment.through) <= _LOOKED_THROUGH:
            return False
        if not {name for name, _ in segment.assignments} <= {"A", "B"}:
            return False
        name = segment.argv[0] if segment.words else ":"
        stub = segment.executable is not None and segment.executable.path in {f"{stubs}/{s}" for s in STUBBED}
        if not (stub or (segment.builtin and name in _HARMLESS)):
            return False
    return True
