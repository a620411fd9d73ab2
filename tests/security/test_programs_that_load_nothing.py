"""What counts as a program that is known to run and load nothing else, and what Always saves of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from core.shell.names import loads_nothing, only_reads, variants
from core.shell.programs import (
    CARRIERS,
    LOADS_NOTHING,
    PACKAGE_RUNNERS,
    PRIVILEGE_CHANGERS,
    READS,
    RUNS_ANYTHING,
)
from core.shell.scripts import with_scripts
from tests.shell_world import World, effect, judge, look

LOADING = [
    "jar -J-agentpath:./evil.so --version", "javap -J-agentpath:/x/evil.so Evil", "jps -J-agentpath:/x/e.so",
    "keytool -list -providerclass Evil -providerpath .", "javadoc -doclet Doc -docletpath . Evil.java",
    "opt-14 -load=./evil.so x", "llc-14 -load=./evil.so x", "bugpoint-14 -load=./evil.so x",
    "gio launch ./e.desktop", "gio-querymodules .", "gdk-pixbuf-query-loaders /x/evil.so",
    "pg_ctl -p EVIL start", "osslsigncode sign -pkcs11engine /x/evil.so", "kpt fn eval --exec ./evil .",
    "collect2 -plugin ./evil.so", "clang-tidy -load=./evil.so x.c", "protoc --plugin=./evil x.proto",
    "etcdctl watch k -- ./evil",
    "avr-gcc -wrapper ./evil x.c", "arm-none-eabi-gcc-12 -wrapper ./evil x.c",
    "x86_64-w64-mingw32-g++ -wrapper ./evil x.c", "musl-gcc -wrapper ./evil x.c",
    "unheard-of --plugin=./evil.so", "strings --plugin=./evil.so x", "getent -s ./evil hosts",
    "ld.bfd -plugin ./evil.so",
]  # fmt: skip


@pytest.mark.parametrize("line", LOADING)
def test_always_on_a_harmless_use_does_not_admit_what_loads_something(line: str) -> None:
    name = line.split(" ", maxsplit=1)[0]
    entries = judge(f"{name} harmless").always.entries
    assert [entry.args for entry in entries] == [("harmless",)]
    assert effect(f"{name} harmless", *entries, ask="off") == "allow"
    assert effect(line, *entries, ask="off") == "deny"


@pytest.mark.parametrize("line", LOADING)
def test_what_was_learned_of_such_a_program_with_any_arguments_counts_no_more(line: str) -> None:
    path = f"/usr/bin/{line.split(' ', maxsplit=1)[0]}"
    assert effect(line, AllowlistEntry(path, real_path=path, agent="main"), ask="off") == "deny"


@pytest.mark.parametrize(
    "line", [line for line in LOADING if line.split()[0] not in {"unheard-of", "strings", "getent"}]
)
def test_an_operators_entry_without_arguments_does_not_admit_them_either(line: str) -> None:
    assert effect(line, f"/usr/bin/{line.split(' ', maxsplit=1)[0]}", "**", ask="off") == "deny"


def test_an_operator_may_list_a_program_of_no_table_by_its_path() -> None:
    assert effect("unheard-of x", "/usr/bin/unheard-of", ask="off") == "allow"
    assert effect("unheard-of x", "/usr/bin/unheard", ask="off") == "deny"


@pytest.mark.parametrize(
    "name",
    ["ccache", "watchexec", "direnv", "mise", "sops", "tini", "dumb-init", "mispipe", "qemu-x86_64-static"],
)
def test_further_programs_that_run_another_one_are_asked_about_each_time(name: str) -> None:
    assert effect(f"{name} x", "**", ask="off") == "deny"
    assert judge(f"{name} x").always.entries == ()


@pytest.mark.parametrize("name", sorted(LOADS_NOTHING))
def test_what_loads_nothing_is_in_no_other_table_and_saved_with_any_arguments_only_if_it_reads(
    name: str,
) -> None:
    dear = RUNS_ANYTHING | CARRIERS | PRIVILEGE_CHANGERS | PACKAGE_RUNNERS
    assert variants(name).isdisjoint(dear)
    offer = judge([f"/usr/bin/{name}", "a"], safeBins=[]).always
    assert [entry.args for entry in offer.entries] == [("a",)]
    assert effect([f"/usr/bin/{name}", "b"], *offer.entries, ask="off", safeBins=[]) == "deny"
    assert bool(offer.wider) is (name in READS)
    if offer.wider:
        assert effect([f"/usr/bin/{name}", "b"], *offer.wider, ask="off", safeBins=[]) == "allow"
        assert effect([f"/usr/bin/{name}x", "b"], *offer.wider, ask="off", safeBins=[]) == "deny"


def test_what_only_reads_loads_nothing() -> None:
    assert READS < LOADS_NOTHING


WRITERS = [
    "cp", "mv", "rm", "sort", "uniq", "find", "tree", "split", "touch", "mkdir", "date", "sync", "file",
    "gzip", "truncate", "install", "shred", "xxd", "hostname", "rg", "jq", "csplit", "dir", "mktemp", "ping",
]  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_what_could_write_a_file_by_an_option_or_operand_is_none_of_those_that_only_read(name: str) -> None:
    assert name not in READS


@pytest.mark.parametrize(
    "line",
    [
        "find . -exec ./evil ;", "rg --pre=./evil x", "rg -z x", "sort --compress-prog=./evil x",
        "split --filter=./evil x", "split --filt=./evil x", "split --f=./evil x", "install -s a b",
        "install -Ds a b", "install --strip-program=./evil a b", "diff -l a b", "diff -rul a b",
        "diff --pag a b", "file -z x", "file -bz x", "file -Z x", "file --uncompress x",
        "tree -R -L 1", "tree -aR",
    ],
)  # fmt: skip
def test_options_by_which_one_of_them_runs_another_are_asked_about_each_time(line: str) -> None:
    name = line.split(" ", maxsplit=1)[0]
    asked = judge(line.replace(";", "';'"), f"/usr/bin/{name}")
    assert (str(asked.decision.effect), asked.decision.rule) == ("ask", "exec.carrier")
    assert asked.always.entries == ()


@pytest.mark.parametrize(
    "line",
    [
        "diff -ru a b",
        "diff --left-column a b",
        "file -b x",
        "tree -L 2 -r",
        "split -n 3 x",
        "split --numeric x",
    ],
)
def test_near_options_are_admitted(line: str) -> None:
    assert effect(line, f"/usr/bin/{line.split(' ', maxsplit=1)[0]}", ask="off") == "allow"


def linked(name: str, real: str) -> CommandFacts:
    return look(f"{name} a", world=World(links={f"/usr/bin/{name}": real}))


@pytest.mark.parametrize(
    "real",
    ["/usr/bin/bash", "/usr/bin/unheard-of", "/usr/bin/ls.real", "/opt/bin/ls", "/usr/lib/ls", "/usr/sbin/ls",
     "/usr/bin/ls-2.0", "/usr/bin/python3.11", "/usr/bin/busybox-evil", "/usr/bin/x/ls"],
)  # fmt: skip
def test_a_link_by_a_known_name_to_something_else_is_not_that_program(real: str) -> None:
    facts = linked("ls", real)
    assert not loads_nothing(facts.segments[0])
    assert not judge(facts).always.wider
    for any_of_it in (False, True):
        entry = AllowlistEntry("/usr/bin/ls", real_path=real, agent="main", any_arguments=any_of_it)
        assert effect(facts, entry, ask="off") == "deny"


@pytest.mark.parametrize(
    "real", ["/usr/bin/ls", "/bin/ls", "/usr/local/bin/ls", "/usr/bin/busybox", "/usr/bin/coreutils"]
)
def test_a_link_to_the_same_name_or_to_one_file_of_many_names_is(real: str) -> None:
    facts = linked("ls", real)
    assert loads_nothing(facts.segments[0])
    entry = AllowlistEntry("/usr/bin/ls", real_path=real, agent="main", any_arguments=True)
    assert effect(facts, entry, ask="off") == "allow"


@pytest.mark.parametrize("name", ["my-ls", "ls2", "ls-1.0", "LS", "ls.exe", "sha", "busybox-ls"])
def test_a_name_like_a_known_one_is_none(name: str) -> None:
    for segment in (linked(name, "/usr/bin/ls").segments[0], look(f"{name} a").segments[0]):
        assert not loads_nothing(segment)
        assert not only_reads(segment)


def test_neither_a_script_nor_what_others_can_change_is_a_known_program() -> None:
    segment = look("ls a").segments[0]
    assert segment.executable is not None
    assert loads_nothing(segment)
    assert only_reads(segment)
    program = segment.executable
    for changed in (replace(program, script=True), replace(program, trusted=False), None):
        assert not loads_nothing(replace(segment, executable=changed))
        assert not only_reads(replace(segment, executable=changed))


@pytest.mark.parametrize("line", ["unheard-of x", "jps x", "strings x"])
def test_no_variable_rides_along_with_a_program_that_is_not_known_to_load_nothing(line: str) -> None:
    path = f"/usr/bin/{line.split(' ', maxsplit=1)[0]}"
    operators = AllowlistEntry(path, tuple(line.split()[1:]), source="test")
    for entries in (judge(line).always.entries, (operators,)):
        assert effect(line, *entries, ask="off") == "allow"
        assert effect(f"LC_ALL=C {line}", *entries, ask="off") == "allow"
        for worse in (f"SOME_MODULE={'/x/evil.so'} {line}", f"env A=1 {line}", f"A=1; {line}"):
            assert effect(worse, *entries, ask="off") == "deny"
        assert effect(line, *entries, env=[("A", "1")], ask="off") == "deny"
    assert effect("A=1 ls x", *judge("ls x").always.entries, ask="off") == "allow"


@pytest.mark.parametrize("name", ["GDK_PIXBUF_MODULE_FILE", "GDK_PIXBUF_MODULEDIR", "GDK_BACKEND"])
def test_variables_that_load_modules_of_pictures_are_asked_about(name: str) -> None:
    assert judge(f"{name}=/x/evil ls", "/usr/bin/ls").decision.rule == "exec.environment"
    assert judge("ls", "/usr/bin/ls", env=[(name, "/x")]).decision.rule == "exec.environment"
    assert effect(f"X{name}=/x/evil ls", "/usr/bin/ls") == "allow"


def test_of_a_program_that_may_load_others_that_is_said() -> None:
    assert "is on no allowlist; it may run or load others" in judge("unheard-of x").decision.reason
    assert "exactly `unheard-of x` in /srv, in the sandbox" in judge("unheard-of x").always.words
    assert judge("rm x").decision.reason == "`/usr/bin/rm` with these arguments is on no allowlist"


def test_a_file_given_to_a_program_that_loads_nothing_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_text("one")
    resolver = FilesystemResolver()
    for line, known in (("cat a.so", True), ("nm a.so", False)):
        found = inspect(CommandText(line=line), cwd=str(tmp_path), path=("/usr/bin",), resolver=resolver)
        assert bool(with_scripts(found, resolver, ("/usr/bin",)).segments[0].scripts) is not known


@pytest.mark.parametrize(
    "line", ["cp a b.go && echo b.go", "cp a b.go; printf b.go", "cp a b.go && cat b.go"]
)
def test_naming_a_new_file_to_a_program_or_builtin_that_loads_nothing_is_no_danger(line: str) -> None:
    assert effect(line, "/usr/bin/cp", "/usr/bin/cat", ask="off") == "allow"


@pytest.mark.parametrize("line", ["cp a b.go && unheard-of b.go", "cp a b.go | strings b.go"])
def test_naming_a_new_file_to_a_program_that_may_load_it_is_not_remembered(line: str) -> None:
    judged = judge(line)
    assert judged.decision.rule == "exec.changeable"
    assert judged.always.entries == ()
    apart = (*judge("unheard-of b.go").always.entries, *judge("strings b.go").always.entries)
    assert effect("echo b.go; unheard-of b.go", *apart, ask="off") == "allow"
    assert effect(line, *apart, "/usr/bin/cp", ask="off") == "deny"
