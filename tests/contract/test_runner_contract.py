"""What every Runner promises to its OutputSink and its caller, over each of them, with the real kernel."""

from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core.errors import BindingMismatch, RunError
from core.model.plan import RunStatus
from tests.integration.runners.kit import Place, Recorder, place_on_disk, processes_with

RUNNERS = pytest.mark.parametrize("runner", ["bubblewrap", "host", "unheld"])


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


@RUNNERS
async def test_output_comes_whole_and_as_it_is_written(place: Place, runner: str) -> None:
    sink = Recorder()
    order = place.shell("echo one; sleep 0.3; echo two; echo three >&2", runner=runner)
    result = await place.runner(runner).run(order, sink)
    assert (result.status, result.exit_code) == (RunStatus.FINISHED, 0)
    assert (result.stdout, result.stderr) == ("one\ntwo\n", "three\n")
    assert (result.omitted_stdout, result.omitted_stderr) == (0, 0)
    assert [data for _, name, data in sink.heard if name == "stdout"] == [b"one\n", b"two\n"]
    assert {request_id for request_id, _, _ in sink.heard} == {order.request_id}


@RUNNERS
@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
async def test_the_exit_code_is_what_a_shell_reports(
    place: Place, runner: str, script: str, code: int
) -> None:
    result = await place.runner(runner).run(place.shell(script, runner=runner), Recorder())
    assert (result.status, result.exit_code) == (RunStatus.FINISHED, code)


@RUNNERS
async def test_a_command_that_prints_like_bwrap_and_fails_has_run(place: Place, runner: str) -> None:
    order = place.shell("echo 'bwrap: it was me' >&2; exit 1", runner=runner)
    result = await place.runner(runner).run(order, Recorder())
    assert (result.status, result.exit_code) == (RunStatus.FINISHED, 1)


@RUNNERS
async def test_stdin_is_fed_and_ends(place: Place, runner: str) -> None:
    data = b"x" * 300_000
    order = place.order("/usr/bin/wc", "-c", runner=runner, stdin=data)
    assert (await place.runner(runner).run(order, Recorder())).stdout.strip() == "300000"


@RUNNERS
async def test_without_stdin_there_is_nothing_to_read(place: Place, runner: str) -> None:
    result = await place.runner(runner).run(place.order("/bin/cat", runner=runner), Recorder())
    assert (result.exit_code, result.stdout) == (0, "")


@RUNNERS
async def test_stdin_other_than_what_was_approved_is_refused(place: Place, runner: str) -> None:
    order = replace(place.order("/bin/cat", runner=runner, stdin=b"approved"), stdin=b"exchanged")
    with pytest.raises(BindingMismatch, match="stdin"):
        await place.runner(runner).run(order, Recorder())


@RUNNERS
async def test_a_timeout_ends_everything_that_was_started(place: Place, runner: str) -> None:
    tag = f"31.4{place.root.name.__hash__() % 10_000:04d}"
    order = place.shell(f"trap '' TERM; sleep {tag} & sleep {tag}", runner=runner, plan=place.seconds(0.4))
    began = time.monotonic()
    result = await place.runner(runner).run(order, Recorder())
    assert time.monotonic() - began < 5
    assert (result.status, result.exit_code) == (RunStatus.TIMED_OUT, 137)
    assert processes_with(tag) == []


@RUNNERS
async def test_a_cancelled_run_is_over_before_the_cancellation_goes_on(place: Place, runner: str) -> None:
    tag = f"32.4{place.root.name.__hash__() % 10_000:04d}"
    order = place.shell(f"sleep {tag} & echo up; sleep {tag}", runner=runner)
    sink = Recorder()
    run = asyncio.create_task(place.runner(runner).run(order, sink), name="the run")
    async with asyncio.timeout(10):
        await sink.first.wait()
    assert processes_with(tag)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert processes_with(tag) == []


@RUNNERS
async def test_what_a_command_leaves_in_the_background_ends_with_it(place: Place, runner: str) -> None:
    tag = f"33.4{place.root.name.__hash__() % 10_000:04d}"
    order = place.shell(f"sleep {tag} & setsid sleep {tag} & exit 3", runner=runner)
    result = await place.runner(runner).run(order, Recorder())
    assert (result.status, result.exit_code) == (RunStatus.FINISHED, 3)
    assert processes_with(tag) == []


