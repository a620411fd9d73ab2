"""What runs is a file of which the text is known, or it is not remembered: missing, pipes, links, caches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from core.shell.scripts import with_scripts
from tests.shell_world import Machine, effect, judge


def facts(line: str, cwd: Path) -> CommandFacts:
    limited = Machine().for_one_command()
    found = inspect(CommandText(line=line), cwd=str(cwd), path=("/usr/bin",), resolver=limited)
    return with_scripts(found, limited, ("/usr/bin",))


MISSING = [
    "python3 b.py", "python3 -u b.py x", "python3 -W ignore b.py", "python3 -Wignore -- b.py", "node b",
    "node -r ./b x", "bash b.sh", "bash -e b.sh", "sh -eu b.sh a", "ruby b.rb", "perl -w b.pl", "java Main",
    "java -jar b.jar", "java -cp a.jar:b.jar Main", "bun run b.ts", "deno run -A ./b.ts", "lua b.lua",
    "make -f b.mk all", "make -sfb.mk", "awk -f b.awk x", "sed -nf b.sed x", "php b.php",
]  # fmt: skip


@pytest.mark.parametrize("line", MISSING)
def test_a_program_file_that_is_missing_is_neither_remembered_nor_admitted_by_what_was(
    line: str, tmp_path: Path
) -> None:
    found = facts(line, tmp_path)
    offered = judge(found).always
    assert offered.entries == ()
    assert "not there now" in (offered.why or "")
    segment = found.segments[-1]
    unpinned = AllowlistEntry(
        segment.executable.path,
        segment.argv[1:],
        real_path=segment.executable.real_path,
        agent="main",
    )
    assert effect(found, unpinned, ask="off") == "deny"
    assert effect(facts(f"cp evil b.py && {line}", tmp_path), unpinned, "/usr/bin/cp", ask="off") == "deny"


@pytest.mark.parametrize("line", ["cp x.py b.py && python3 b.py", "cp x.py b.py; nice python3 b.py"])
def test_what_a_line_writes_first_is_not_remembered_with_it(line: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1\n")
    judged = judge(facts(line, tmp_path), "/usr/bin/cp")
    assert (judged.decision.effect.name, judged.decision.rule) == ("ASK", "exec.changeable")
    assert judged.always.entries == ()


NEAR = [
    "python3 -m pytest -q", "python3 -u -m pytest x", "python3 -Wm -c 1", "python3 -c 1 x",
    "node -e 1 b", "node --eval 1", "perl -pe s/a/b/ b", "perl -0777 -i -pe x b", "php -r 1 b", "bun test",
    "bun run build", "deno task build", "npm run build", "make test", "git commit -m b.py", "awk 1 b",
    "ruby -e 1", "sed -n p b", "python3 --version", "node --version", "git status", "make -C b all",
    "tar -cf b.tar x", "awk -vfoo=1 1 b", "awk -Ff 1 b", "make -Cfoo all", "sed -i.bf p b",
]  # fmt: skip


@pytest.mark.parametrize("line", NEAR)
def test_a_command_without_a_file_of_its_own_is_remembered_as_before(line: str, tmp_path: Path) -> None:
    entries = judge(facts(line, tmp_path)).always.entries
    assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"
    assert effect(facts(f"{line} more", tmp_path), *entries, ask="off") == "deny"


def test_a_module_that_an_earlier_command_could_write_asks(tmp_path: Path) -> None:
    entries = (*judge(facts("python3 -m pytest -q", tmp_path)).always.entries, "/usr/bin/cp", "/usr/bin/tail")
    for line in (
        "cp evil.py pytest.py && python3 -m pytest -q",
        "python3 -m pytest -q | cp evil.py pytest.py",
        "cp evil.py pytest.py | python3 -m pytest -q",
        "python3 -m pytest -q & cp evil.py pytest.py",
        "cd . ; cp a b; sh -c 'python3 -m pytest -q'",
    ):
        assert effect(facts(line, tmp_path), *entries, ask="off") == "deny"
    for line in (
        "python3 -m pytest -q 2>&1 | tail -20",
        "cd . && python3 -m pytest -q",
        "tail x; python3 -m pytest -q",
        "python3 -m pytest -q; cp a b",
    ):
        assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"


@pytest.mark.parametrize("program", ["go run b.go", "uv run python ./b.go", "cmake -P b.go"])
def test_a_file_that_an_earlier_command_names_is_not_admitted_by_what_was_learned_without_it(
    program: str, tmp_path: Path
) -> None:
    entries = (*judge(facts(program, tmp_path)).always.entries, "/usr/bin/cp", "/usr/bin/cat")
    assert effect(facts(program, tmp_path), *entries, ask="off") == "allow"
    for first in ("cp x b.go", "cp x/b.go .", "sh -c 'cp x b.go'"):
        assert effect(facts(f"{first} && {program}", tmp_path), *entries, ask="off") == "deny"
        assert judge(facts(f"{first} && {program}", tmp_path)).always.entries == ()
    for first in ("cp x y", "cat b.go", "cp b.gox y"):
        assert effect(facts(f"{first} && {program}", tmp_path), *entries, ask="off") == "allow"


@pytest.mark.parametrize("first", ["cp x late", "mv x ./late", "tar -xf a.tar late", "cat x | tee late"])
@pytest.mark.parametrize("value", ["./late", "sh ./late", "a=b,./late", "{}/late"])
def test_a_file_that_a_variable_names_and_another_command_could_put_there_is_not_admitted(
    first: str, value: str, tmp_path: Path
) -> None:
    program = f"GREP='{value.format(tmp_path)}' zgrep y x"
    entries = (*judge(facts(program, tmp_path)).always.entries, "/usr/bin/cp", "/usr/bin/mv")
    others = ("cp x other", "cat x late", "mkdir -p late", "rm -f late")
    for line in ("tar -xf a.tar late", "cat x", "tee late", *others):
        entries = (*entries, *judge(facts(line, tmp_path)).always.entries)
    assert effect(facts(program, tmp_path), *entries, ask="off") == "allow"
    assert effect(facts(f"{first} && {program}", tmp_path), *entries, ask="off") == "deny"
    for harmless in others:
        assert effect(facts(f"{harmless} && {program}", tmp_path), *entries, ask="off") == "allow"


@pytest.mark.parametrize(
    "name",
    ["pytest.py", "pytest.so", "pytest/__init__.py", "pytest.pyc", "pytest.cpython-311-x86_64-linux-gnu.so"],
)
def test_a_file_that_takes_the_place_of_a_module_ends_what_was_remembered(name: str, tmp_path: Path) -> None:
    entries = judge(facts("python3 -m pytest -q", tmp_path)).always.entries
    (tmp_path / "pytest").mkdir()
    (tmp_path / name).write_text("evil\n")
    assert effect(facts("python3 -m pytest -q", tmp_path), *entries, ask="off") == "deny"


@pytest.mark.parametrize(
    "line", ["python3 fifo", "bash fifo", "sed -f fifo x", "node -r ./fifo x.js", "node lnk"]
)
def test_a_pipe_is_no_file_that_could_be_remembered(line: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "lnk").symlink_to("fifo")
    (tmp_path / "x.js").write_text("1\n")
    assert judge(facts(line, tmp_path)).always.entries == ()
    assert judge(facts("tar -cf /dev/null x.js", tmp_path)).always.entries


@pytest.mark.parametrize(
    "line",
    [
        "python3 /proc/self/cwd/x.py",
        "python3 here/x.py",
        "bash /dev/fd/../cwd/x.py",
        "make -f /proc/self/cwd/x.py",
        "sed -f here/x.py a",
        "git apply here/x.py",
    ],
)
def test_what_a_link_below_proc_leads_to_is_never_remembered(line: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1\n")
    (tmp_path / "here").symlink_to("/proc/self/cwd")
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert judge(facts(line, tmp_path)).always.entries == ()
    finally:
        os.chdir(here)
    assert judge(facts("python3 x.py", tmp_path)).always.entries


INSIDE_A_WORD = [
    ("node --import=file://{}/m.mjs a.js", "m.mjs"),
    ("node --import file://{}/m.mjs a.js", "m.mjs"),
    ("python3 -W -munused -m srv", "srv.py"),
    ("python3 -Wignore -X dev -m srv", "srv.py"),
    ("tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=./x a.js", "x"),
    ("tar -cf /dev/null -I './x -9' a.js", "x"),
    ("git -c 'alias.z=!./x' z", "x"),
    ("git -c 'alias.z=!sh ./x -9' z", "x"),
    ("gcc -wrapper ./x,a -c t.c", "x"),
    ("make 'CC=./x -c' all", "x"),
    ("make --eval='a:;./x' a", "x"),
    ("make --eval='a:;@./x>b' a", "x"),
    ("GREP=./x zgrep y a.js", "x"),
    ("sh -c 'GREP=./x zgrep y a.js'", "x"),
    ("GREP='./x -e' zgrep y a.js", "x"),
    ("DIFF=./x bzdiff a.js b.js", "x"),
]


@pytest.mark.parametrize(("line", "name"), INSIDE_A_WORD)
def test_a_file_named_inside_a_word_is_pinned(line: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1\n")
    (tmp_path / name).write_text("one\n")
    line = line.format(tmp_path)
    entries = judge(facts(line, tmp_path)).always.entries
    assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"
    (tmp_path / name).write_text("two\n")
    assert effect(facts(line, tmp_path), *entries, ask="off") == "deny"


def test_jars_of_a_class_path_are_pinned(tmp_path: Path) -> None:
    for name in ("a.jar", "b.jar", "Main.class"):
        (tmp_path / name).write_text("one\n")
    line = "java -cp a.jar:b.jar Main"
    entries = judge(facts(line, tmp_path)).always.entries
    assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"
    (tmp_path / "b.jar").write_text("two\n")
    assert effect(facts(line, tmp_path), *entries, ask="off") == "deny"


@pytest.mark.parametrize("line", ["node -r ./a.js srv", "node --import ./a.js ./srv", "java -cp srv Main"])
def test_a_directory_behind_a_file_that_an_option_names_is_not_remembered(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1\n")
    (tmp_path / "srv").mkdir()
    assert judge(facts(line, tmp_path)).always.entries == ()
    assert judge(facts("node a.js srv", tmp_path)).always.entries


@pytest.mark.parametrize(
    ("name", "source", "cache"),
    [
        ("one", "one.py", "__pycache__"),
        ("pkg", "pkg/__main__.py", "pkg/__pycache__"),
        ("pkg.srv", "pkg/srv.py", "pkg/__pycache__"),
    ],
)
def test_a_module_with_a_cache_beside_it_is_not_remembered_and_not_admitted(
    name: str, source: str, cache: str, tmp_path: Path
) -> None:
    script = tmp_path / source
    script.parent.mkdir(exist_ok=True)
    script.write_text("1\n")
    line = f"python3 -m {name}"
    entries = judge(facts(line, tmp_path)).always.entries
    assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"
    (tmp_path / cache).mkdir()
    assert judge(facts(line, tmp_path)).always.entries == ()
    assert effect(facts(line, tmp_path), *entries, ask="off") == "deny"


def test_a_cache_of_other_modules_hinders_nothing(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    entries = judge(facts("python3 -m pytest", tmp_path)).always.entries
    assert effect(facts("python3 -m pytest", tmp_path), *entries, ask="off") == "allow"
