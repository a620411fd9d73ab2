"""A script is run by what its first line names: that file too stays as it was, or nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.approvals.binding import reverify
from core.errors import BindingMismatch
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.model.decision import Effect
from core.model.plan import RunOrder
from core.shell.inspect import inspect
from core.shell.render import run_argv
from core.shell.scripts import with_scripts
from tests.core_system import exec_call
from tests.shell_world import effect
from tests.shell_world import judge as decide


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def place(tmp_path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    for name in ("interp", "second", "lib.sh", "bin/mytool"):
        program(work / name, "#!/bin/sh\necho REVIEWED\n")
    return work


def facts(line: str, place: Path) -> CommandFacts:
    resolver, path = FilesystemResolver().for_one_command(), (f"{place}/bin", "/usr/bin", "/bin")
    found = inspect(CommandText(line=line), cwd=str(place), path=path, resolver=resolver)
    return with_scripts(found, resolver, path)


def order(case):
    return RunOrder("1", run_argv(case.facts), case.bound, case.binding)


NAMED = [
    ("#!{place}/interp", "interp"),
    ("#! \t{place}/interp -x", "interp"),
    ("#!./interp", "interp"),
    ("#!interp", "interp"),
    ("#!{place}/interp", "second"),
    ("#!/usr/bin/env mytool", "bin/mytool"),
    ("#!/usr/bin/env -S mytool -x", "bin/mytool"),
    ("#!/usr/bin/env -Smytool", "bin/mytool"),
    ("#!/usr/bin/env -iS A=1 mytool", "bin/mytool"),
    ("#!/usr/bin/env -vS {place}/interp", "interp"),
    ("#!/usr/bin/env -S sh {place}/lib.sh", "lib.sh"),
    ("#!/usr/bin/env --split-string=mytool x", "bin/mytool"),
    ("#!/bin/sh {place}/lib.sh", "lib.sh"),
    ("#!{place}/bin/mytool", "bin/mytool"),
]
LINES = ["./tool.sh", "./tool.sh x y", "xargs ./tool.sh", "bash tool.sh", "find . -exec ./tool.sh ';'"]


def lay(place: Path, first_line: str) -> None:
    program(place / "tool.sh", f"{first_line.format(place=place)}\necho tool\n")
    program(place / "interp", f"#!{place}/second\n")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("first_line", "name"), NAMED)
async def test_an_interpreter_that_changes_after_the_question_ends_the_yes(
    judge, place, line, first_line, name
):
    lay(place, first_line)
    case = judge.examine(exec_call(line=line))
    assert judge.verdict(case).effect is Effect.ASK
    reverify(order(case), FilesystemResolver())
    program(place / name, "#!/bin/sh\necho SWAPPED\n")
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order(case), FilesystemResolver())


@pytest.mark.parametrize("line", ["./tool.sh", "./tool.sh x y", "python3 tool.sh"])
@pytest.mark.parametrize(("first_line", "name"), NAMED)
def test_an_interpreter_that_changes_ends_what_was_remembered(place, line, first_line, name):
    lay(place, first_line)
    before = facts(line, place)
    offered = decide(before).always
    assert offered.entries, offered.why
    assert effect(facts(line, place), *offered.entries, ask="off") == "allow"
    program(place / name, "#!/bin/sh\necho SWAPPED\n")
    assert effect(facts(line, place), *offered.entries, ask="off") == "deny"


@pytest.mark.parametrize(("first_line", "name"), NAMED)
def test_another_file_beside_it_may_change(place, first_line, name):
    lay(place, first_line)
    program(place / "other", "#!/bin/sh\n")
    entries = decide(facts("./tool.sh", place)).always.entries
    program(place / "other", "#!/bin/sh\necho SWAPPED\n")
    assert effect(facts("./tool.sh", place), *entries, ask="off") == "allow", name


def test_what_is_remembered_names_the_interpreter(place):
    program(place / "tool.sh", f"#!{place}/bin/mytool\n")
    offered = decide(facts("./tool.sh", place)).always
    assert f"{place}/tool.sh and {place}/bin/mytool stay as they are" in offered.words[0]
    program(place / "tool.sh", "#!/bin/sh\n")
    assert "as long as the file stays as it is" in decide(facts("./tool.sh", place)).always.words[0]
    offered = decide(facts("bash ./lib.sh", place)).always
    assert f"as long as {place}/lib.sh stays as it is" in offered.words[0]


@pytest.mark.parametrize(
    ("first_line", "late"),
    [
        ("#!/usr/bin/env late", "bin/late"),
        ("#!/usr/bin/env python3", "bin/python3"),
        ("#!/usr/bin/env -S python3 -m late", "late.py"),
        ("#!{place}/late", "late"),
    ],
)
async def test_an_interpreter_that_comes_after_the_question_ends_the_yes(judge, place, first_line, late):
    program(place / "tool.sh", f"{first_line.format(place=place)}\n")
    case = judge.examine(exec_call(line="./tool.sh"))
    reverify(order(case), FilesystemResolver())
    program(place / late, "#!/bin/sh\necho PLANTED\n")
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order(case), FilesystemResolver())


def test_a_learned_entry_ends_where_an_interpreter_comes_before_the_one_it_found(place):
    program(place / "tool.sh", "#!/usr/bin/env python3\n")
    entries = decide(facts("./tool.sh", place)).always.entries
    assert effect(facts("./tool.sh", place), *entries, ask="off") == "allow"
    program(place / "bin" / "python3", "#!/bin/sh\necho PLANTED\n")
    assert effect(facts("./tool.sh", place), *entries, ask="off") == "deny"


UNKNOWN = [
    "#!",
    "#! ",
    "#!/usr/bin/env",
    "#!/usr/bin/env -u X mytool",
    "#!/usr/bin/env -C/ mytool",
    "#!/usr/bin/env PATH=/x",
    "#!/usr/bin/env -S PATH=/x mytool",
    "#!/usr/bin/env -S ${X}",
    "#!/usr/bin/env -S my\\_tool",
    "#!/usr/bin/env -S -u PATH mytool",
    "#!/usr/bin/env -S A=1 -i mytool",
    "#!/bin/\0sh",
    "#!/" + "x" * 300,
]


@pytest.mark.parametrize("first_line", UNKNOWN)
def test_a_script_of_which_the_interpreter_cannot_be_told_is_not_remembered(place, first_line):
    program(place / "tool.sh", f"{first_line}\necho\n")
    assert decide(facts("./tool.sh", place)).always.entries == ()
    program(place / "tool.sh", "#!/usr/bin/env -S A=1 mytool\necho\n")
    entries = decide(facts("./tool.sh", place)).always.entries
    assert entries
    program(place / "tool.sh", f"{first_line}\necho\n")
    assert effect(facts("./tool.sh", place), *entries, ask="off") == "deny"


async def test_the_question_says_that_the_interpreter_is_not_held(judge, place):
    program(place / "tool.sh", "#!/usr/bin/env -S ${X}\n")
    reason = judge.verdict(judge.examine(exec_call(line="./tool.sh"))).decision.reason
    assert "tool.sh may change before it runs" in reason
    program(place / "tool.sh", "#!/usr/bin/env -S mytool\n")
    reason = judge.verdict(judge.examine(exec_call(line="./tool.sh"))).decision.reason
    assert "may change before it runs" not in reason


@pytest.mark.parametrize("text", ["", "echo\n", "\x7fELF", "# !/x\n", " #!/x\n", "#"])
def test_a_file_without_such_a_line_has_no_interpreter(place, text):
    program(place / "tool.sh", text)
    scripts = facts("./tool.sh", place).segments[0].scripts
    assert scripts == ()
    assert decide(facts("./tool.sh", place)).always.entries


def test_interpreters_that_run_each_other_come_to_an_end(place):
    program(place / "tool.sh", f"#!{place}/interp\n")
    program(place / "interp", f"#!{place}/second\n")
    program(place / "second", f"#!{place}/interp\n")
    scripts = dict(facts("./tool.sh", place).segments[0].scripts)
    assert {f"{place}/interp", f"{place}/second"} <= scripts.keys()


def test_a_script_of_the_system_with_an_interpreter_of_the_system_adds_no_file(place):
    assert [path for path, each in facts("zgrep x y", place).segments[0].scripts if each.sha256] == []
    assert facts("zgrep x y", place).segments[0].unpinned is None


def test_the_first_bytes_are_those_of_the_text_that_was_hashed(place):
    script = program(place / "tool.sh", "#!/bin/one\n")
    resolver = FilesystemResolver().for_one_command()
    identity = resolver.file(str(script))
    script.write_text("#!/bin/two\n")
    assert identity is not None
    assert resolver.beginning(str(script), identity) == b"#!/bin/one\n"
    other = FilesystemResolver().for_one_command()
    assert other.beginning(str(script), identity) is None
