"""On the host, a line that could make a link and then go through it is put to a person."""

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
    (home / ".sayso" / "token").write_text("secret")
    (home / "ws" / "sub").mkdir(parents=True)
    for name in ("notes", "other", "sub/file"):
        (home / "ws" / name).write_text("n")
    (home / "ws" / "dang").symlink_to("../../.sayso")
    (home / "ws" / "sub" / "dang").symlink_to("../.sayso")
    (home / "ws" / "sub" / "notes").symlink_to("../.sayso/token")
    return home


EXACT = [
    ("git", "add", "."), ("git", "commit", "-m", "x"), ("git", "pull"), ("tar", "xf", "x.tar"),
    ("git", "add", "notes"), ("git", "commit", "-m", "Fix core/shell parsing"),
    ("git", "checkout", "-b", "f/x"), ("git", "push", "-u", "origin", "f/x"), ("git", "stash"),
    ("git", "stash", "pop"), ("git", "log"), ("python3", "-m", "black", "."), ("python3", "-m", "pytest"),
    ("npm", "run", "lint"), ("sed", "-i", "s/a/b/", "notes"), ("rsync", "-a", "sub/", "."),
    ("python3", "x.py"), ("sed", "s/a/b/", "notes"), ("tee", "x/y"),
]  # fmt: skip


def decided(
    line: str,
    cwd: Path,
    placement: Placement = Placement.HOST,
    state: Path | None = None,
    **settings: str,
) -> Decision:
    resolver = Machine()
    home = state.parent if state else cwd if cwd.name == "h" else cwd.parent
    data = {"tools": {"exec": {"security": "allowlist", "ask": "on-miss", **settings}}}
    config = Config.model_validate(data)
    own = (str(home / ".sayso"),)
    policy = effective(config, "main", placement, home=str(home), protected_paths=own)
    facts = inspect(CommandText(line=line), cwd=str(cwd), path=("/usr/bin",), resolver=resolver)
    facts = with_own_state(facts, resolver, policy, placement)
    listed = [AllowlistEntry("/usr/bin/*", source="test", placement=placement)]
    listed += [
        AllowlistEntry(f"/usr/bin/{program}", args=tuple(args), source="test", placement=placement)
        for program, *args in EXACT
    ]
    return decide(facts, policy, tuple(listed), placement, env=(), seen_before=True).decision


def shown(decision: Decision) -> str:
    return str(decision.effect) if decision.effect is Effect.ALLOW else decision.rule


