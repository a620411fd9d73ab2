"""What Always saved counts in the very directory in which it was said, and nowhere else."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from msgspec.structs import replace

from adapters.resolvers.filesystem import FilesystemResolver
from core.approvals.binding import reverify
from core.approvals.card import card_of
from core.errors import BindingMismatch
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.plan import RunOrder
from core.model.request import Answer, Review
from core.model.standing import Remembered
from core.shell.render import SHELL, run_argv
from tests.core_system import ALICE, CONFIG, Noting, exec_call
from tests.shell_world import World

CONFIGURED_BY_THEIR_DIRECTORY = [("make",), ("npm", "test"), ("python3", "-m", "unittest")]


class EveryProgram(FilesystemResolver):
    """The machine's directories, files and shell, with every program installed."""

    def find(self, name, *, path, cwd):
        if name == SHELL:
            return super().find(name, path=path, cwd=cwd)
        return World().find(name, path=("/usr/bin",), cwd=cwd)


def wired(make_system, workspace, **settings):
    exec_rules = {**CONFIG["tools"]["exec"], **settings}
    config = {
        "tools": {**CONFIG["tools"], "exec": exec_rules},
        "agents": {"by_id": {"main": {"workspace": str(workspace)}}},
    }
    made = make_system(config, resolver=EveryProgram())
    for runner in made.runners.values():
        runner.resolver = EveryProgram()
    return made


@pytest.fixture
def system(make_system, tmp_path):
    return wired(make_system, tmp_path)


@pytest.fixture
def one(tmp_path):
    place = tmp_path / "one"
    place.mkdir()
    return place


@pytest.fixture
def two(tmp_path):
    place = tmp_path / "two"
    place.mkdir()
    return place


async def always(system, command, cwd, answer=Answer.ALLOW_ALWAYS):
    asked = await system.gate.ask(exec_call(*command, cwd=str(cwd)), None)
    assert asked.status is Status.PENDING, asked.reason
    told = await system.console.resolve(Review(asked.request_id, answer, ALICE))
    assert told["accepted"], told["text"]


async def verdict(system, command, cwd):
    return (await system.gate.consider(exec_call(*command, cwd=str(cwd))))[1]


async def effect(system, command, cwd):
    return (await verdict(system, command, cwd)).effect


COMMANDS = pytest.mark.parametrize("command", CONFIGURED_BY_THEIR_DIRECTORY, ids=" ".join)


@COMMANDS
async def test_it_does_not_run_in_another_directory(system, one, two, command):
    await always(system, command, one)
    assert await effect(system, command, one) is Effect.ALLOW
    assert await effect(system, command, two) is Effect.ASK
    (one / "below").mkdir()
    assert await effect(system, command, one / "below") is Effect.ASK
    assert await effect(system, command, one.parent) is Effect.ASK


@COMMANDS
async def test_it_does_not_run_in_one_of_the_same_name_that_was_put_in_its_place(system, one, command):
    await always(system, command, one)
    away = one.rename(one.with_name("away"))
    one.mkdir()
    assert await effect(system, command, one) is Effect.ASK
    one.rmdir()
    away.rename(one)
    assert await effect(system, command, one) is Effect.ALLOW


@COMMANDS
async def test_it_does_not_run_through_a_link_to_another(system, one, two, command):
    await always(system, command, one)
    link = one.with_name("link")
    link.symlink_to(one)
    assert await effect(system, command, link) is Effect.ALLOW  # it is the same directory
    link.unlink()
    link.symlink_to(two)
    assert await effect(system, command, link) is Effect.ASK
    one.rename(one.with_name("away"))
    one.symlink_to(two)
    assert await effect(system, command, one) is Effect.ASK


@COMMANDS
async def test_it_does_not_run_where_that_is_gone_and_says_so(system, one, command):
    await always(system, command, one)
    one.rmdir()
    told = await verdict(system, command, one)
    assert told.effect is Effect.DENY
    assert f"cwd {one} is not a directory" in told.decision.reason


@COMMANDS
async def test_it_does_not_run_on_another_file_system(system, one, command):
    await always(system, command, one)
    (entry,) = await system.store.learned("main")
    case = system.judge.examine(exec_call(*command, cwd=str(one)))
    mounted = replace(entry, directory=replace(entry.directory, device=entry.directory.device + 1))
    for remembered, expected in ((entry, Effect.ALLOW), (mounted, Effect.ASK)):
        assert system.judge.verdict(case, Remembered((remembered,))).effect is expected


async def test_a_directory_that_a_line_goes_to_is_the_one_that_counts(system, one, two):
    await always(system, ("make",), one)
    for line, expected in (
        (f"cd {one} && make", Effect.ALLOW),
        (f"cd {two} && make", Effect.ASK),
        (f"cd {one}; make", Effect.ASK),  # should the `cd` fail, it runs where it was
    ):
        _, told = await system.gate.consider(exec_call(line=line, cwd=str(two)))
        assert told.effect is expected, line


