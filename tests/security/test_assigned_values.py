"""Assignments: bash evaluates what some variables are set to, so a lone `NAME=value` may run a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.bash_world import BashWorld
from tests.shell_world import effect, judge, look

EVALUATED = [
    "RANDOM='a[$(id)]'", "OPTIND='a[$(id)]'", "SRANDOM='a[$(id)]'", "HISTCMD='a[$(id)]'",
    "RANDOM=a['$('id')']", "RANDOM='a[`id`]'", "A='a[$(id)]'; RANDOM=A", "A='a[$(id)]'; B=A; OPTIND=B",
    "true; RANDOM='a[$(id)]'",
    "bash -c \"RANDOM='a[\\$(id)]'\"",
]  # fmt: skip


@pytest.mark.parametrize("line", EVALUATED)
def test_what_bash_evaluates_is_never_allowed(line: str, tmp_path: Path) -> None:
    assert effect(line, "**", "*", ask="off") == "deny"
    assert judge(line, "**").always.entries == ()
    assert "id" in BashWorld(tmp_path).run(line)


@pytest.mark.parametrize(
    "name", ["RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "SECONDS", "BASHPID", "BASH_ARGV0"]
)
@pytest.mark.parametrize(
    "line", ["{}=1", "{}=1 rg x", "env {}=1 rg x", "A=1 {}=A rg x", "bash -c '{}=1 rg x'", "sh -c '{}=1 :'"]
)
def test_names_that_the_shell_evaluates_ask_in_every_position(name: str, line: str) -> None:
    assert effect(line.format(name), "**", ask="off") == "deny"
    assert effect("rg x", "**", env=[(name, "1")], ask="off") == "deny"


@pytest.mark.parametrize(
    "value",
    [
        "'a[0]'",
        "'a\tb'",
        "'a [b]'",
        "'$(id)'",
        "'`id`'",
        "'x;id'",
        "'(id)'",
        "'!x'",
        "'{x}'",
        "'\\x'",
        "a[0",
        "'é'",
    ],
)
def test_a_name_that_no_table_lists_may_not_be_set_to_an_expression(value: str) -> None:
    for line in (f"ZIG={value}", f"ZIG={value} rg x", f"env ZIG={value} rg x"):
        assert effect(line, "**", ask="off") == "deny"


@pytest.mark.parametrize(
    "value", ["", "1", "a=b", "/srv/x:/y", "http://a.b:1/c,d", "x%20y+z@w-1", "'plain'", "'-O2 -g'"]
)
def test_plain_values_are_still_judged_with_their_command(value: str) -> None:
    for line in (f"ZIG={value}", f"ZIG={value} rg x", f"env ZIG={value} rg x"):
        assert effect(line, "/usr/bin/rg", ask="off") == "allow"
        assert effect(line + "; id", "/usr/bin/rg", ask="off") == "deny"


def test_the_requests_environment_holds_nothing_that_would_run_where_it_is_evaluated() -> None:
    assert effect("rg x", "**", env=[("ZIG", "a[$(id)]")], ask="off") == "deny"
    assert effect("rg x", "**", env=[("ZIG", "a[`id`]")], ask="off") == "deny"
    assert effect("rg x", "**", env=[("GREETING", "good morning (you)")], ask="off") == "allow"


@pytest.mark.parametrize("line", ["bash -c 'A=1'", "sh -c 'A=1; rg x'", "sh -c 'A=1' && rg x"])
def test_a_shell_that_only_assigns_is_judged(line: str) -> None:
    assert look(line).analysable
    assert effect(line, "/usr/bin/rg", ask="off") == "allow"
    assert effect(line + "; id", "/usr/bin/rg", ask="off") == "deny"


def test_a_shell_that_changes_only_itself_leaves_the_directory_known() -> None:
    assert [segment.cwd for segment in look("bash -c 'set -x'; rg x").segments] == ["/srv", "/srv"]
    assert [segment.cwd for segment in look("set -x; rg x").segments] == ["/srv", None]
