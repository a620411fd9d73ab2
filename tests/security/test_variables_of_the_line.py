"""What a line sets, or takes away, before a command that may take from it what it runs."""

from __future__ import annotations

import pytest

from core.model.allowlist import AllowlistEntry
from tests.shell_world import World, effect, judge, look

EQUALS = World(
    files={"/srv/x=y/ls", "/srv/x=y/node_modules/.bin/tool", "/srv/xy/ls", "/srv/xy/node_modules/.bin/tool"},
    links={"/srv/x=y/ls": "/usr/bin/ls", "/srv/xy/ls": "/usr/bin/ls"},
    directories={"/", "/srv", "/srv/x=y", "/srv/xy"},
)
MAKE = AllowlistEntry("/usr/bin/make", ("clean",), source="test")


@pytest.mark.parametrize(
    "line",
    [
        "cd {} && env ./ls ./evil",
        "cd {} && nice env ./ls ./evil",
        "cd {} && env LC_ALL=C ./ls ./evil",
        "cd {} && env npx tool ./evil",
        "cd {} && sh -c 'env ./ls ./evil'",
    ],
)
def test_a_path_that_env_would_take_for_an_assignment_is_not_looked_through(line: str) -> None:
    entries = ("/usr/bin/ls", "/srv/xy/ls", "/srv/x=y/ls", "/srv/x=y/node_modules/.bin/tool")
    worse = look(line.format("x=y"), world=EQUALS)
    assert effect(worse, *entries, ask="off") == "deny"
    judged = judge(worse, *entries)
    assert judged.always.entries == ()
    assert judged.decision.rule == "exec.carrier"
    plain = look(line.format("xy"), world=EQUALS)
    assert effect(plain, *entries, "/srv/xy/node_modules/.bin/tool", ask="off") == "allow"


def test_a_path_with_an_equals_sign_is_no_assignment_to_other_wrappers() -> None:
    found = look("cd x=y && nice timeout 5 ./ls a", world=EQUALS)
    assert effect(found, "/srv/x=y/ls", ask="off") == "allow"
    assert effect(look("cd x=y && ./ls a", world=EQUALS), "/srv/x=y/ls", ask="off") == "allow"


CHANGES = [
    "RM=/x/evil; make clean",
    "RM=/x/evil\nmake clean",
    "true && RM=/x/evil && make clean",
    "false || RM=/x/evil; make clean",
    "RM=/x/evil :; make clean",
    "sh -c 'RM=/x/evil; make clean'",
    "sh -c 'RM=/x/evil :; make clean'",
    "RM=/x/evil; sh -c 'make clean'",
    "RM=/x/evil; nice make clean",
    "RM=echo; RM=/x/evil; make clean",
    "RM=/x/evil & make clean",
    "export RM=/x/evil; make clean",
    "declare -x RM=/x/evil; make clean",
    "printf -v RM /x/evil; make clean",
    "read RM; make clean",
]


@pytest.mark.parametrize("line", CHANGES)
def test_an_assignment_before_the_command_counts_as_one_of_its_own(line: str) -> None:
    learned = judge("make clean", env=[("RM", "echo")]).always.entries
    assert effect("make clean", *learned, env=[("RM", "echo")], ask="off") == "allow"
    assert effect(line, *learned, env=[("RM", "echo")], ask="off") == "deny"
    assert effect(line, MAKE, ask="off") == "deny"
    assert effect(line.replace("RM", "USER"), MAKE, ask="off") == "deny"


@pytest.mark.parametrize(
    "line", ["RM=echo sh -c 'RM=/x/evil; make clean'", "env RM=echo bash -c 'RM=/x/evil && make clean'"]
)
def test_what_a_shell_sets_inside_counts_over_what_it_was_given(line: str) -> None:
    learned = judge("RM=echo make clean").always.entries
    assert effect("RM=echo sh -c 'make clean'", *learned, ask="off") == "allow"
    assert effect(line, *learned, ask="off") == "deny"


@pytest.mark.parametrize(
    "line",
    ["make clean; RM=/x/evil", "LC_ALL=C; make clean", "true; make clean", "sh -c 'RM=/x/evil'; make clean"],
)
def test_what_is_set_behind_it_or_in_another_shell_hinders_nothing(line: str) -> None:
    assert effect(line, MAKE, "/usr/bin/sh", ask="off") == "allow"
    assert effect(line + "; make all", MAKE, ask="off") == "deny"


def test_an_ordinary_program_is_admitted_behind_an_assignment() -> None:
    assert effect("A=1; rg x", "/usr/bin/rg", ask="off") == "allow"
    assert effect("A=1; make x", "/usr/bin/rg", ask="off") == "deny"


