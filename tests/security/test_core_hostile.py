"""Hostile values and hostile files, thrown at the core and at what stands around it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from adapters.ingress.jsonrpc import RpcError
from adapters.ingress.params import ExecRun, SessionParams, read
from adapters.resolvers.filesystem import FilesystemResolver
from bot.home import prepare
from core.errors import StartError
from core.model.call import CommandText, ToolCall
from core.model.outcome import Status
from core.model.request import State
from tests.core_system import MAIN, Noting, exec_call

LISTED = {"command": "git --version"}


class PipedResolver(FilesystemResolver):
    """Somebody puts a pipe where the program was, between the look at it and its opening."""

    def _digest(self, real, seen):
        Path(real).unlink()
        os.mkfifo(real, 0o755)
        return super()._digest(real, seen)


class ExchangedResolver(FilesystemResolver):
    """Somebody puts another file of the same size there."""

    def _digest(self, real, seen):
        Path(f"{real}.other").rename(real)
        return super()._digest(real, seen)


@pytest.fixture
def tool(tmp_path):
    path = tmp_path / "tool"
    for name in ("tool", "tool.other"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {len(name) % 10}\n")
        (tmp_path / name).chmod(0o755)
    return path


@pytest.mark.timeout(10)
def test_a_pipe_in_the_place_of_a_program_does_not_hold_the_daemon(tool):
    assert FilesystemResolver().find(str(tool), path=(), cwd="/") is not None
    assert PipedResolver().find(str(tool), path=(), cwd="/") is None
    assert stat.S_ISFIFO(tool.stat().st_mode)


def test_a_program_exchanged_while_it_is_looked_at_is_not_found(tool):
    assert ExchangedResolver().find(str(tool), path=(), cwd="/") is None


@pytest.mark.parametrize("field", ["provider", "model"])
def test_what_an_agent_claims_is_short(field):
    assert read(SessionParams, {"claims": {field: "x" * 200}})
    with pytest.raises(RpcError) as refused:
        read(SessionParams, {"claims": {field: "x" * 201}})
    assert refused.value.field == f"claims.{field}"


def test_a_session_key_is_short():
    with pytest.raises(RpcError) as refused:
        read(SessionParams, {"session": "agent:main:main" + ":subagent:a" * 100})
    assert refused.value.field == "session"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e308, True, "5"])
def test_a_time_limit_that_is_none_is_refused(seconds):
    with pytest.raises(RpcError) as refused:
        read(ExecRun, {"command": "ls", "timeoutSeconds": seconds})
    assert refused.value.field == "timeoutSeconds"


@pytest.mark.parametrize(
    "more",
    [
        {"env": {"LD_PRELOAD": "/tmp/x.so"}},
        {"stdin": "aWQK"},
        {"argv": ["rm", "-rf", "/"]},
        {"elevated": "full"},
    ],
)
async def test_arguments_of_exec_that_are_not_judged_do_not_ride_along(system, more):
    assert (await system.gate.ask(ToolCall("Bash", MAIN, args=LISTED), None)).status is Status.ALLOWED
    outcome = await system.gate.ask(ToolCall("Bash", MAIN, args={**LISTED, **more}), None)
    assert outcome.status is Status.DENIED
    assert outcome.decision["rule"] == "exec.no-command"


@pytest.mark.parametrize(
    "cwd", ["/tmp/a\nb", "/", "/proc/self/root/root", "/no/such/directory/for/this/test", "/dev", "relative"]
)
async def test_a_hostile_cwd_is_refused_and_nothing_runs(system, cwd):
    outcome = await system.gate.run(exec_call("git", "--version", cwd=cwd), None, Noting())
    if cwd == "/":
        assert outcome.status is Status.FINISHED
        return
    assert outcome.status is Status.DENIED
    assert system.orders == []


@pytest.mark.parametrize(
    "env",
    [
        (("PATH", "/tmp"),),
        (("A\nB", "1"),),
        (("LD_PRELOAD", "/tmp/x.so"),),
        (("BASH_FUNC_git%%", "() { id; }"),),
        (("SAYSO_RUN", "other"),),
        (("SAYSO_SESSION", "agent:other:main"),),
    ],
)
async def test_an_environment_that_changes_what_runs_is_put_to_a_person(system, env):
    harmless = await system.gate.run(exec_call("git", "--version", env=(("LANG", "C"),)), None, Noting())
    assert harmless.status is Status.FINISHED
    asked = await system.gate.ask(ToolCall("exec", MAIN, command=_listed_with(env)), None)
    assert asked.status is Status.PENDING
    assert (await system.store.request(asked.request_id)).state is State.WAITING


def _listed_with(env):
    return CommandText(argv=("git", "--version"), env=env)


def test_a_home_that_others_can_exchange_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    assert prepare(shared / "home")
    shared.chmod(0o777)
    with pytest.raises(StartError, match="other users can change"):
        prepare(shared / "home")
