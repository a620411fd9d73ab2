"""Properties over generated lines: nothing raises, the canonical form is a fixed point, bash agrees."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from core.shell.render import run_argv
from core.shell.word_list import word_list
from tests.shell_world import look

_PIECES = st.sampled_from(
    [
        *sorted(
            word_list(
                """
            a b rg -x = / : ' " \\ $ ${ } { ( ) [ ] * ? ~ ! # & && | || ; ;; < > >> 2>&1 >&2 >/dev/null $X
            "$X" ${X} $( ` cd if then fi bash -c env timeout 'a' "b" {} {a,b} $'x' é \u202e \0 %
            """
            )
        ),
        *("\u00a0", " ", "  ", "\n", "\t", "\\\n", " | ", " && ", "'a b'", '"c d"'),
    ]
)
_SOUP = st.lists(_PIECES, max_size=14).map("".join)
_ANY = st.text(st.characters(codec=None), max_size=60)


@given(st.one_of(_SOUP, _ANY))
@settings(max_examples=600, deadline=None)
def test_inspect_never_raises_and_its_canonical_form_is_a_fixed_point(line: str) -> None:
    facts = look(line)
    assert facts.analysable is not bool(facts.refused)
    if facts.analysable:
        again = look(facts.canonical)
        assert again.refused == ()
        assert again.canonical == facts.canonical
        assert [segment.argv[1:] for segment in again.segments] == [s.argv[1:] for s in facts.segments]


@given(st.lists(_ANY, max_size=5))
@settings(max_examples=200, deadline=None)
def test_inspect_never_raises_for_an_argv_and_keeps_every_word(argv: list[str]) -> None:
    facts = look(argv)
    if facts.analysable and not facts.segments[0].through:
        assert facts.segments[0].argv == tuple(argv)


# --- what bash really runs -------------------------------------------------------------------------------

_NAMES = ("one", "two", "three")
_RECORDER = """#!{python} -S
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[0].rsplit("/", 1)[1], *sys.argv[1:]]) + "\\n")
"""
_PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=8)


def _single(text: str) -> str:
    return "'" + text.replace("'", "") + "'"


def _double(text: str) -> str:
    return '"' + "".join("\\" + c if c in '$`"\\' else c for c in text) + '"'


def _escaped(text: str) -> str:
    return "".join("\\" + c for c in text)


_PLAIN = st.text("abcXYZ019_-+=:,./@%{}[]~*?!#^", min_size=1, max_size=6)
_WORD = st.lists(
    st.one_of(_PLAIN, _PRINTABLE.map(_single), _PRINTABLE.map(_double), _PRINTABLE.map(_escaped)),
    min_size=1,
    max_size=3,
).map("".join)
_COMMAND = st.tuples(st.sampled_from(_NAMES), st.lists(_WORD, max_size=4)).map(
    lambda c: " ".join([c[0], *c[1]])
)
_LINE = st.lists(_COMMAND, min_size=1, max_size=3).flatmap(
    lambda commands: st.sampled_from(("; ", " && ", "\n")).map(lambda joiner: joiner.join(commands))
)


class Stubs:
    """Programs that note how they were called."""

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self.cwd = directory / "cwd"
        self.log = directory / "log"
        self.bin.mkdir()
        self.cwd.mkdir()
        for name in _NAMES:
            stub = self.bin / name
            stub.write_text(_RECORDER.format(python=sys.executable, log=str(self.log)))
            stub.chmod(0o755)

    def inspect(self, line: str) -> CommandFacts:
        text = CommandText(line=line)
        return inspect(text, cwd=str(self.cwd), path=(str(self.bin),), resolver=FilesystemResolver())

    def run(self, argv: tuple[str, ...]) -> list[list[str]]:
        self.log.write_text("")
        env = {"PATH": str(self.bin), "LC_ALL": "C.UTF-8"}
        subprocess.run(argv, cwd=self.cwd, env=env, check=False, timeout=30, stdin=subprocess.DEVNULL)
        return [json.loads(row) for row in self.log.read_text().splitlines()]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Stubs:
    assert shutil.which("bash")
    return Stubs(tmp_path_factory.mktemp("stubs"))


@given(line=_LINE)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bash_runs_exactly_the_words_that_were_judged(stubs: Stubs, line: str) -> None:
    facts = stubs.inspect(line)
    if not facts.analysable or not all(segment.literal for segment in facts.segments):
        return
    judged = [list(segment.argv) for segment in facts.segments]
    assert stubs.run(run_argv(facts)) == judged
    assert stubs.run(("/bin/bash", "--noprofile", "--norc", "-c", line)) == judged


def test_the_comparison_notices_a_word_that_bash_reads_differently(stubs: Stubs) -> None:
    judged = [list(segment.argv) for segment in stubs.inspect("one 'a b'").segments]
    assert stubs.run(("/bin/bash", "-c", "one a b")) != judged