@RUNNERS
async def test_a_program_that_changed_since_the_approval_does_not_run(place: Place, runner: str) -> None:
    place.root.chmod(0o755)
    program = place.root / "tool"
    program.write_text("#!/bin/sh\necho approved\n")
    program.chmod(0o755)
    order = place.order(
        str(program),
        runner=runner,
        programs=(str(program),),
        plan=lambda plan: replace(plan, readable=(str(program),)),
    )
    assert (await place.runner(runner).run(order, Recorder())).stdout == "approved\n"
    program.write_text("#!/bin/sh\necho exchanged\n")
    sink = Recorder()
    with pytest.raises(BindingMismatch, match="executables"):
        await place.runner(runner).run(order, sink)
    assert sink.heard == []


@RUNNERS
async def test_the_environment_is_the_plans_and_nothing_of_the_daemons(place: Place, runner: str) -> None:
    order = place.order(
        "/usr/bin/env", "-0", runner=runner, env=(("ADDED", "a b\nc"), ("SAYSO_SESSION", "agent:other:main"))
    )
    lines = (await place.runner(runner).run(order, Recorder())).stdout.rstrip("\0").split("\0")
    got = dict(line.split("=", 1) for line in lines)
    got.pop("SAYSO_RUN", None)
    got.pop("PWD", None)
    assert got == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": place.plan.workspace,
        "USER": got["USER"],
        "LOGNAME": got["USER"],
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "ADDED": "a b\nc",
        "SAYSO_SESSION": "agent:main:main",
    }


@RUNNERS
async def test_it_runs_in_the_workspace_without_a_terminal(place: Place, runner: str) -> None:
    order = place.shell("pwd; cat /dev/tty 2>/dev/null || echo no terminal", runner=runner)
    result = await place.runner(runner).run(order, Recorder())
    assert result.stdout == f"{place.plan.workspace}\nno terminal\n"


@RUNNERS
async def test_long_output_is_head_and_tail_and_a_private_file(place: Place, runner: str) -> None:
    order = place.shell("seq 1 100000", runner=runner)
    result = await place.runner(runner).run(order, Recorder())
    whole = "".join(f"{number}\n" for number in range(1, 100_001))
    assert result.stdout.startswith("1\n2\n3\n")
    assert result.stdout.endswith("99999\n100000\n")
    assert result.omitted_stdout == len(whole) - 128 * 1024
    kept = place.output / f"{order.request_id}.stdout"
    assert kept.read_text() == whole
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@RUNNERS
async def test_the_file_stops_at_its_cap_and_the_run_goes_on(place: Place, runner: str) -> None:
    order = place.shell(
        "seq 1 100000; exit 5",
        runner=runner,
        plan=lambda plan: replace(plan, limits=replace(plan.limits, output_bytes=1000)),
    )
    result = await place.runner(runner).run(order, Recorder())
    assert result.exit_code == 5
    assert (place.output / f"{order.request_id}.stdout").stat().st_size == 1000


@RUNNERS
@pytest.mark.parametrize("argv", [(), ("",), ("/bin/echo", "a\0b")])
async def test_an_order_that_cannot_be_run_as_written_is_refused(
    place: Place, runner: str, argv: tuple[str, ...]
) -> None:
    with pytest.raises(RunError, match=r"empty|NUL"):
        await place.runner(runner).run(place.order(*argv, runner=runner), Recorder())


@RUNNERS
async def test_limits_that_cannot_be_kept_are_refused(place: Place, runner: str) -> None:
    order = place.shell(
        "true",
        runner=runner,
        plan=lambda plan: replace(plan, limits=replace(plan.limits, memory_bytes=1024)),
    )
    with pytest.raises(RunError, match="memory"):
        await place.runner(runner).run(order, Recorder())


@RUNNERS
async def test_a_program_that_is_gone_is_told(place: Place, runner: str) -> None:
    order = place.order("/usr/bin/there-is-no-such-program", runner=runner)
    with pytest.raises(RunError, match="there-is-no-such-program"):
        await place.runner(runner).run(order, Recorder())


@RUNNERS
async def test_a_cwd_that_is_gone_is_told(place: Place, runner: str) -> None:
    order = place.shell("pwd", runner=runner, cwd="/usr/there-is-no-such-directory")
    with pytest.raises(RunError, match="there-is-no-such-directory"):
        await place.runner(runner).run(order, Recorder())