MAKES_A_LINK = [
    "mv dang sub/dang2 && cat sub/dang2/token", "mv sub/dang dang2 && cat dang2",
    "mv sub/dang dang2; cat dang2", "mv sub/dang dang2 | cat dang2", "mv sub/dang dang2 & cat dang2",
    "cat dang2 & mv sub/dang dang2", "sleep 1 && cat dang2 && true & mv sub/dang dang2",
    "sleep 1 | cat dang2/x | mv sub/dang dang2", "mv sub/dang dang2 && mkdir x && cat dang2",
    "cp -a sub/. . && cat dang3", "cp -a sub/. . && cat other", "cp -R sub other2 && cat other2/dang/token",
    "cp -d sub/dang dang2 && cat dang2", "cp --archive sub/. . && cat dang3", "cp -rt . sub/. && cat other",
    "cp -r sub s2 && cat x/token", "tar xf x.tar && cat dang3/token", "tar xf x.tar && cat dang3",
    "git pull && cat l", "rsync -a sub/ . && grep -f l notes", "python3 x.py && cat l", "stow x && cat l",
    "mv -f sub/notes notes && cat notes", "rm -r sub; mv x sub; cat sub/file",
    "mv x sub && cd sub && cat file", "ln -s ../x l2 && cat --file=l2/token",
    "ln -s ../x l2 && sort -uol2/token notes", "ln -s ../x l2; cat -fl2",
    "sh -c 'ln -s ../x l2 && cat l2/token'", "nice ln -s ../x l2 && nice cat l2/token",
    "ln -s -- ../x -l && cat -- -l/token", "ln -s ../l2/ && cat l2", "link notes l2 && cat l2",
    "/tmp/cut x && cat l", "git pull && jq -11 l", "git pull && cat src/new", "git pull | grep -e -A l",
    "git pull && head -- -n l", "git pull && grep -f l notes", "git pull && grep -f -A l",
    "git pull && grep --fil=l notes", "git pull && grep -ne x l", "git pull && jq --slurpfile l l . notes",
    "git pull && find l -name x", "git pull && sort -ol notes -T x/y", "git pull && tail -n 5 l",
    "mv notes n2 && column n2",
]  # fmt: skip
NEAR = [
    "mkdir -p out && cp other out/b", "mkdir -p out; ls out/x", "touch a/b && cat a/b",
    "cp notes x && cat x", "cp -p notes x/y && cat x/y", "cp -f --verbose notes x && cat x",
    "rm -rf x && cat x/y", "tee x/y | cat x/y", "sort notes | tee x/y", "cat notes | grep a/b",
    "cat x/y && ln -s other l2", "git add . && git commit -m x", "git pull && cat notes",
    "mv notes n2 && cat other", "mv notes n2 && cat sub/file", "cp -r sub s2 && cat other",
    "ln -s other l2 && echo l2 a/b", "mv notes n2 && pwd", "ln -s other l2 && cd sub && ls", "cat dang9/x",
    "ln -s other l2 && ls -la", "tar xf x.tar && ls -la", "tar xf x.tar && cat notes",
    "chmod 600 n && cat n/x", "mv notes n2; A=n2", "find . -name x && cat x/y", "git pull && ls sub",
    "ln -s other l2", "ln -s a b && sed s/a/b/ notes",
    'git add . && git commit -m "Fix core/shell parsing"', "git checkout -b f/x && git push -u origin f/x",
    "git stash && git stash pop", "git add notes && git stash", "npm run lint && npm run lint",
    "python3 -m black . && python3 -m pytest", "sed -i s/a/b/ notes && cat notes",
    "mv notes n2 && git add .", "mv notes n2 && rg tok", "git pull && grep -r tok .",
    "git pull && find . -type l", "git pull && du -sh .", "git pull && diff -u notes other",
    "mkdir n && grep -R tok .", "git log | grep fix", "git log | grep -n -A 3 fix/x",
    "git log | tail -n 20", "git log | head -20", "git log | sort -k 2", "git log | cut -d / -f 1",
    "git log | tr / _", "git log | jq .a/.b", "git log | rg -i --max-count 3 a/b", "git log | uniq -f 1",
    "git pull && find . -name x", "git log | grep --color=auto -e a/b -e x", "git add notes && cat notes",
]  # fmt: skip


@pytest.mark.parametrize("line", MAKES_A_LINK)
def test_a_word_that_a_command_before_could_make_a_link_asks(line: str, home: Path) -> None:
    decision = decided(line, home / "ws")
    assert (decision.effect, decision.rule) == (Effect.ASK, "exec.changeable")
    assert decision.obligations >= {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}


def test_the_reason_names_the_word_and_the_next_step(home: Path) -> None:
    reason = decided("ln -s ../x l2 && cat l2/token", home / "ws").reason
    assert "`l2/token`" in reason
    assert "a command before it could make" in reason
    assert "in a call of its own" in reason


@pytest.mark.parametrize(
    "line", ["ln -s .. up && cat up/.sayso/token", "ln -s ../.sayso ws/l2 && cat ws/l2/token"]
)
def test_from_above_the_state_a_link_to_it_is_never_just_made_and_read(line: str, home: Path) -> None:
    assert decided(line, home).effect is not Effect.ALLOW


@pytest.mark.parametrize("line", NEAR)
def test_what_makes_no_link_for_the_others_is_judged_by_the_list(line: str, home: Path) -> None:
    assert shown(decided(line, home / "ws")) == "allow"