def test_a_line_that_sets_before_is_remembered_with_exactly_that() -> None:
    offered = judge("RM=echo; make clean").always
    assert "RM (before it) is set as now" in offered.words[0]
    assert effect("RM=echo; make clean", *offered.entries, ask="off") == "allow"
    for other in ("RM=echo make clean", "RM=x; make clean", "make clean", "RM=echo; A=1; make clean"):
        assert effect(other, *offered.entries, ask="off") == "deny"


@pytest.mark.parametrize("options", ["-u RM", "--unset=RM", "-i", "-", "-iu RM"])
def test_what_env_takes_away_is_not_set_as_it_was(options: str) -> None:
    learned = judge("RM=echo make clean").always.entries
    assert effect("RM=echo env make clean", *learned, ask="off") == "allow"
    assert effect("env RM=echo make clean", *learned, ask="off") == "allow"
    assert effect(f"RM=echo env {options} make clean", *learned, ask="off") == "deny"
    assert effect(f"env {options} make clean", MAKE, ask="off") == "deny"


TAKES_AWAY = ["env -i", "env -", "env -u PATH", "env --unset=PATH", "env -iu X", "nice env -i", "env --"]
TAKES = ["make clean", "bash run.sh", "./run.sh", "python3 run.sh", "zgrep x a", "unheard-of x"]


@pytest.mark.parametrize("before", TAKES_AWAY)
@pytest.mark.parametrize("line", TAKES)
def test_nothing_may_be_taken_away_from_a_learned_command_where_nothing_is_set(
    line: str, before: str
) -> None:
    entries = judge(line).always.entries
    assert effect(line, *entries, ask="off") == "allow"
    assert effect(f"env {line}", *entries, ask="off") == "allow"
    for worse in (f"{before} {line}", f"{before} nice {line}", f"sh -c '{before} {line}'"):
        assert effect(worse, *entries, ask="off") == "deny"
        own = judge(worse).always
        assert not own.entries or "what `env` leaves is set as now" in own.words[0]


@pytest.mark.parametrize("before", TAKES_AWAY)
def test_from_a_program_that_loads_nothing_variables_may_be_taken_away(before: str) -> None:
    assert effect(f"{before} rg x", *judge("rg x").always.entries, ask="off") == "allow"
    assert effect(f"{before} rg x", *judge("rg y").always.entries, ask="off") == "deny"
    assert effect(f"{before} ls x", *judge("ls y").always.wider, ask="off") == "allow"
    assert effect(f"{before} rg x", "/usr/bin/rg", ask="off") == "allow"
    assert effect(f"{before} unheard-of x", "/usr/bin/unheard-of", ask="off") == "deny"


@pytest.mark.parametrize(
    ("line", "worse"),
    [
        ("env MYRM=/x/evil RMX=1 env - make clean", "env - MYRM=/x/evil RMX=1 make clean"),
        ("env A=1 env -i make clean", "env -i A=1 make clean"),
        ("A=1 env -i make clean", "env -i sh -c 'A=1 make clean'"),
        ("A=1 env -i sh -c 'B=1 make clean'", "env -i sh -c 'A=1 B=1 make clean'"),
        ("A=1; env -i make clean", "env -i sh -c 'A=1; make clean'"),
        ("A=1; sh -c 'A=2 make clean'", "A=2 sh -c 'A=1; make clean'"),
        ("env -u B env -u A make clean", "env -u A env -u B make clean"),
        ("env -u A B=1 make clean", "env B=1 env -u A make clean"),
        ("A=1 env -i sh -c 'make clean; A=1 make clean'", "env -i sh -c 'make clean; A=1 make clean'"),
    ],
)
def test_the_order_in_which_variables_are_set_and_taken_away_counts(line: str, worse: str) -> None:
    entries = judge(line).always.entries
    assert effect(line, *entries, ask="off") == "allow"
    assert effect(worse, *entries, ask="off") == "deny"
    others = judge(worse).always.entries
    assert effect(worse, *others, ask="off") == "allow"
    assert effect(line, *others, ask="off") == "deny"


@pytest.mark.parametrize(
    "line", ["env CI=1 make clean", "CI=1 make clean", "env make clean", "nice make clean"]
)
def test_an_env_that_takes_nothing_away_changes_nothing(line: str) -> None:
    assert effect(line, MAKE, *judge("make clean").always.entries, ask="off") == "allow"
    assert effect(line.replace("env", "env -i").replace("nice", "env -i nice"), MAKE, ask="off") == (
        "allow" if line.startswith("CI") else "deny"
    )
