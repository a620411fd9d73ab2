"""What an interpreter is given is part of what was decided."""

from __future__ import annotations

import asyncio

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.approvals.binding import reverify
from core.errors import BindingMismatch
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.plan import RunOrder
from core.model.request import Answer, Review
from core.model.standing import Remembered
from core.shell.render import run_argv
from tests.core_system import ALICE, CONFIG, Noting, exec_call


@pytest.fixture
def system(make_system, tmp_path):
    return make_system({**CONFIG, "agents": {"by_id": {"main": {"workspace": str(tmp_path)}}}})


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "build.sh"
    path.write_text("echo one\n")
    return path


@pytest.mark.parametrize("name", ["build.sh", "./build.sh"])
async def test_a_script_changed_between_the_yes_and_the_run_is_named_and_not_run(system, script, name):
    asked = await system.gate.ask(exec_call("bash", name), None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    script.write_text("echo two\n")
    call = exec_call("bash", name)
    outcome = await system.gate.run_approved(call, asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert "scripts" in outcome.reason
    assert system.orders == []


@pytest.mark.usefixtures("script")
async def test_a_script_that_stayed_as_it_was_runs(system):
    call = exec_call("bash", "build.sh")
    asked = await system.gate.ask(call, None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    outcome = await asyncio.wait_for(system.gate.run_approved(call, asked.request_id, Noting()), 5)
    assert outcome.status is Status.FINISHED


async def test_the_runner_looks_at_scripts_a_last_time(system, script):
    case, _ = await system.gate.consider(exec_call("bash", "build.sh"))
    order = RunOrder("1", run_argv(case.facts), case.bound, case.binding)
    reverify(order, FilesystemResolver())
    script.write_text("echo two\n")
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order, FilesystemResolver())
    script.unlink()
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order, FilesystemResolver())


async def test_a_script_that_others_can_change_is_remembered_with_its_text(system, script, tmp_path):
    call = exec_call("bash", "build.sh")
    case, verdict = await system.gate.consider(call)
    assert verdict.always.words == (
        f"exactly `bash build.sh` in {tmp_path}, in the sandbox, as long as {script} stays as it is",
    )
    remembered = Remembered(verdict.always.entries)
    assert system.judge.verdict(case, remembered).effect is Effect.ALLOW
    script.write_text("echo two\n")
    changed = system.judge.examine(call)
    assert system.judge.verdict(changed, remembered).effect is Effect.ASK
    assert not system.judge.fallback_allows(changed, verdict.always.entries)
    script.write_text("echo one\n")
    assert system.judge.verdict(system.judge.examine(call), remembered).effect is Effect.ALLOW


async def test_a_remembered_script_changed_after_the_judging_does_not_run(system, script):
    _, verdict = await system.gate.consider(exec_call("bash", "build.sh"))
    case = system.judge.examine(exec_call("bash", "build.sh"))
    assert system.judge.verdict(case, Remembered(verdict.always.entries)).effect is Effect.ALLOW
    script.write_text("echo two\n")
    order = RunOrder("1", run_argv(case.facts), case.bound, case.binding)
    with pytest.raises(BindingMismatch, match="scripts"):
        reverify(order, FilesystemResolver())


@pytest.mark.parametrize("argv", [("bash", "build.sh", "x"), ("sh", "build.sh"), ("bash", "other.sh")])
async def test_the_pin_of_a_script_admits_nothing_else(system, script, tmp_path, argv):
    (tmp_path / "other.sh").write_text(script.read_text())
    _, verdict = await system.gate.consider(exec_call("bash", "build.sh"))
    case = system.judge.examine(exec_call(*argv))
    assert system.judge.verdict(case, Remembered(verdict.always.entries)).effect is Effect.ASK


async def test_a_pinned_script_does_not_count_in_another_directory(system, script, tmp_path):
    _, verdict = await system.gate.consider(exec_call("bash", "build.sh"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "build.sh").write_text("rm -rf x\n")
    case = system.judge.examine(exec_call(line="cd sub && bash build.sh"))
    assert script.exists()
    assert system.judge.verdict(case, Remembered(verdict.always.entries)).effect is Effect.ASK


@pytest.mark.parametrize("line", ["cp evil build.sh && bash build.sh", "bash build.sh & cp evil build.sh"])
async def test_a_pin_does_not_hold_beside_a_command_that_could_replace_the_script(system, script, line):
    _, alone = await system.gate.consider(exec_call("bash", "build.sh"))
    _, copying = await system.gate.consider(exec_call("cp", "evil", "build.sh"))
    remembered = Remembered((*alone.always.entries, *copying.always.entries))
    verdict = system.judge.verdict(system.judge.examine(exec_call(line=line)), remembered)
    assert verdict.effect is Effect.ASK
    assert verdict.always.entries == ()
    assert str(script) in verdict.decision.reason
    along = system.judge.examine(exec_call(line="cd . && bash build.sh; true"))
    assert system.judge.verdict(along, remembered).effect is Effect.ALLOW


@pytest.mark.parametrize(
    ("beside", "effect"),
    [
        ("| tail -3", Effect.ALLOW),
        ("| grep -v warning | head", Effect.ALLOW),
        ("2>&1 | wc -l && echo done", Effect.ALLOW),
        ("| tee build.sh", Effect.ASK),
        ("| sort -o build.sh", Effect.ASK),
        ("| tail -3 && touch build.sh", Effect.ASK),
    ],
)
async def test_a_pin_holds_beside_commands_that_only_read(system, script, beside, effect):
    assert script.exists()
    everything = []
    for argv in (
        ("bash", "build.sh"),
        ("tee", "build.sh"),
        ("sort", "-o", "build.sh"),
        ("touch", "build.sh"),
    ):
        everything += system.judge.verdict(system.judge.examine(exec_call(*argv))).always.entries
    for argv in (("tail", "-3"), ("grep", "-v", "warning"), ("head",), ("wc", "-l")):
        everything += system.judge.verdict(system.judge.examine(exec_call(*argv))).always.entries
    line = f"bash build.sh {beside}"
    verdict = system.judge.verdict(system.judge.examine(exec_call(line=line)), Remembered(tuple(everything)))
    assert verdict.effect is effect, verdict.decision


async def test_a_script_too_large_to_be_read_each_time_is_denied_with_the_reason(make_system, tmp_path):
    resolver = FilesystemResolver(hash_limit=8)
    workspace = {**CONFIG, "agents": {"by_id": {"main": {"workspace": str(tmp_path)}}}}
    system = make_system(workspace, resolver=resolver)
    (tmp_path / "build.sh").write_text("echo more than eight bytes\n")
    _, verdict = await system.gate.consider(exec_call("bash", "build.sh"))
    assert verdict.always.entries == ()
    assert (verdict.effect, verdict.decision.rule) == (Effect.DENY, "exec.unread")
    assert "build.sh would run, and its text cannot be tied to a yes" in verdict.decision.reason
    _, verdict = await system.gate.consider(exec_call("python3", "-c", "1", "build.sh"))
    assert (verdict.effect, verdict.always.entries) == (Effect.ASK, ()), "only worked on"
    (tmp_path / "build.sh").write_bytes(b"\x7fELF and more")
    _, verdict = await system.gate.consider(exec_call("bash", "build.sh"))
    assert (verdict.effect, verdict.always.entries) == (Effect.ASK, ()), "a large program"


@pytest.mark.parametrize(
    "argv", [("bash", "--rcfile=build.sh"), ("make", "-fbuild.sh"), ("curl", "-K", "build.sh")]
)
async def test_a_file_behind_an_option_is_a_script_too(system, script, argv):
    case = system.judge.examine(exec_call(*argv))
    assert [path for path, _ in case.bound.scripts] == [str(script)]


async def test_a_file_of_the_system_may_be_remembered(system):
    case, verdict = await system.gate.consider(exec_call("bash", "/usr/bin/ldd"))
    assert [path for path, _ in case.bound.scripts] == ["/usr/bin/ldd"]
    assert verdict.always.entries


async def test_a_script_that_is_not_there_leaves_nothing_and_one_that_is_there_a_pin(system, tmp_path):
    call = exec_call("bash", "build.sh")
    _, verdict = await system.gate.consider(call)
    assert (verdict.effect, verdict.always.entries) == (Effect.ASK, ())
    (tmp_path / "build.sh").write_text("echo written by the agent\n")
    case, verdict = await system.gate.consider(call)
    remembered = Remembered(verdict.always.entries)
    assert system.judge.verdict(case, remembered).effect is Effect.ALLOW
    (tmp_path / "build.sh").write_text("echo written by the agent later\n")
    case = system.judge.examine(call)
    assert system.judge.verdict(case, remembered).effect is Effect.ASK
    assert not system.judge.fallback_allows(case, remembered.learned)
    (tmp_path / "build.sh").unlink()
    case = system.judge.examine(call)
    assert system.judge.verdict(case, remembered).effect is Effect.ASK