async def test_behind_a_cd_that_may_fail_nothing_is_remembered_and_the_reason_tells_what_helps(
    system, one, two
):
    _, told = await system.gate.consider(exec_call(line=f"cd {one}; make", cwd=str(two)))
    assert (
        told.always.why == f"`make` would run in {one} or {two}, should a `cd` fail; put && behind the `cd`"
    )
    _, told = await system.gate.consider(exec_call(line=f"cd {one} && make", cwd=str(two)))
    assert told.always.words == (f"exactly `make` in {one}, in the sandbox",)


def order_of(case):
    return RunOrder("1", run_argv(case.facts), case.bound, case.binding)


@pytest.mark.parametrize("line", ["make", "cd {one} && make"])
async def test_a_directory_exchanged_between_the_decision_and_the_start_is_refused(system, one, line):
    await always(system, ("make",), one)
    cwd = one if line == "make" else one.parent
    case, told = await system.gate.consider(exec_call(line=line.format(one=one), cwd=str(cwd)))
    assert told.effect is Effect.ALLOW
    reverify(order_of(case), EveryProgram())
    one.rename(one.with_name("away"))
    with pytest.raises(BindingMismatch, match=rf"cwd changed .* no longer what was looked at: {one};"):
        reverify(order_of(case), EveryProgram())
    one.mkdir()
    with pytest.raises(BindingMismatch, match="cwd"):
        reverify(order_of(case), EveryProgram())


@pytest.mark.parametrize("exchanged", [False, True])
async def test_a_yes_ends_with_the_directory_that_it_was_said_about(system, one, exchanged):
    call = exec_call("make", cwd=str(one))
    asked = await system.gate.ask(call, None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    if exchanged:
        one.rename(one.with_name("away"))
        one.mkdir()
    outcome = await asyncio.wait_for(system.gate.run_approved(call, asked.request_id, Noting()), 5)
    if exchanged:
        assert (outcome.status, system.orders) == (Status.DENIED, [])
        assert "cwd changed since it was decided" in outcome.reason
    else:
        assert outcome.status is Status.FINISHED


async def test_what_only_reads_counts_in_every_directory_with_these_arguments(system, one, two):
    await always(system, ("ls", "-l"), one)
    assert await effect(system, ("ls", "-l"), two) is Effect.ALLOW
    assert await effect(system, ("ls", "-la"), two) is Effect.ASK
    assert await effect(system, ("ls", "-la"), one) is Effect.ASK


async def test_any_arguments_count_in_the_same_place_alone(make_system, tmp_path, one, two):
    sandboxed, on_host = (wired(make_system, tmp_path, host=host) for host in ("sandbox", "gateway"))
    await always(sandboxed, ("ls", "-l"), one, Answer.ALLOW_ALWAYS_ANY)
    assert await effect(sandboxed, ("ls", "-la", "/etc"), two) is Effect.ALLOW
    assert await effect(sandboxed, ("cat", "/etc"), two) is Effect.ASK
    assert await effect(on_host, ("ls", "-la", "/etc"), two) is Effect.ASK
    await always(on_host, ("ls", "-l"), one, Answer.ALLOW_ALWAYS_ANY)
    assert await effect(on_host, ("ls", "-la", "/etc"), two) is Effect.ALLOW


@pytest.mark.parametrize("command", [("find", "."), ("sort", "f"), ("rm", "f"), ("git", "status")])
async def test_any_arguments_are_refused_where_they_are_not_offered(system, one, command):
    asked = await system.gate.ask(exec_call(*command, cwd=str(one)), None)
    told = await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ALWAYS_ANY, ALICE))
    assert not told["accepted"]
    assert "only programs that just read are remembered so" in told["text"]
    await always(system, command, one)


async def test_on_the_host_in_a_workspace_the_card_says_why_nothing_is_remembered(make_system, tmp_path):
    system = wired(make_system, tmp_path, host="gateway")
    system.judge.site = dataclasses.replace(system.judge.site, workspaces=(str(tmp_path),))
    outside = tmp_path.parent / "outside"
    outside.mkdir(exist_ok=True)
    cards = []
    for cwd, command in ((tmp_path, ("make",)), (outside, ("make",)), (tmp_path, ("rm", "x"))):
        asked = await system.gate.ask(exec_call(*command, cwd=str(cwd)), None)
        cards.append(card_of(await system.store.request(asked.request_id)))
    inside, elsewhere, loads_nothing = cards
    assert not inside.offers_always
    assert inside.always_why == (
        f"agents can write {tmp_path}, so `make` could be made to do something else with the same words, "
        "outside the sandbox"
    )
    assert elsewhere.always == (f"exactly `make` in {outside}, on the host",)
    assert loads_nothing.always == (f"exactly `rm x` in {tmp_path}, on the host",)


async def test_a_question_makes_the_workspace_that_is_not_there_yet(make_system, tmp_path):
    system = wired(make_system, tmp_path / "made")
    call = exec_call("make")
    _, told = await system.gate.consider(call)
    assert told.always.why == f"{tmp_path / 'made'}, in which `make` would run, is not there now"
    asked = await system.gate.ask(call, None)
    kept = await system.store.request(asked.request_id)
    assert kept.always.words == (f"exactly `make` in {tmp_path / 'made'}, in the sandbox",)
