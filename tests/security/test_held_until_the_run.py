"""What a person says yes to is what runs: a file that changes, or comes, after the question ends the yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.approvals.binding import reverify
from core.errors import BindingMismatch
from core.model.decision import Effect
from core.model.plan import RunOrder
from core.shell.render import run_argv
from tests.core_system import exec_call


@pytest.fixture
def place(tmp_path) -> Path:
    """A workspace with a program, a script and a directory for programs of the agent's own."""
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    for name in ("zz", "p.sh", "s.sh"):
        (work / name).write_text("#!/bin/sh\necho REVIEWED\n")
        (work / name).chmod(0o755)
    return work


def order(case):
    return RunOrder("1", run_argv(case.facts), case.bound, case.binding)


def asked(judge, line, **fields):
    case = judge.examine(exec_call(line=line, **fields))
    assert judge.verdict(case).effect is Effect.ASK, judge.verdict(case)
    reverify(order(case), FilesystemResolver())
    return case


CHANGED = [
    ("source ./p.sh", "p.sh"),
    (". ./p.sh", "p.sh"),
    (". p.sh", "p.sh"),
    ("command ./zz", "zz"),
    ("exec ./zz", "zz"),
    ("builtin eval ./zz", "zz"),
    ("eval ./zz", "zz"),
    ("eval 'bash p.sh; ls'", "p.sh"),
    ("trap ./zz EXIT", "zz"),
    ("trap 'bash zz' EXIT", "zz"),
    ("command bash p.sh", "p.sh"),
    ("eval bash p.sh", "p.sh"),
    ("find . -name x -exec ./zz ';'", "zz"),
    ("find . -name x -exec sh p.sh ';'", "p.sh"),
    ("find . -execdir ./zz '{}' +", "zz"),
    ("rg --pre ./zz x .", "zz"),
    ("rg --pre=./zz x .", "zz"),
    ("sort --compress-program=./zz x", "zz"),
    ("cd nowhere; ./zz", "zz"),
    ('cd "$D"; ./zz', "zz"),
    ('cd "$D"; bash p.sh', "p.sh"),
    ("xargs ./zz", "zz"),
    ("xargs sh -c 'sh p.sh'", "p.sh"),
    ("setsid ./zz", "zz"),
    ("sudo ./zz", "zz"),
    ("sudo bash p.sh", "p.sh"),
    ("python3 p.sh | head", "p.sh"),
    ("make --eval='a:;./zz' a", "zz"),
    ("make --eval='a:;@./zz' a", "zz"),
    ("make '--eval=a:;(./zz)' a", "zz"),
    ("make '--eval=a:;x|./zz>y' a", "zz"),
    ("make '--eval=a:;`./zz`' a", "zz"),
    ("git -c 'core.pager={./zz}' log", "zz"),
    ("tar -I'./zz -9' -cf a b", "zz"),
    ("make 'A=[./zz]'", "zz"),
    ("make --eval='a:;\\\\./zz'", "zz"),
    ("GREP=./zz zgrep y b.py", "zz"),
    ("sh -c 'GREP=./zz zgrep y b.py'", "zz"),
    ("GREP=./zz; zgrep y b.py", "zz"),
    ("env GREP=./zz zgrep y b.py", "zz"),
    ("DIFF=./zz bzdiff a b", "zz"),
    ("GIT_PAGER=./zz git log", "zz"),
    ("GIT_PAGER='sh p.sh' git log", "p.sh"),
    ("GIT_EXTERNAL_DIFF='./zz -x' git diff", "zz"),
    ("CC=./zz make", "zz"),
    ("CC='ccache ./zz' make", "zz"),
    ("NODE_OPTIONS=--require=./zz node x.js", "zz"),
    ("LANG=./zz make", "zz"),
    ("export GREP=./zz; zgrep y b.py", "zz"),
    ("declare -x GREP=./zz; zgrep y b.py", "zz"),
    ("printf -v GREP ./zz; zgrep y b.py", "zz"),
    ("GREP=x; readonly GREP=./zz; zgrep y b.py", "zz"),
]


@pytest.mark.parametrize(("line", "name"), CHANGED)
async def test_a_file_that_changes_after_the_question_does_not_run(judge, place, line, name):
    case = asked(judge, line)
    (place / name).write_text("#!/bin/sh\necho SWAPPED\n")
    with pytest.raises(BindingMismatch, match=r"scripts|executables"):
        reverify(order(case), FilesystemResolver())


@pytest.mark.parametrize("line", [line for line, _ in CHANGED])
async def test_a_file_beside_it_may_change(judge, place, line):
    case = asked(judge, line)
    (place / "s.sh").write_text("#!/bin/sh\necho other\n")
    reverify(order(case), FilesystemResolver())


ABSENT = [
    ("bash late.sh", "late.sh"),
    ("python3 late", "late.py"),
    ("node late", "late.js"),
    ("sudo ./late", "late"),
    ("xargs ./late", "late"),
    ("xargs late", "bin/late"),
    ("setsid late", "bin/late"),
    ("command late", "bin/late"),
    ("find . -exec late ';'", "bin/late"),
    ("source late.sh", "late.sh"),
    ("eval 'late x'", "bin/late"),
    ("doas id", "bin/doas"),
    ("pkexec id", "bin/pkexec"),
    ("cd nowhere; ./late", "late"),
    ("python3 -m late", "late.py"),
    ("python3 -m late", "late.so"),
    ("python3 -m late.x", "late.py"),
    ("python3 -Bmlate", "late.pyc"),
    ("GREP=./late zgrep y b.py", "late"),
    ("GREP=late zgrep y b.py", "bin/late"),
    ("CC='late -x' make", "bin/late"),
    ("PAGER=late; git log", "bin/late"),
]


