"""Places where programs are not what they seem: an answer with a reason, never a traceback, never a yes."""

from __future__ import annotations

import os

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.shell.inspect import inspect
from tests.shell_world import judge


@pytest.fixture
def place(tmp_path):
    """A directory with one good program, `good`."""
    program = tmp_path / "good"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return tmp_path


def judged(line, *, cwd, path):
    command = CommandText(line=line)
    return judge(inspect(command, cwd=str(cwd), path=path, resolver=FilesystemResolver()), "/**", "*")


def rule_of(line, *, cwd="/usr", path=("/usr/bin", "/bin")):
    decision = judged(line, cwd=cwd, path=path).decision
    assert str(decision.effect) == "deny"
    assert decision.reason
    return decision.rule


def test_the_good_program_is_found_so_that_what_follows_is_about_the_places(place):
    assert str(judged("./good x", cwd=place, path=()).decision.effect) != "deny"
    assert str(judged("good x", cwd="/usr", path=(str(place),)).decision.effect) != "deny"


@pytest.mark.parametrize("path", [(), ("",), (".",), ("bin", "./usr/bin", "..")])
def test_an_empty_or_relative_path_finds_nothing_not_even_in_the_working_directory(place, path):
    assert rule_of("good x", cwd=place, path=path) == "exec.not-found"


@pytest.mark.parametrize("cwd", ["/nowhere/at/all", "", "relative", "/usr/bin/env", "/dev/null"])
def test_a_working_directory_that_is_none_finds_nothing(cwd):
    assert rule_of("./good x", cwd=cwd) == "exec.not-found"


def test_a_dangling_link_is_no_program(place):
    (place / "dangling").symlink_to(place / "gone")
    assert rule_of("./dangling x", cwd=place) == "exec.not-found"


def test_a_loop_of_links_is_no_program(place):
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    (place / "self").symlink_to("self")
    assert {rule_of(f"./{name} x", cwd=place) for name in ("a", "b", "self", "a/good")} == {"exec.not-found"}


def test_a_chain_of_too_many_links_is_no_program(place):
    (place / "link0").symlink_to("good")
    for number in range(60):
        (place / f"link{number + 1}").symlink_to(f"link{number}")
    assert rule_of("./link60 x", cwd=place) == "exec.not-found"
    assert str(judged("./link9 x", cwd=place, path=()).decision.effect) != "deny"


def test_a_directory_in_the_place_of_a_program_is_none(place):
    (place / "folder").mkdir(mode=0o755)
    assert rule_of("./folder x", cwd=place) == "exec.not-found"
    assert rule_of("folder x", path=(str(place),)) == "exec.not-found"


def test_a_program_in_the_place_of_a_directory_leads_nowhere(place):
    (place / "up").symlink_to("good/..")
    (place / "in").symlink_to("good/")
    (place / "dot").symlink_to("good/.")
    for name in ("good/x", "good/../good", "good/./x", "up", "up/good", "in", "dot"):
        assert rule_of(f"./{name} x", cwd=place) == "exec.not-found", name
    for name in ("up", "in", "dot"):
        assert FilesystemResolver().file(str(place / name)) is None


def test_a_pipe_or_a_device_in_the_place_of_a_program_is_none(place):
    os.mkfifo(place / "pipe", 0o777)
    assert rule_of("./pipe x", cwd=place) == "exec.not-found"
    assert rule_of("/dev/null x", cwd=place) == "exec.not-found"


def test_a_file_that_may_not_be_executed_is_no_program(place):
    (place / "good").chmod(0o644)
    assert rule_of("./good x", cwd=place) == "exec.not-found"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory")
def test_a_directory_that_may_not_be_entered_hides_its_programs(place):
    closed = place / "closed"
    closed.mkdir()
    (place / "good").rename(closed / "good")
    closed.chmod(0)
    assert rule_of("./closed/good x", cwd=place) == "exec.not-found"
    closed.chmod(0o755)


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000 + "x", "./" + "../" * 2000 + "nonesuch"])
def test_a_name_too_long_for_the_file_system_is_no_program(place, name):
    assert rule_of(f"{name} x", cwd=place) == "exec.not-found"


def test_a_relative_path_is_never_told_from_the_directory_of_the_daemon(place, monkeypatch):
    monkeypatch.chdir(place)
    assert FilesystemResolver().file("good") is None
    assert FilesystemResolver().file(str(place / "good")) is not None


def test_a_link_through_a_directory_that_others_write_to_is_not_trusted(place):
    (place / "bin").symlink_to("/usr/bin")
    found = FilesystemResolver().find(str(place / "bin" / "env"), path=(), cwd="/")
    assert found is not None
    assert found.path == "/usr/bin/env"
    (place / "env").symlink_to("/usr/bin/env")
    place.chmod(0o777)
    through = FilesystemResolver().find(str(place / "env"), path=(), cwd="/")
    assert through is not None
    assert not through.trusted
