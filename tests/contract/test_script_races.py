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


@pytest.mark.usefixtures("script")
async def test_a_script_that_others_can_change_is_never_remembered(system):
    _, verdict = await system.gate.consider(exec_call("bash", "build.sh"))
    assert verdict.always.entries == ()
    assert "build.sh" in verdict.always.why
    _, verdict = await system.gate.consider(exec_call("git", "push", "origin", "main"))
    assert verdict.always.entries


async def test_a_file_of_the_system_may_be_remembered(system):
    case, verdict = await system.gate.consider(exec_call("bash", "/usr/bin/ldd"))
    assert [path for path, _ in case.bound.scripts] == ["/usr/bin/ldd"]
    assert verdict.always.entries


async def test_what_always_left_does_not_count_for_a_script_that_appeared_since(system, tmp_path):
    call = exec_call("bash", "build.sh")
    case, verdict = await system.gate.consider(call)
    learned = verdict.always.entries
    remembered = Remembered(learned)
    assert learned
    assert system.judge.verdict(case, remembered).effect is Effect.ALLOW
    (tmp_path / "build.sh").write_text("echo written by the agent\n")
    case = system.judge.examine(call)
    assert system.judge.verdict(case, remembered).effect is Effect.ASK
    assert not system.judge.fallback_allows(case, learned)
