"""What rides along with a listed command: variables, other arguments of the agent's own files, a pipe."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from tests.shell_world import World, effect, judge, look

PROJECT = World(
    files={"/srv/tool", "/srv/run.sh", "/srv/node_modules/.bin/cross-env"},
    directories={"/", "/srv"},
)


def learned(line: str, **options: object) -> tuple[AllowlistEntry, ...]:
    """Give what Always leaves for a line that is then admitted."""
    entries = judge(seen(line), **options).always.entries
    assert entries
    assert effect(seen(line), *entries, ask="off", **options) == "allow"
    return entries


def seen(line: str) -> CommandFacts:
    return look(line, world=PROJECT)


EXACT = [
    "make clean",
    "gcc -c t.c",
    "python3 x.py",
    "git status",
    "npm test",
    "zgrep x a",
    "./tool --version",
]


@pytest.mark.parametrize("line", EXACT)
@pytest.mark.parametrize("name", ["RM", "COMPILER_PATH", "GREP", "CI_TOOL", "GDB", "langX"])
def test_a_learned_command_admits_no_variable_that_it_was_not_learned_with(line: str, name: str) -> None:
    entries = learned(line)
    set_to = f"{name}=/x/evil"
    for worse in (f"{set_to} {line}", f"env {set_to} {line}", f"nice env {set_to} {line}"):
        assert effect(seen(worse), *entries, ask="off") == "deny"
    assert effect(seen(line), *entries, env=[(name, "/x/evil")], ask="off") == "deny"


@pytest.mark.parametrize("line", EXACT)
def test_variables_that_it_was_learned_with_are_kept_with_their_values(line: str) -> None:
    entries = learned(f"A=1 {line}")
    assert "A is set as now" in judge(seen(f"A=1 {line}")).always.words[0]
    for other in (line, f"A=2 {line}", f"A=1 B=2 {line}", f"B=1 {line}"):
        assert effect(seen(other), *entries, ask="off") == "deny"
    assert effect(seen(line), *entries, env=[("A", "1")], ask="off") == "allow"
    assert effect(seen(f"A=1 {line}"), *entries, env=[("A", "2")], ask="off") == "deny"


@pytest.mark.parametrize("args", [("clean",), None])
def test_an_operators_entry_for_what_runs_anything_admits_no_variable_either(
    args: tuple[str, ...] | None,
) -> None:
    entry = AllowlistEntry("/usr/bin/make", args, None if args else "clean", source="test")
    assert effect("make clean", entry, ask="off") == "allow"
    assert effect("RM=/x/evil make clean", entry, ask="off") == "deny"
    assert effect("make clean", entry, env=[("RM", "/x/evil")], ask="off") == "deny"


@pytest.mark.parametrize("line", ["zgrep y a", "zgrep -i y a"])
def test_a_script_of_the_system_that_an_operator_lists_has_any_arguments_but_no_variable(line: str) -> None:
    for entries in (("/usr/bin/zgrep",), ("**",)):
        assert effect(seen(line), *entries, ask="off") == "allow"
        assert effect(seen(f"GREP=/x/evil {line}"), *entries, ask="off") == "deny"


RUNS_ITS_OPTION = [
    "diff3 --diff-prog=E a b c", "sdiff --diff-program=E a b", "apt-cache -o Dir::Bin::dpkg=E policy",
    "apt-config -o x=E dump", "dpkg-architecture -c E", "c99-gcc -wrapper E x.c", "nm --plugin E x",
    "ranlib --plugin E x", "prove E", "pydoc3 ./x.py", "pdb3 x.py", "strip --plugin E x", "apt-anything E",
    "dpkg-anything E", "git-anything E", "llvm-anything-14 E", "zgrep E a", "x86_64-linux-gnu-nm --plugin E",
    "gcc-nm-12 --plugin E", "readprofile -p prof -m './E;.gz'", "mke2fs -q -F -c 'd;sh E'", "e2fsck E",
    "debugfs -R '!E' x", "mkfs.ext4 -c 'd;sh E'", "fsck.ext3 E", "tune2fs E",
    "tput -T E init", "sprof ./E.so", "agetty -l E x",
]  # fmt: skip


@pytest.mark.parametrize("line", RUNS_ITS_OPTION)
def test_a_program_that_runs_what_an_option_names_is_remembered_with_these_arguments_alone(line: str) -> None:
    name = line.split(" ", maxsplit=1)[0]
    entries = learned(f"{name} harmless")
    assert all(entry.args == ("harmless",) for entry in entries)
    assert effect(seen(line), *entries, ask="off") == "deny"


@pytest.mark.parametrize(
    "name",
    [
        "sotruss", "memusage", "msgexec", "pg_virtualenv", "gprofng", "fakeroot-sysv", "systemd-cat",
        "systemd-socket-activate", "uclampset", "scriptlive", "fstab-decode", "switch_root",
    ],
)  # fmt: skip
def test_what_runs_another_program_is_asked_about_each_time(name: str) -> None:
    assert effect(f"{name} rg x", "**", ask="off") == "deny"
    assert judge(f"{name} rg x").always.entries == ()


@pytest.mark.parametrize("name", ["rg", "ls", "apt", "diff", "who-am-i", "strings"])
def test_near_names_are_none_of_them(name: str) -> None:
    expected = "deny" if name == "apt" else "allow"
    assert effect(f"{name} x", f"/usr/bin/{name}", ask="off") == expected


@pytest.mark.parametrize("before", ["LC_ALL=C", "LANG=de_DE.UTF-8", "NO_COLOR=1", "CI=true", "TZ=UTC"])
def test_variables_of_language_and_looks_change_nothing(before: str) -> None:
    for line in EXACT:
        assert effect(seen(f"{before} {line}"), *learned(line), ask="off") == "allow"
        assert effect(seen(f"{before}/x {line}"), *learned(line), ask="off") == "deny"


def test_ordinary_programs_are_still_admitted_with_ordinary_variables() -> None:
    assert effect("FOO=1 rg x", *learned("rg x"), ask="off") == "allow"
    assert effect("FOO=1 rg y", *learned("rg x"), ask="off") == "deny"
    assert effect("FOO=1 ls y", *judge(seen("ls x")).always.wider, ask="off") == "allow"
    assert effect("FOO=1 rg x", "/usr/bin/rg", env=[("BAR", "x y")], ask="off") == "allow"
    assert effect("LD_X=1 rg x", "/usr/bin/rg", ask="off") == "deny"


@pytest.mark.parametrize(
    ("line", "worse"),
    [
        ("./tool --version", "./tool -c '/x/evil hi'"),
        ("./tool --version", "./tool"),
        ("npx cross-env A=1 rg x", "npx cross-env sh -c '/x/evil'"),
        ("npx cross-env A=1 rg x", "npx cross-env A=1 rg x y"),
    ],
)
def test_a_program_that_the_agent_could_have_written_is_remembered_with_these_arguments_alone(
    line: str, worse: str
) -> None:
    entries = learned(line)
    assert effect(seen(worse), *entries, ask="off") == "deny"


def test_what_was_remembered_of_such_a_program_with_any_arguments_counts_no_more() -> None:
    old = AllowlistEntry("/srv/tool", real_path="/srv/tool", sha256="a" * 64, agent="main")
    assert effect(seen("./tool --version"), old, ask="off") == "deny"
    assert effect(seen("./tool x"), AllowlistEntry("/srv/tool", source="test"), ask="off") == "allow"


FED = [
    "sqlite3 my.db", "ed a", "ex -s a", "vim -es a", "make -f -", "awk -f - a", "sed -f - a",
    "sed -n -f /dev/stdin a", "psql db", "gawk -E - a", "python3 x.py", "python3 -i x.py", "node x.js",
    "perl -d x.pl", "perl -e 'x' -d", "python3 -m code", "awk '{system($0)}'", "awk '{print | \"sh\"}'",
    "awk 'BEGIN{while((\"-\")|getline x){}}'",
    "awk '{print > $1}'", "awk '{printf \"%s\", $2 >> $1}'", "awk '{print $2 >$1}'",
    "sed 's/x/y/e'", "sed -n 1e", "sed -n 1p -f -", "sed e",
    "sed 'w x'", "sed 's/x/y/w x'", "node -e x -i", "git apply", "docker build -", "kubectl apply -f -",
    "./tool a", "unheard-of x", "strings x", "jps", "php -r x -a", "ruby -n x.rb", "gdb -x -",
]  # fmt: skip


@pytest.mark.parametrize("line", FED)
def test_what_may_read_its_program_from_a_pipe_is_not_remembered_there(line: str) -> None:
    for fed in (
        f"echo x | {line}",
        f"echo x | bash -c {line!r}",
        f"echo x | nice {line}",
        f"true; echo | {line}",
    ):
        judgement = judge(seen(fed))
        assert judgement.decision.effect != "allow"
        assert judgement.always.entries == ()


@pytest.mark.parametrize("line", FED)
def test_what_was_remembered_without_a_pipe_does_not_count_behind_one(line: str) -> None:
    entries = judge(seen(line)).always.entries
    if entries:
        assert effect(seen(line), *entries, ask="off") == "allow"
    assert effect(seen(f"echo x | {line}"), *entries, ask="off") == "deny"
    assert effect(seen(f"echo x | bash -c {line!r}"), *entries, ask="off") == "deny"
    asked = CommandText(line=line, stdin=b"x")
    fed = inspect(asked, cwd="/srv", path=("/usr/bin",), resolver=PROJECT)
    assert effect(fed, *entries, ask="off") == "deny"


FILTERS = [
    "sed -n 1,5p", "sed 's/a/b/g'", "sed -E 's|a|b|;s#x#y#'", "sed '/x/d'", "sed -n '/a/,/b/p'", "tee log",
    "awk '{print $1}'", "awk -F: '{print $2}'", "awk -F : -v a=1 '$1 > a'", "awk '/a||b/'",
    "awk '$1 > 2 {print $1}'", "awk '{if ($1>2) print; x=3}'",
    "python3 -c 'import json'", "node -e x", "node -p 1", "perl -ne 'print'", "perl -pe 's/x/y/'", "rg x",
    "grep x", "wc -l x", "ruby -ne x", "jq .x", "sort -u", "xz -d",
]  # fmt: skip


@pytest.mark.parametrize("line", FILTERS)
def test_a_filter_whose_whole_program_stands_in_its_words_is_remembered_behind_a_pipe(line: str) -> None:
    fed = f"echo x | {line}"
    entries = learned(fed)
    assert effect(seen(fed), *entries, ask="off") == "allow"
    assert effect(seen(f"{fed}; id"), *entries, ask="off") == "deny"


def test_an_operators_own_exact_entry_counts_behind_a_pipe() -> None:
    entry = AllowlistEntry("/usr/bin/psql", ("db",), source="test")
    assert effect("echo x | psql db", entry, ask="off") == "allow"
    assert effect("echo x | psql other", entry, ask="off") == "deny"


def test_only_the_command_behind_the_pipe_is_fed() -> None:
    piped = [segment.piped for segment in look("a | b && c; d | bash -c 'e; f' ; g").segments]
    assert piped == [False, True, False, False, True, True, False]


@pytest.mark.parametrize("place", ["/usr/sbin", "/sbin", "/usr/local/sbin"])
def test_a_program_that_administers_the_system_is_remembered_with_its_arguments_alone(place: str) -> None:
    world = World(files={f"{place}/cat"})
    facts = look(f"{place}/cat a", world=world)
    segment = replace(facts.segments[0], executable=replace(facts.segments[0].executable, trusted=True))
    facts = replace(facts, segments=(segment,))
    entries = judge(facts).always.entries
    assert [entry.args for entry in entries] == [("a",)]
    assert effect(facts, *entries, ask="off") == "allow"
    others = replace(facts, segments=(replace(segment, words=(*segment.words, segment.words[-1])),))
    assert effect(others, *entries, ask="off") == "deny"
    assert judge(facts).always.wider == ()
    assert judge("/usr/bin/cat a").always.wider
