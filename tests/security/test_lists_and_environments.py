"""On the host, what reads files that nobody sees named, or prints environments, is put to a person."""

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


def decided(line: str, home: Path, placement: Placement = Placement.HOST, **settings: str) -> Decision:
    (home / ".sayso").mkdir(exist_ok=True)
    (home / "ws").mkdir(exist_ok=True)
    (home / "ws" / "notes").write_text("n")
    resolver = Machine()
    data = {"tools": {"exec": {"security": "allowlist", "ask": "on-miss", **settings}}}
    own = (str(home / ".sayso"),)
    policy = effective(Config.model_validate(data), "main", placement, home=str(home), protected_paths=own)
    facts = inspect(CommandText(line=line), cwd=str(home / "ws"), path=("/usr/bin",), resolver=resolver)
    facts = with_own_state(facts, resolver, policy, placement)
    listed = [AllowlistEntry("/usr/bin/*", source="test", placement=placement)]
    listed += [
        AllowlistEntry(f"/usr/bin/{program}", arg_pattern=".*", source="test", placement=placement)
        for program in ("tar", "rsync")
    ]
    return decide(facts, policy, tuple(listed), placement, env=(), seen_before=True).decision


def shown(decision: Decision) -> str:
    return str(decision.effect) if decision.effect is Effect.ALLOW else decision.rule


UNNAMED = [
    r"printf '../.say%s/token\0' so | sort --files0-from=-", "wc --files0-from=-", "wc --files0-from list",
    "wc --fil=-", "sort --f list", "du --files0-from=list", "find -files0-from list", "file -f -",
    "file -bf list", "file -flist", "file --files-from list", "file --files list", "tar cf x.tar -T -",
    "tar -cTf list x.tar", "tar cf x --files-from=l", "rsync -a --files-from=l . sub",
    "nice wc --files0-from=-",
]  # fmt: skip
NAMED = [
    "sort notes", "wc -l notes", "wc --lines notes", "du -sh .", "find . -name x", "file notes",
    "file -b notes", "grep -f notes notes", "rg -f notes notes", "tar cf x.tar notes", "rsync -a notes sub",
    "sort -f notes", "sort --field-separator=, notes", "head --files0-from=-", "grep --file=notes notes",
]  # fmt: skip
PRINTS = [
    "printenv", "printenv HOME", "ps e", "ps axe", "ps axeww", "ps auxe", "ps auxeww", "ps -auxe",
    "ps -axe", "ps -eux", "ps -efx", "ps -e -x", "ps -e -a -x", "ps -x -u ae", "ps -N ae", "ps -p 1 e",
    "ps 1 e", "ps -eo pid,environ", "ps -o environ", "ps axo pid,environ", "ps --format=environ",
    "ps -C x e", "nice ps e", "ps -e x",
]  # fmt: skip
PRINTS_NONE = [
    "ps", "ps aux", "ps -aux", "ps ax", "ps -ef", "ps -efww", "ps -e", "ps -elf", "ps -eLf",
    "ps -eo pid,cmd", "ps -e -o pid,user,etime", "ps -eo pid,etime --sort=-etime", "ps axo pid,etime,cmd",
    "ps aux --sort=-%mem", "ps -p 1", "ps -p 1 -o comm=", "ps -C node", "ps -u peter", "ps 1",
    "ps -ef --forest", "ps --no-headers -eF", "echo e", "pgrep -a e", "ps -o pid,etime -p 1",
]  # fmt: skip


@pytest.mark.parametrize("line", UNNAMED)
def test_what_takes_the_names_of_files_from_elsewhere_asks(line: str, tmp_path: Path) -> None:
    decision = decided(line, tmp_path)
    assert (decision.effect, decision.rule) == (Effect.ASK, "exec.unnamed-files")
    assert decision.obligations >= {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}
    assert "name them in the command" in decision.reason


@pytest.mark.parametrize("line", PRINTS)
def test_what_prints_environments_asks(line: str, tmp_path: Path) -> None:
    decision = decided(line, tmp_path)
    assert (decision.effect, decision.rule) == (Effect.ASK, "exec.prints-environment")
    assert decision.obligations >= {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}


@pytest.mark.parametrize("line", [*NAMED, *PRINTS_NONE])
def test_the_others_are_judged_by_the_list(line: str, tmp_path: Path) -> None:
    assert shown(decided(line, tmp_path)) == "allow"


@pytest.mark.parametrize("line", ["wc --files0-from=-", "printenv", "ps e"])
def test_the_sandbox_hides_state_and_environments_itself(line: str, tmp_path: Path) -> None:
    assert shown(decided(line, tmp_path, Placement.SANDBOX)) == "allow"
    assert shown(decided(line, tmp_path, Placement.CLIENT)) != "allow"
    assert shown(decided(line, tmp_path, security="full", ask="off")) == "allow"
    assert decided(line, tmp_path, ask="off").effect is Effect.DENY