@pytest.mark.parametrize("line", ["mv sub/dang dang && cat dang/token", "mv sub/dang dang2 && cat dang2"])
def test_the_sandbox_hides_the_state_so_links_are_no_matter(line: str, home: Path) -> None:
    assert shown(decided(line, home / "ws", Placement.SANDBOX)) == "allow"
    assert shown(decided(line, home / "ws", Placement.CLIENT)) != "allow"


def test_where_nobody_is_asked_it_is_denied(home: Path) -> None:
    decision = decided("mv sub/dang dang2 && cat dang2", home / "ws", ask="off")
    assert (decision.effect, decision.rule) == (Effect.DENY, "exec.changeable")


MERGES = [
    "cp -a a/sub .. && cat file", "cp -r a/sub .. && cat file", "cp -R a/sub .. && cat file",
    "cp -dr a/sub ..; cat file", "cp -Pr a/sub .. | cat file", "cp --archive a/sub .. && cat file",
    "cp --recursive --force a/sub .. && cat file", "cp -vra a/sub ../ && cat file",
    "cp -a a/sub/ .. && cat file", "cp -aS x a/sub .. && cat file", "cp -aS a/sub .. x && cat file",
    "cp --arch a/sub .. && cat file", "cp -aT a/sub . && cat file",
    "cp -a --no-target-directory a/sub . && cat file", "cp -at .. a/sub && cat file",
    "cp -a a/sub ../../ws && cat file", "cp -a a/sub a/dang .. && cat file",
    "cp -d a/sub/file . && cat file", "cp -a -- a/sub .. && cat file", "cp -a a/sub .. && cd . && cat file",
    "cp -a a/sub .. && head -n1 file", "cp -a a/s? .. && cat file",
    "mv ../sub ../sub3 && cp -a a/sub3 .. && cat file", "cd . ; cp -a a/sub .. ; cat file",
]  # fmt: skip
COPIES_BESIDE = [
    "cp -a a/sub ../x && cat file", "cp -r a/sub new && cat file", "cp -a a/other .. && cat file",
    "cp -a a .. && cat file", "cp -r a/sub a/x && cat file", "cp -a a/sub .. && pwd",
    "cp a/sub/file a && cat file", "mkdir -p ../x && cp -r a/sub ../x && cat file",
    "cp -r a/sub b && ls -la",
]  # fmt: skip


@pytest.fixture
def sub(home: Path) -> Path:
    sub = home / "ws" / "sub"
    (sub / "a" / "sub").mkdir(parents=True)
    (sub / "a" / "sub" / "file").symlink_to("../.sayso/token")
    return sub


def decided_in(sub: Path, line: str) -> Decision:
    return decided(line, sub, state=sub.parent.parent / ".sayso")


@pytest.mark.parametrize("line", MERGES)
def test_a_tree_copied_over_the_directory_of_its_name_may_replace_every_file(line: str, sub: Path) -> None:
    assert shown(decided_in(sub, line)) == ("exec.not-literal" if "?" in line else "exec.changeable")


@pytest.mark.parametrize("line", COPIES_BESIDE)
def test_a_tree_copied_where_nothing_of_its_name_is_replaces_nothing(line: str, sub: Path) -> None:
    assert shown(decided_in(sub, line)) == "allow"


def test_in_calls_of_their_own_links_are_followed(home: Path) -> None:
    assert shown(decided("mv sub/dang dang2", home / "ws")) == "allow"
    (home / "ws" / "sub" / "dang").rename(home / "ws" / "dang2")
    assert shown(decided("cat dang2/token", home / "ws")) == "exec.deny-own-state"


@pytest.mark.parametrize("line", ["python3 x.py && cp notes x.py & true", "python3 x.py | cp notes x.py"])
def test_a_script_in_the_background_is_beside_what_follows(line: str, home: Path) -> None:
    assert shown(decided(line, home / "ws")) == "exec.changeable"
