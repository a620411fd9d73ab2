"""A `cd` that is skipped, or that fails, must not move the directory that a command is judged in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.shell.inspect import inspect
from core.shell.render import run_argv
from core.shell.scripts import with_scripts
from tests.shell_world import STATE, World, effect, judge, look


class Places:
    """Two directories with a script of one name, the good one learned."""

    def __init__(self, root: Path) -> None:
        self.good, self.bad = root / "good", root / "bad"
        for place, says in ((self.good, "GOOD"), (self.bad, "EVIL")):
            place.mkdir()
            (place / "x.py").write_text(f"print('{says}')\n")
        self.learned = judge(self.facts("python3 x.py", self.good)).always.entries
        assert effect(self.facts("python3 x.py", self.good), *self.learned) == "allow"

    def facts(self, line: str, cwd: Path | None = None) -> CommandFacts:
        resolver = FilesystemResolver()
        asked = CommandText(line=line.format(good=self.good, bad=self.bad))
        path = ("/usr/bin", "/bin")
        found = inspect(asked, cwd=str(cwd or self.bad), path=path, resolver=resolver)
        return with_scripts(found, resolver, path)

    def effect(self, line: str) -> str:
        return effect(self.facts(line), *self.learned, "/usr/bin/rg", ask="off")

    def output(self, line: str) -> str:
        facts = self.facts(line)
        ran = subprocess.run(run_argv(facts), cwd=self.bad, capture_output=True, text=True, check=False)
        return ran.stdout


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "true || cd {good} && python3 x.py",
        "false && true || cd {good} && python3 x.py",
        "echo || cd {good} && python3 x.py",
        "true || cd {good}; python3 x.py",
        "cd {bad}; true || cd {good} && python3 x.py",
        "true || true && cd {good}; python3 x.py",
        "bash -c 'true || cd {good} && python3 x.py'",
        "cd {good}/missing; python3 x.py",
    ],
)
def test_a_cd_that_is_skipped_moves_nothing(places: Places, line: str) -> None:
    assert places.effect(line) == "deny"
    judgement = judge(places.facts(line))
    assert judgement.decision.rule == "exec.cwd-unknown"
    assert judgement.always.entries == ()


@pytest.mark.parametrize(
    "line",
    [
        "cd {good}; python3 x.py",
        "cd {good}\npython3 x.py",
        "cd {good} && true; python3 x.py",
        "cd {good}; bash -c 'python3 x.py'",
        "bash -c 'cd {good}; python3 x.py'",
        "cd {bad}; cd {good}; python3 x.py",
        "cd {good}; true && python3 x.py",
    ],
)
def test_behind_a_semicolon_a_script_is_judged_where_the_cd_may_have_failed_too(
    places: Places, line: str
) -> None:
    assert places.effect(line) == "deny"
    scripts = dict(places.facts(line).segments[-1].scripts)
    assert scripts.keys() == {f"{places.good}/x.py", f"{places.bad}/x.py"}


@pytest.mark.parametrize(
    "line",
    [
        "cd {good} && python3 x.py",
        "cd {bad} && cd {good} && python3 x.py",
        "cd {bad}; cd {good} && python3 x.py",
        "true; cd {good} && python3 x.py",
        "cd {bad}; rg x",
        "cd {good} && true; cd {good} && python3 x.py",
        "bash -c 'cd {good} && python3 x.py'",
    ],
)
def test_a_cd_that_must_have_succeeded_moves_what_stands_behind_it(places: Places, line: str) -> None:
    assert places.effect(line) == "allow"
    assert "EVIL" not in places.output(line)
    assert places.effect(line.replace("good", "bad")) == ("allow" if "python" not in line else "deny")


def test_what_was_learned_for_one_directory_never_counts_behind_a_semicolon(places: Places) -> None:
    (places.bad / "x.py").unlink()
    assert places.effect("cd {good} && python3 x.py") == "allow"
    assert places.effect("cd {good}; python3 x.py") == "deny"


def test_behind_a_semicolon_always_is_not_offered_and_what_to_write_instead_is_said(places: Places) -> None:
    offered = judge(places.facts("cd {good}; python3 x.py")).always
    assert offered.entries == ()
    assert f"would run in {places.good} or {places.bad}, should a `cd` fail" in (offered.why or "")
    assert "put && behind the `cd`" in (offered.why or "")
    line = "cd {good} && python3 x.py"
    entries = judge(places.facts(line)).always.entries
    assert effect(places.facts(line), *entries) == "allow"
    (places.good / "x.py").write_text("print('OTHER')\n")
    assert effect(places.facts(line), *entries) == "ask"


@pytest.mark.parametrize("mode", ["allowlist", "full"])
@pytest.mark.parametrize(
    "line",
    [
        "true || cd /tmp && cat agent/.sayso/token",
        "cd /tmp; cat agent/.sayso/token",
        "cd /tmp || cat agent/.sayso/token",
        "true && cd /tmp; cat agent/.sayso/token",
        "cd /tmp; cd /srv; cat agent/.sayso/token",
    ],
)
def test_sayso_protects_itself_wherever_a_cd_may_have_led(line: str, mode: str) -> None:
    facts = look(line, cwd="/home")
    assert STATE == "/home/agent/.sayso"
    assert judge(facts, "**", security=mode, ask="off").decision.rule == "exec.deny-own-state"
    assert effect(look("cd /tmp && cat agent/.sayso/token", cwd="/home"), "**", ask="off") == "allow"


def test_a_line_that_may_be_in_too_many_directories_is_refused() -> None:
    line = "cd /tmp; cd /srv; cd /; cd tmp; cd ..; rg x"
    assert look(line).analysable
    world = [f"cd /d{index}" for index in range(12)]
    many = inspect_in("; ".join([*world, "rg x"]), {f"/d{index}" for index in range(12)})
    assert many.refused[0].construct == "too-many-directories"


def inspect_in(line: str, directories: set[str]) -> CommandFacts:
    return look(line, world=World(directories=directories))


def test_entries_without_arguments_do_not_care_where_they_are(places: Places) -> None:
    entry = AllowlistEntry("/usr/bin/rg", source="test")
    assert effect(places.facts("cd {good}; rg x"), entry, ask="off") == "allow"
    assert effect(places.facts("cd {good}; rg x; id"), entry, ask="off") == "deny"