@pytest.mark.parametrize(("line", "name"), ABSENT)
async def test_a_file_that_comes_after_the_question_does_not_run(judge, place, line, name):
    case = asked(judge, line)
    late = place / name
    late.write_text("#!/bin/sh\necho PLANTED\n")
    late.chmod(0o755)
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order(case), FilesystemResolver())


@pytest.mark.parametrize("name", ["__main__.py", "__init__.py", "x.py"])
async def test_a_package_that_comes_after_the_question_does_not_run(judge, place, name):
    case = asked(judge, "python3 -m late.x")
    (place / "late").mkdir()
    (place / "late" / name).write_text("print('PLANTED')\n")
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order(case), FilesystemResolver())


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("python3 -m late", "later.py"),
        ("python3 -c 'import late'", "late.py"),
        ("python3 -m late", "late.txt"),
        ("GREP=./late zgrep y b.py", "late.py"),
        ("LANG=late make", "bin/late"),
        ("GREP=./late grep y b.py", "late"),
        ("late=1 make", "bin/late"),
    ],
)
async def test_what_nothing_would_run_may_come(judge, place, line, name):
    case = judge.examine(exec_call(line=line))
    (place / name).write_text("#!/bin/sh\necho PLANTED\n")
    (place / name).chmod(0o755)
    reverify(order(case), FilesystemResolver())


@pytest.mark.parametrize("value", ["./zz", "sh ./zz", "a,./zz", "zz"])
async def test_what_a_variable_of_the_request_names_is_held_too(judge, place, value):
    (place / "bin" / "zz").write_text("#!/bin/sh\n")
    (place / "bin" / "zz").chmod(0o755)
    case = asked(judge, "zgrep y b.py", env=(("GREP", value),))
    for directory in (place, place / "bin"):
        (directory / "zz").write_text("#!/bin/sh\necho SWAPPED\n")
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order(case), FilesystemResolver())


@pytest.mark.parametrize("line", ["xargs late", "sudo id", "env A=1 xargs late", "command late"])
async def test_what_is_put_where_a_path_of_the_line_itself_looks_counts_too(judge, place, line):
    own = place / "own"
    own.mkdir()
    case = judge.examine(exec_call(line=f"PATH={own} {line}"))
    for name in ("late", "sudo", "id"):
        (own / name).write_text("#!/bin/sh\necho PLANTED\n")
        (own / name).chmod(0o755)
    if judge.verdict(case).effect is Effect.ASK:
        with pytest.raises(BindingMismatch, match="scripts"):
            reverify(order(case), FilesystemResolver())
    else:
        assert judge.verdict(case).effect is Effect.DENY


NOT_OURS = [
    ("PATH={own} doas id", ()),
    ("env PATH={own} doas id", ()),
    ("env -i doas id", ()),
    ("env -u PATH doas id", ()),
    ("PATH={own}; doas id", ()),
    ("doas id", (("PATH", "{own}"),)),
    ("PATH={own} pnpm exec vitest", ()),
    ("nice env - doas id", ()),
]


@pytest.mark.parametrize(("line", "env"), NOT_OURS)
async def test_nobody_is_asked_about_a_name_that_another_path_would_find(judge, place, line, env):
    given = tuple((name, value.format(own=place / "own")) for name, value in env)
    verdict = judge.verdict(judge.examine(exec_call(line=line.format(own=place / "own"), env=given)))
    assert verdict.effect is Effect.DENY
    assert verdict.decision.rule == "exec.not-found"
    assert "name it by its whole path" in verdict.decision.reason


@pytest.mark.parametrize("line", ["A=1 doas id", "env A=1 doas id", "doas id", "env PATH=/x setsid ls"])
async def test_a_privileged_name_that_is_not_there_is_asked_about(judge, line):
    assert judge.verdict(judge.examine(exec_call(line=line))).effect is Effect.ASK


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bash ?.sh", "what `?.sh` becomes may change before it runs"),
        ('bash "$PWD"/p.sh', 'what `"$PWD"/p.sh` becomes may change before it runs'),
        ("find . -exec sh *.sh ';'", "what `*.sh` becomes may change before it runs"),
        ('cd "$D"; ./zz', "`./zz` may change before it runs"),
        ("python3 .", "/work may change before it runs"),
    ],
)
async def test_what_cannot_be_held_is_said_before_the_yes(judge, line, says):
    verdict = judge.verdict(judge.examine(exec_call(line=line)))
    assert verdict.effect is Effect.ASK
    assert says in verdict.decision.reason


@pytest.mark.parametrize("line", ["bash p.sh", "git diff *.sh", "ls *.sh", "cd work; ls", "sudo bash p.sh"])
async def test_what_is_held_or_does_not_run_is_not_warned_of(judge, line):
    assert (
        "may change before it runs" not in judge.verdict(judge.examine(exec_call(line=line))).decision.reason
    )


async def test_a_line_that_was_given_as_one_word_is_told_from_a_program(judge):
    verdict = judge.verdict(judge.examine(exec_call("ls -la")))
    assert verdict.effect is Effect.DENY
    assert "`ls -la` is one word and no program; give each word by itself" in verdict.decision.reason
    assert "one word" not in judge.verdict(judge.examine(exec_call("nonesuch", "-la"))).decision.reason
