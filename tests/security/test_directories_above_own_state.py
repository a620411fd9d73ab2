"""On the host, nothing goes through a directory in which Sayso's own state lies unless a person says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import Config
from core.execsec.decide import decide
from core.execsec.policy import effective
from core.execsec.real_paths import with_own_state
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import Placement
from core.model.decision import Decision, Effect, Obligation
from core.shell.inspect import inspect
from tests.shell_world import Machine


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "h"
    (home / ".sayso").mkdir(parents=True)
    (home / "ws" / "sub").mkdir(parents=True)
    (home / "ws" / "notes").write_text("n")
    (home / "ws" / "up").symlink_to("..")
    (home / "ws" / "beside").symlink_to("sub")
    return home


def decided(
    line: str, cwd: Path, home: Path, placement: Placement = Placement.HOST, **settings: str
) -> Decision:
    resolver = Machine()
    data = {"tools": {"exec": {"security": "allowlist", "ask": "on-miss", **settings}}}
    state = str(home / ".sayso")
    policy = effective(
        Config.model_validate(data), "main", placement, home=str(home), protected_paths=(state,)
    )
    facts = inspect(CommandText(line=line), cwd=str(cwd), path=("/usr/bin",), resolver=resolver)
    facts = with_own_state(facts, resolver, policy, placement)
    listed = (
        AllowlistEntry("/usr/bin/*", source="test", placement=placement),
        *(
            AllowlistEntry(f"/usr/bin/{program}", arg_pattern=".*", source="test", placement=placement)
            for program in ("git", "awk", "sed")
        ),
    )
    return decide(facts, policy, listed, placement, env=(), seen_before=True).decision


def shown(decision: Decision) -> str:
    return str(decision.effect) if decision.effect is Effect.ALLOW else decision.rule


NAMES_ABOVE = [
    "mv ../../h ../../h2; cat ../../h2/.sayso/token", "rm -rf ..", "chmod -R 777 ..", "cp -r .. ../../h3",
    "grep -r . ..", "grep -ir . ..", "grep --recursive . ..", "grep -drecurse x ..", "ls -R ..",
    "ls -laR ../", "ls --recursive ..", "rg -uu token ..", "find .. -name x", "du -a ..", "diff -r .. sub",
    "rm -rf /", "rg x /", "find //", "rm -rf up", "rg x up/", "cp -rt.. sub",
    "cp -r --target-directory=.. x", "ln -s .. up2", "mv x ..", "rm -rf sub/../..", "sh -c 'rm -rf ..'",
    "nice rm -rf ..", "grep -r x /proc", "grep -r x /proc/1", "rg x /proc/self", "rg x /proc/1/task",
    "cd sub; rm -rf ../..", "rg x / src", "rg -e x /", "rg --files /", "rg -f notes /", "rg --pretty --x y /",
    "rg -tpy -- x /", "cp -rt/ sub/.", "cp -r --target-directory=/ sub", "chmod -R 777 /.", "find -name x /",
    "git add /", "git add 'a b/../../'", "git -C.. status", "awk -f notes ..", "awk 1 -F ..", "sed -n p ..",
    "git log '--output=x y,..'", "grep -re x ..",
]  # fmt: skip
RUNS_ABOVE = [
    "rg x", "rg --hidden x src", "find -name x", "du -a", "grep -r x", "ls -R", "git status",
]  # fmt: skip
UNDISTURBED_BELOW = [
    "rm -rf sub", "rm -rf ../ws", "chmod -R 777 .", "cp -r sub sub2", "grep -r . .", "grep -r . ../ws",
    "ls ..", "ls -la ..", "stat ..", "readlink -f ..", "realpath ..", "mkdir -p ../x", "touch ..", "cat ..",
    "cat notes", "head -n1 ..", "cut -d/ -f1 notes", "tr / _", "sort -t/ -k1 notes", "echo ..",
    "test -d ..", "cd .. && pwd", "rg -uu token", "rg -uu token beside", "find . -name x", "du -a",
    "git status", "grep x ..", "rg x ../wsx", "rg a..b notes", "rg x ../.saysox", "rm -rf /srv",
    "awk -F/ '{print $NF}' notes", "awk -F / 1 notes", "awk '/./' notes", "sed -n '/./p' notes",
    "sed -i -e /../d notes", "rg / sub", "rg '/*' sub", "rg .. sub", "rg -n -F / sub", "rg -g '/*' x sub",
    "rg --max-depth 2 .. sub", "grep -r .. sub", "grep -rne / sub", "grep --include=/ -r x sub",
    "git commit -m fix:/", "git commit -m 'in ~,.. and /, x'", "git commit -m 'fix: / x'",
    "git commit -m 'see .., x'", "rg x /proc/mounts", "grep x / notes", "jq . notes", "ls --reverse sub",
]  # fmt: skip
UNDISTURBED_ABOVE = [
    "ls", "ls -la", "cat notes", "cp a b", "mv a b", "rm a", "diff a b", "grep x ws/notes", "mkdir x",
    "ln -s a b", "pwd", "whoami", "echo x", "chmod 600 a", "sort ws/notes", "rm -rf ws", "cd ws && rg x",
    "head ws/notes",
]  # fmt: skip


@pytest.mark.parametrize("line", NAMES_ABOVE)
def test_a_word_that_names_a_directory_above_the_state_asks(line: str, home: Path) -> None:
    decision = decided(line, home / "ws", home)
    assert (decision.effect, decision.rule) == (Effect.ASK, "exec.own-state")
    assert decision.obligations >= {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}
    assert "name a directory below" in decision.reason


@pytest.mark.parametrize("line", RUNS_ABOVE)
def test_what_looks_around_in_a_directory_above_the_state_asks(line: str, home: Path) -> None:
    for cwd in (home, home.parent):
        decision = decided(line, cwd, home)
        assert (decision.effect, decision.rule) == (Effect.ASK, "exec.own-state")
        assert decision.obligations >= {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}
        assert str(cwd) in decision.reason


def test_where_a_line_goes_counts(home: Path) -> None:
    assert shown(decided("cd .. && rg x", home / "ws", home)) == "exec.own-state"
    assert shown(decided("cd ..; rg x", home / "ws", home)) == "exec.own-state"
    assert shown(decided("cd ws; rg x", home, home)) == "exec.own-state"  # the `cd` may fail
    assert shown(decided("cd ws && rg x", home, home)) == "allow"
    assert shown(decided("rg x", Path("/proc/1"), home)) == "exec.own-state"


@pytest.mark.parametrize("line", UNDISTURBED_BELOW)
def test_below_the_state_s_directory_the_list_decides(line: str, home: Path) -> None:
    assert shown(decided(line, home / "ws", home)) == "allow"


@pytest.mark.parametrize("line", UNDISTURBED_ABOVE)
def test_what_only_works_on_its_operands_may_run_above_the_state(line: str, home: Path) -> None:
    assert shown(decided(line, home, home)) == "allow"


def test_beside_the_state_nothing_changes(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "project"
    other.mkdir(parents=True)
    for line in ("rm -rf ..", "rg x", "grep -r x ..", "git status"):
        assert shown(decided(line, other, home)) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf ..",
        "rm -rf ~",
        "rm -rf ~/ws/..",
        "rm -rf ../../h*",
        "rg x $HOME",
        "rm -rf $PWD/..",
        "rm -rf ~+/..",
        "rm -rf ${PWD}/../../[h]",
    ],
)
def test_full_security_asks_about_what_names_a_directory_above_though_nobody_is_asked_else(
    line: str, home: Path
) -> None:
    decision = decided(line, home / "ws", home, security="full", ask="off")
    assert (decision.effect, decision.rule) == (Effect.ASK, "exec.own-state")


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf .",
        "rm -rf ~/ws",
        "rm -rf ../../i*",
        "ls ..",
        "rg x",
        "python3 x.py",
        "rm -rf $PWD",
        "rm -rf $X/..",
        "rm -rf ~+/sub",
    ],
)
def test_full_security_lets_everything_else_run(line: str, home: Path) -> None:
    assert shown(decided(line, home / "ws", home, security="full", ask="off")) == "allow"


def test_full_security_does_not_ask_because_of_where_a_command_runs(home: Path) -> None:
    assert shown(decided("python3 ws/x.py", home, home, security="full", ask="off")) == "allow"
    assert shown(decided("python3 ws/x.py", home, home, security="full")) == "exec.own-state"


def test_where_nobody_is_asked_it_is_denied(home: Path) -> None:
    decision = decided("rm -rf ..", home / "ws", home, ask="off")
    assert (decision.effect, decision.rule) == (Effect.DENY, "exec.own-state")


def test_the_agent_s_own_program_is_held_to_it_and_the_sandbox_hides_the_state_itself(home: Path) -> None:
    assert shown(decided("rm -rf ..", home / "ws", home, Placement.CLIENT)) == "exec.own-state"
    assert shown(decided("rm -rf ..", home / "ws", home, Placement.SANDBOX)) == "allow"


def test_a_program_that_others_could_change_is_not_believed_by_its_name(home: Path) -> None:
    assert shown(decided("/tmp/cut -d/ -f1 x", home / "ws", home)) == "exec.own-state"
    assert shown(decided("/usr/bin/cut -d/ -f1 x", home / "ws", home)) == "allow"
