"""Which file an interpreter would read is found as it looks for it, and reading for a pin has an end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from core.shell.scripts import MAX_FILES, with_scripts
from tests.shell_world import Machine, effect, judge

MiB = 1024 * 1024


def facts(line: str, cwd: Path, resolver: FilesystemResolver | None = None) -> CommandFacts:
    limited = (resolver or Machine()).for_one_command()
    found = inspect(CommandText(line=line), cwd=str(cwd), path=("/usr/bin",), resolver=limited)
    return with_scripts(found, limited, ("/usr/bin",))


FOUND = [
    ("node srv", "srv.js"),
    ("node ./srv x", "srv.js"),
    ("node srv", "srv.mjs"),
    ("node -r ./srv x.js", "srv.js"),
    ("node --require=./srv x.js", "srv.json"),
    ("node -r./srv x.js", "srv.cjs"),
    ("tsx srv", "srv.ts"),
    ("sed -nfx.sed a", "x.sed"),
    ("sed -nEfx.sed a", "x.sed"),
    ("make -sfMakefile", "Makefile"),
    ("make -kBsfbuild.mk all", "build.mk"),
    ("tar -xffoo", "foo"),
    ("awk -fx.awk a", "x.awk"),
    ("python3 -m srvmod", "srvmod.py"),
    ("python3 -msrvmod", "srvmod.py"),
    ("python3 -m a.b", "a/b.py"),
    ("python3 -m a.b", "a/__init__.py"),
    ("python3 -W ignore -m a", "a/__main__.py"),
    ("ruby -r./lib x.rb", "lib.rb"),
    ("java Main", "Main.class"),
    ("perl -wTx.pl", "x.pl"),
    ("bash -ex b.sh", "b.sh"),
    ("node srv.js", "srv.js"),
    ("python3 pkg", "pkg/__main__.py"),
    ("node pkg", "pkg/package.json"),
    ("node .", "index.js"),
    ("node a.js", "a.js.js"),
    ("unheard-of -load=./x.so a", "x.so"),
    ("unheard-of -J-agentpath:./x.so a", "x.so"),
    ("llc-14 -load=x.so a", "x.so"),
    ("strings --plugin x.so a", "x.so"),
]


@pytest.mark.parametrize(("line", "name"), FOUND)
def test_the_file_that_would_be_read_is_bound_and_changing_it_ends_what_was_remembered(
    line: str, name: str, tmp_path: Path
) -> None:
    script = tmp_path / name
    script.parent.mkdir(exist_ok=True)
    script.write_text("one\n")
    before = facts(line, tmp_path)
    assert str(script) in {os.path.normpath(path) for path, _ in before.segments[0].scripts}
    entries = judge(before).always.entries
    if entries:
        assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"
        script.write_text("two\n")
        assert effect(facts(line, tmp_path), *entries, ask="off") == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "python3 pkg",
        "node pkg",
        "node ./pkg",
        "node .",
        "python3 -W ignore pkg",
        "ruby pkg",
        "bun pkg x",
        "python3 pkg -m json.tool",
        "node pkg -e x",
        "node -r ./pkg x.js",
    ],
)
def test_a_directory_in_the_place_of_a_program_is_never_remembered(line: str, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    offered = judge(facts(line, tmp_path)).always
    assert offered.entries == ()
    learned_before = judge(facts(line.replace("pkg", "gone").replace(" .", " gone"), tmp_path)).always.entries
    assert effect(facts(line, tmp_path), *learned_before, ask="off") == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "python3 x.py pkg",
        "node x.js pkg",
        "python3 -m json.tool pkg",
        "node -e 1 pkg",
        "python3 -c 1 pkg",
        "git -C pkg status",
        "make -C pkg",
        "sed -n p pkg",
    ],
)
def test_a_directory_that_is_only_an_argument_hinders_nothing(line: str, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    for name in ("x.py", "x.js"):
        (tmp_path / name).write_text("1\n")
    entries = judge(facts(line, tmp_path)).always.entries
    assert effect(facts(line, tmp_path), *entries, ask="off") == "allow"
    assert effect(facts(f"{line} x", tmp_path), *entries, ask="off") == "deny"


def test_one_file_under_many_names_is_read_once(tmp_path: Path) -> None:
    first = tmp_path / "f0"
    with first.open("wb") as file:
        file.truncate(60 * MiB)
    for number in range(1, 500):
        os.link(first, tmp_path / f"f{number}")
    line = "python3 " + " ".join(f"f{number}" for number in range(500))
    begun = time.monotonic()
    scripts = facts(line, tmp_path).segments[0].scripts
    assert time.monotonic() - begun < 5
    assert len(scripts) == 500
    assert len({identity.sha256 for _, identity in scripts}) == 1
    assert scripts[0][1].sha256 not in {None, "unhashed"}


def test_files_are_read_up_to_a_total_and_what_is_left_unread_is_never_remembered(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"f{number}").write_bytes(bytes([number]) * 1000)
    small = Machine(total_limit=2500)
    three = facts("python3 f0 f1", tmp_path, small)
    entries = judge(three).always.entries
    assert effect(facts("python3 f0 f1", tmp_path, small), *entries, ask="off") == "allow"
    many = facts("python3 f0 f1 f2 f3", tmp_path, small)
    assert [identity.sha256 == "unhashed" for _, identity in many.segments[0].scripts] == [
        False,
        False,
        True,
        True,
    ]
    assert judge(many).always.entries == ()


def test_the_total_counts_over_all_commands_of_a_line_and_their_programs(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"t{number}").write_bytes(bytes([number]) * 1000)
        (tmp_path / f"t{number}").chmod(0o755)
    small = FilesystemResolver(total_limit=2500)
    found = facts("./t0 x; ./t1 x; ./t2 x", tmp_path, small)
    assert [segment.executable is not None for segment in found.segments] == [True, True, False]
    assert effect(found, f"{tmp_path}/t0", f"{tmp_path}/t1", f"{tmp_path}/t2", ask="off") == "deny"
    again = facts("./t2 x", tmp_path, small)
    assert again.segments[0].executable is not None


def test_once_the_time_is_over_nothing_is_looked_at_or_remembered(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1\n")
    late = facts("python3 x.py", tmp_path, Machine(seconds=0))
    assert [identity.sha256 for _, identity in late.segments[0].scripts] != []
    assert judge(late).always.entries == ()
    in_time = judge(facts("python3 x.py", tmp_path)).always.entries
    assert effect(facts("python3 x.py", tmp_path), *in_time, ask="off") == "allow"
    assert effect(late, *in_time, ask="off") == "deny"


def test_more_files_than_are_looked_at_are_never_remembered(tmp_path: Path) -> None:
    line = "tar -cf x " + " ".join(f"f{number}" for number in range(MAX_FILES + 1))
    assert judge(facts(line, tmp_path)).always.entries == ()
    few = "tar -cf x " + " ".join(f"f{number}" for number in range(50))
    assert judge(facts(few, tmp_path)).always.entries


def test_a_file_that_changes_between_two_commands_is_read_anew(tmp_path: Path) -> None:
    resolver = Machine()
    digests = set()
    for text in ("one", "two"):
        (tmp_path / "x.py").write_text(text)
        digests.add(facts("python3 x.py", tmp_path, resolver).segments[0].scripts[0][1].sha256)
    assert len(digests) == 2
