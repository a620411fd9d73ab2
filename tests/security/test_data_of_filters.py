"""What awk and sed are given is data only where their words hold a program that runs nothing."""

from __future__ import annotations

import subprocess

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.execsec.decide import decide
from core.model.allowlist import AlwaysOffer
from core.model.call import CommandText
from core.model.command import CommandFacts, Placement
from core.shell.inspect import inspect
from core.shell.scripts import with_scripts
from tests.shell_world import effect, judge, policy


@pytest.fixture
def work(tmp_path):
    (tmp_path / "x.py").write_text("1\n")
    return tmp_path


def facts_of(line: str, work) -> CommandFacts:
    resolver = FilesystemResolver()
    found = inspect(CommandText(line=line), cwd=str(work), path=("/usr/bin", "/bin"), resolver=resolver)
    return with_scripts(found, resolver, ("/usr/bin", "/bin"))


def offered(line: str, work) -> AlwaysOffer:
    facts = facts_of(line, work)
    return decide(facts, policy(), (), Placement.SANDBOX, env=(), seen_before=False).always


DATA = [
    "sed -n 1,20p x.py", "sed -i s/1/2/ x.py", "sed -i.bak -e s/1/2/ -e 3d x.py",
    "sed -Ei 's/[0-9]+/2/g' x.py",
    "sed --in-place 's/[[:digit:]]/2/' x.py", "sed '/^#/d' x.py", "awk '{print $1}' x.py",
    "awk -F: '$3 == 1 {print $1}' x.py", "sed -e 's|[^/]*$||' x.py",
]  # fmt: skip


@pytest.mark.parametrize("line", DATA)
def test_always_holds_for_such_a_filter_whatever_its_file_says(line: str, work) -> None:
    always = offered(line, work)
    assert "as long as" not in "".join(always.words)
    (work / "x.py").write_text("2\n")
    facts = facts_of(line, work)
    again = decide(facts, policy(ask="off"), always.entries, Placement.SANDBOX, env=(), seen_before=False)
    assert str(again.decision.effect) == "allow"


PROGRAMS = [
    "sed -i s/1/2/e x.py", "sed 1e x.py", "sed s/1/2/w1 x.py", "sed -n '1w out' x.py", "sed -f x.py x.py",
    "sed --expression=e x.py", "sed -e p -e e x.py", "sed -i 's/[/]/;s/e;/x/p' x.py", "sed -s -- e x.py",
    "sed '/[/]/;s/e;/p/' x.py", "sed 's/[[/]]/;s/e;/x/p' x.py", "sed 's/[]/]/;s/e;/x/p' x.py",
    "sed 's/[^]/]/;s/e;/x/p' x.py", "sed 's/[^]a/]/;s/e;/x/p' x.py",
    "awk -f x.py", "awk '{system($0)}' x.py", "awk '{print | $0}' x.py", "awk '{print \"a;b\" > $1}' x.py",
    "awk -i x.py 1", "awk 1 x.py -f x.py",
]  # fmt: skip


@pytest.mark.parametrize("line", PROGRAMS)
def test_what_could_run_or_steer_more_stays_pinned(line: str, work) -> None:
    facts = facts_of(line, work)
    assert any(path.endswith("/x.py") for path, _ in facts.segments[0].scripts)


@pytest.mark.parametrize(
    "script", ["s/[/]/;s/e;/x/p", "s/[^/]/;s/e;/x/p", "s/[/]//;s/[/]/;s/e;/x/p", "s|[|]|;s|e;|x|p"]
)
def test_a_bracket_hides_no_flag_that_runs_what_comes_through_the_pipe(script: str) -> None:
    assert not judge(f"cat x | sed '{script}'").always.entries
    learned = judge(["sed", script]).always.entries
    assert effect(f"cat x | sed '{script}'", "cat", *learned, ask="off") == "deny"


def test_real_sed_runs_what_such_a_bracket_hides(work) -> None:
    """The reason for the test above: were sed to change, the bracket could be read as any other text."""
    run = subprocess.run(
        ["sed", "s/[/]/;s/e;/x/p"], cwd=work, input=b"touch made; : /\n", capture_output=True, check=False
    )
    assert (work / "made").exists(), run.stderr


@pytest.mark.parametrize(
    "script", ["s/[0-9]/x/", "s/[[:space:]]*$//", "s/a\\/b/c/g", "/x[yz]/d", "s,[^a-z],,"]
)
def test_ordinary_brackets_are_still_read(script: str) -> None:
    assert judge(f"rg x | sed '{script}'").always.entries


def test_a_line_that_edits_a_script_and_then_runs_it_is_asked_each_time(work) -> None:
    facts = facts_of("sed -i s/1/2/ x.py && python3 x.py", work)
    judgement = decide(facts, policy(), (), Placement.SANDBOX, env=(), seen_before=False)
    assert judgement.decision.rule == "exec.changeable"
    assert judgement.always.entries == ()


def test_awk_that_writes_where_its_data_says_is_no_filter() -> None:
    assert judge("cat x | awk '{print \"a;b\" > $1}'").always.entries == ()
    assert judge("cat x | awk '$1 > 2 {print \"a;b\"}'").always.entries
