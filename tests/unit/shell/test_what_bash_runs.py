"""Generated lines run in a real bash whose PATH begins with stubs that note who ran, where, with what.

Whatever bash runs must be what was judged: the same programs, words, directories and variables, for the line
as it was asked and for its canonical form.
"""

from __future__ import annotations

import shlex
import shutil
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from core.shell.render import run_argv
from tests.stub_machine import BASH, STUBS, Machine, judged_row

_TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=6)
_LETTERS = st.text("éß漢字Ω→😀 ab", min_size=1, max_size=4)
_BARE = st.text("abcXYZ019_-+=:,./@%^", min_size=1, max_size=6)
_WORD = st.lists(
    st.one_of(
        _BARE,
        _TEXT.map(lambda text: "'" + text.replace("'", "") + "'"),
        _TEXT.map(lambda text: '"' + "".join("\\" + c if c in '$`"\\' else c for c in text) + '"'),
        _TEXT.map(lambda text: "".join("\\" + c for c in text)),
        _LETTERS.map(lambda text: f'"{text}"'),
        st.sampled_from(
            ["HEAD~3", "{}", "''", '""', "'a\nb'", "a#b", "'$X'", "\\*", '"*"', "é", "]", "-", "--"]
        ),
    ),
    min_size=1,
    max_size=3,
).map("".join)
_GAP = st.sampled_from([" ", " ", " ", "  ", "\t", " \\\n", "  \\\n  "])
_ASSIGNED = st.lists(
    st.tuples(st.sampled_from(["A", "B"]), _WORD).map(lambda pair: f"{pair[0]}={pair[1]} "), max_size=2
).map("".join)
_WRAPPED = st.sampled_from(
    [
        "",
        "",
        "",
        "env ",
        "env A=w ",
        "env -u B B='x y' ",
        "nice -n 5 ",
        "timeout 10 ",
        "timeout -s KILL 9 env A=v ",
    ]
)
_BEHIND = st.sampled_from(["", "", " 2>&1", " >/dev/null", " &>/dev/null", " </dev/null", " 2>/dev/null"])


@st.composite
def _command(draw):
    words = [draw(st.sampled_from(STUBS)), *draw(st.lists(_WORD, max_size=3))]
    gaps = [draw(_GAP) for _ in words[1:]] + [""]
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    return draw(_ASSIGNED) + draw(_WRAPPED) + text + draw(_BEHIND)


_JOINER = st.sampled_from(
    ["; ", " && ", "\n", " | ", " || ", ";", "&&", "|", " |& ", " && \\\n", " # it's\n", "\n\n "]
)


@st.composite
def _flat_line(draw):
    commands = draw(st.lists(_command(), min_size=1, max_size=3))
    joined = commands[0]
    for command in commands[1:]:
        joined += draw(_JOINER) + command
    return (
        draw(st.sampled_from(["", "", "cd sub && ", "cd sub; cd .. && ", "cd 'sub' && cd deeper; "])) + joined
    )


@st.composite
def _line(draw):
    line = draw(_flat_line())
    if draw(st.booleans()):
        return line
    # Some `sh` reads `&>` as `&` and `>`; what is rebuilt redirects, as whoever writes that means.
    shells = ["bash -c", "A=s bash -c", *([] if "&>" in line else ["sh -c"])]
    shell = draw(st.sampled_from(shells))
    return f"{shell} {shlex.quote(line)}" + draw(st.sampled_from(["", "; one after"]))


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    assert shutil.which("bash")
    return Machine(tmp_path_factory.mktemp("machine"))


@given(line=_line())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bash_runs_nothing_but_what_was_judged_where_and_as_it_wasjudged_row(machine, line):
    facts = machine.inspect(line)
    assume(facts.analysable)
    programs = [segment for segment in facts.segments if segment.words and not segment.builtin]
    assume(all(segment.literal for segment in facts.segments))
    assume(not facts.inline_code)  # what is not looked into is put to people whole
    assume(all(segment.cwd is not None for segment in programs))  # where it is not known, people are asked
    allowed = Counter(judged_row(segment) for segment in programs)
    assume(all(value.literal for segment in programs for _, value in segment.assignments))
    ran = machine.run((*BASH, line))
    assert ran - allowed == Counter()
    assert machine.run(run_argv(facts)) == ran
    if "||" not in line:
        assert ran == allowed


@given(line=_line())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_canonical_form_of_a_line_is_its_own_canonical_form_on_this_machine(machine, line):
    facts = machine.inspect(line)
    assume(facts.analysable)
    again = machine.inspect(facts.canonical)
    assert (again.canonical, again.refused) == (facts.canonical, ())
    assert _programs(again) == _programs(facts)


def _programs(facts):
    """Give what each program gets, but for the name, which becomes a path."""
    return [judged_row(segment)[1:] for segment in facts.segments if segment.executable is not None]


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("one 'a b' \"c\"\\ d", [("one", ("a b", "c d"))]),
        ("one \\\n  -x \\\n  && two", [("one", ("-x",)), ("two", ())]),
        ("one a#b # c; two\nthree", [("one", ("a#b",)), ("three", ())]),
        ("one HEAD~3 {} a=b~ x^", [("one", ("HEAD~3", "{}", "a=b~", "x^"))]),
        ("env A=1 timeout 9 nice -n 5 one x | two", [("one", ("x",)), ("two", ())]),
        ("cd sub && one; cd .. && bash -c 'cd sub && two \"a b\"'", [("one", ()), ("two", ("a b",))]),
        ("one '漢字 😀' é", [("one", ("漢字 😀", "é"))]),
        ('one "!" "it\'s" \'"\' "\\q"', [("one", ("!", "it's", '"', "\\q"))]),
    ],
)
def test_these_lines_run_what_they_say(machine, line, runs):
    facts = machine.inspect(line)
    ran = machine.run((*BASH, line))
    assert sorted((row[0], row[-1]) for row in ran.elements()) == sorted(runs)
    assert ran == Counter(judged_row(segment) for segment in facts.segments if not segment.builtin)
    assert machine.run(run_argv(facts)) == ran


@pytest.mark.parametrize(
    ("line", "construct"),
    [
        ("one $'a\\x41'", "ansi-c-quoting"),
        ('one $"a"', "locale-quoting"),
        ("one a\r\ntwo", "control-character"),
        ("one -\\\nx", "line-continuation"),
        ("one\\\n x", "line-continuation"),
        ("one \\\n", "line-continuation"),
        ("one\u00a0x", "misleading-space"),
    ],
)
def test_what_bash_would_read_otherwise_than_people_is_refused(machine, line, construct):
    assert [refusal.construct for refusal in machine.inspect(line).refused] == [construct]


def test_the_comparison_notices_other_words_another_directory_and_another_variable(machine):
    judged = Counter(judged_row(segment) for segment in machine.inspect("A=1 one 'a b'").segments)
    assert machine.run((*BASH, "A=1 one 'a b'")) == judged
    for other in ("A=1 one a b", "cd sub; A=1 one 'a b'", "A=2 one 'a b'", "A=1 two 'a b'"):
        assert machine.run((*BASH, other)) != judged
