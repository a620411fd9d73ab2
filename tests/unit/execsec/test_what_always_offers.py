"""What Always offers in which place, and neighbours of it that are never admitted by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.execsec.allowlist import admits_nothing
from core.model.allowlist import AllowlistEntry
from core.model.command import Directory, Placement
from tests.shell_world import World, effect, judge, look, policy

SRV = Directory("/srv", 1, 1)


@pytest.mark.parametrize(
    ("said_about", "neighbours"),
    [
        ("rm f", ["rm -rf g", "rm g", "rm -f f", "rm f g", "rm"]),
        ("find . -name x", ["find . -name x -fprintf out %p", "find . -name x -delete", "find . -name y"]),
        ("sort f", ["sort -o g f", "sort -og f", "sort g"]),
        ("git status", ["git -c core.fsmonitor=./x status", "git push"]),
        ("cat a", ["cat b", "cat a a"]),
    ],
)
@pytest.mark.parametrize("placement", [Placement.SANDBOX, Placement.HOST])
def test_always_admits_these_arguments_alone(
    said_about: str, neighbours: list[str], placement: Placement
) -> None:
    entries = judge(said_about, placement=placement).always.entries
    assert effect(said_about, *entries, placement=placement, ask="off") == "allow"
    for line in neighbours:
        assert effect(line, *entries, placement=placement, ask="off") == "deny", line


@pytest.mark.parametrize("line", ["find . -name x", "sort f", "rm f", "git status", "make", "rg x", "cp a b"])
def test_any_arguments_are_not_offered_for_what_does_more_than_read(line: str) -> None:
    offer = judge(line).always
    assert offer.entries
    assert offer.wider == offer.wider_words == ()


def test_any_arguments_admit_the_program_in_the_same_place_alone() -> None:
    wider = judge("ls").always.wider
    assert effect("ls -la /etc", *wider, ask="off") == "allow"
    assert effect(look("ls -la /etc", cwd="/tmp"), *wider, ask="off") == "allow"
    assert effect("ls -la /etc", *wider, ask="off", placement=Placement.HOST) == "deny"
    assert effect("cat /etc/passwd", *wider, ask="off") == "deny"
    assert effect("./ls -la", *wider, ask="off") == "deny"


@pytest.mark.parametrize("placement", [Placement.HOST, Placement.CLIENT])
@pytest.mark.parametrize(
    ("line", "cwd"),
    [
        ("make", "/srv"),
        ("make", "/srv/tools"),
        ("npm test", "/srv"),
        ("python3 -m unittest", "/srv"),
        ("cd /srv && make", "/tmp"),
        ("nice make", "/srv"),
        ("make -C /srv", "/tmp"),
        ("make -C/srv/tools", "/tmp"),
        ("make --directory=/srv", "/tmp"),
        ("make -C ../srv", "/tmp"),
        ("git -C /tmp/../srv status", "/tmp"),
    ],
)
def test_outside_the_sandbox_nothing_is_offered_that_agents_could_make_do_something_else(
    line: str, cwd: str, placement: Placement
) -> None:
    under = replace(policy(placement), workspaces=("/srv",))
    offer = judge(look(line, cwd=cwd), under=under, placement=placement).always
    assert offer.entries == offer.wider == ()
    assert offer.why is not None
    assert offer.why.startswith("agents can write /")
    held = replace(policy(), workspaces=("/srv",))
    assert judge(look(line, cwd=cwd), under=held).always.entries  # in the sandbox they are held


@pytest.mark.parametrize(
    ("line", "cwd"),
    [
        ("make", "/tmp"),
        ("make -C /srv-other", "/tmp"),
        ("make srv", "/tmp"),
        ("rm x", "/srv"),
        ("ls", "/srv"),
        ("cp /srv/a .", "/tmp"),
    ],
)
def test_what_agents_cannot_change_is_offered_outside_the_sandbox(line: str, cwd: str) -> None:
    under = replace(policy(Placement.HOST), workspaces=("/srv",))
    assert judge(look(line, cwd=cwd), under=under, placement=Placement.HOST).always.entries


def test_a_directory_is_said_in_quotes_where_its_name_could_be_read_as_something_else() -> None:
    named = "/srv, on the host"
    world = World(directories={named})
    assert judge(look("make", cwd=named, world=world)).always.words == (
        "exactly `make` in '/srv, on the host', in the sandbox",
    )


LS = AllowlistEntry("/usr/bin/ls", real_path="/usr/bin/ls", agent="main")
MAKE = AllowlistEntry("/usr/bin/make", ("x",), real_path="/usr/bin/make", agent="main")
OLD_OR_NOT = [
    (LS, True),
    (MAKE, True),
    (AllowlistEntry("/srv/run.sh", (), real_path="/srv/run.sh", sha256="a" * 64), True),
    (AllowlistEntry("/srv/ls", ("x",), real_path="/srv/ls", sha256="a" * 64), True),
    (AllowlistEntry("/usr/bin/ls", ("x",), real_path="/usr/bin/ls"), False),
    (AllowlistEntry("/usr/bin/ls", real_path="/usr/bin/ls", any_arguments=True), False),
    (AllowlistEntry("/usr/bin/make", ("x",), real_path="/usr/bin/make", directory=SRV), False),
    (AllowlistEntry("/usr/bin/make", ("x",)), False),
    (AllowlistEntry("/usr/bin/ls"), False),
    (AllowlistEntry("/usr/bin/ls", arg_pattern="x", real_path="/usr/bin/ls"), False),
]


@pytest.mark.parametrize(("entry", "outdated"), OLD_OR_NOT)
def test_what_is_listed_as_admitting_nothing_admits_nothing_and_the_rest_something(
    entry: AllowlistEntry,
    outdated: bool,  # noqa: FBT001 - a parametrised expectation
) -> None:
    assert admits_nothing(entry) is outdated
    name = entry.pattern if entry.pattern.startswith("/srv") else entry.pattern.rpartition("/")[2]
    line = [name.replace("/srv/", "./"), *(("x",) if entry.args != () else ())]
    assert effect(look(line), entry, ask="off") == ("deny" if outdated else "allow")
