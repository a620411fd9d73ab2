"""What a command in the real sandbox can and cannot do; each refusal beside the control that can."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import RunError
from core.model.plan import RunResult
from tests.integration.runners.kit import Place, Recorder, place_on_disk

OUR_PROCESSES = str(Path("/proc/self/ns/pid").readlink())


async def run(place: Place, script: str, **options: object) -> RunResult:
    return await place.sandbox.run(place.shell(script, **options), Recorder())


def on_the_host(*path: str) -> bool:
    try:
        return Path(*path).exists()
    except PermissionError:  # nobody who runs this test could have put it there
        return False


async def test_the_workspace_can_be_written_and_keeps_what_was_written(place: Place) -> None:
    assert (await run(place, "echo kept > file")).exit_code == 0
    assert (place.workspace / "file").read_text() == "kept\n"
    assert (await run(place, "cat file")).stdout == "kept\n"


async def test_a_read_only_workspace_can_be_read_and_not_written(place: Place) -> None:
    await run(place, "echo kept > file")
    result = await run(
        place,
        "cat file; echo more > file",
        plan=lambda plan: replace(plan, writable=(), readable=(plan.workspace,)),
    )
    assert result.stdout == "kept\n"
    assert "Read-only file system" in result.stderr
    assert (place.workspace / "file").read_text() == "kept\n"


@pytest.mark.parametrize("directory", ["/", "/etc", "/usr", "/var", "/opt", "/dev", "/home", "/root"])
async def test_nothing_outside_the_workspace_can_be_written(place: Place, directory: str) -> None:
    result = await run(place, f"touch {directory}/sayso-test-escape")
    assert result.exit_code != 0
    assert not on_the_host(directory, "sayso-test-escape")


async def test_a_directory_open_to_everybody_is_still_read_only(place: Place) -> None:
    with place_on_disk() as other:
        (other.root / "open").mkdir()
        (other.root / "open").chmod(0o777)
        shown = replace(place.plan, readable=(str(other.root / "open"),))
        result = await run(place, f"ls {other.root}/open && touch {other.root}/open/x", plan=lambda _: shown)
        assert "Read-only file system" in result.stderr


async def test_temporary_files_are_the_sandbox_s_own(place: Place) -> None:
    mark = place.root.name
    assert (await run(place, f"echo x > /tmp/{mark} && cat /tmp/{mark}")).stdout == "x\n"
    assert not on_the_host("/tmp", mark)
    assert (await run(place, f"cat /tmp/{mark}")).exit_code != 0


async def test_the_state_directory_is_not_there(place: Place) -> None:
    place.state.chmod(0o755)
    (place.state / "secret").write_text("x")
    (place.state / "secret").chmod(0o644)
    assert (await run(place, f"cat {place.state}/secret")).exit_code != 0
    shown = replace(place.plan, readable=(str(place.root),), masked=())
    assert (await run(place, f"cat {place.state}/secret", plan=lambda _: shown)).stdout == "x"
    masked = replace(shown, masked=(str(place.state),))
    assert (await run(place, f"cat {place.state}/secret", plan=lambda _: masked)).exit_code != 0


async def test_a_masked_file_is_empty_or_refused_and_its_neighbours_are_there(place: Place) -> None:
    config = place.root / "config"
    config.mkdir()
    for name in ("config.yaml", "other.yaml"):
        (config / name).write_text(name)
    shown = replace(place.plan, readable=(str(config),), masked=(str(config / "config.yaml"),))
    result = await run(place, f"cat {config}/other.yaml; cat {config}/config.yaml", plan=lambda _: shown)
    assert result.stdout == "other.yaml"


async def test_a_state_directory_inside_the_workspace_stays_hidden(place: Place) -> None:
    await run(place, "mkdir state; echo x > state/token")
    masked = replace(place.plan, masked=(f"{place.plan.workspace}/state",))
    result = await run(place, "cat state/token; touch state/new; echo ok > beside", plan=lambda _: masked)
    assert result.stdout == ""
    assert (place.workspace / "beside").exists()
    assert not (place.workspace / "state" / "new").exists()


async def test_a_listener_of_the_host_is_reached_only_with_network(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]} && echo connected"
        without = await place.sandbox.run(place.order("/bin/bash", "-c", script), Recorder())
        order = place.order("/bin/bash", "-c", script, plan=lambda plan: replace(plan, network=True))
        with_network = await place.sandbox.run(order, Recorder())
    assert (without.stdout, with_network.stdout) == ("", "connected\n")


async def test_processes_of_the_host_are_not_there(place: Place) -> None:
    result = await run(place, "ls -d /proc/[0-9]* | wc -l; readlink /proc/self/ns/pid")
    count, namespace = result.stdout.split()
    assert int(count) < 8
    assert namespace != OUR_PROCESSES


@pytest.mark.parametrize(
    "script",
    [
        "echo x > /proc/sys/kernel/core_pattern",
        "echo x > /proc/sysrq-trigger",
        "mknod node b 8 0",
        "mount -t tmpfs none /tmp",
        "umount /home",
        "mount -o remount,rw /",
        "unshare --user true",
        "chroot / true",
        "echo x > /sys/kernel/uevent_helper",
    ],
)
async def test_the_kernel_refuses(place: Place, script: str) -> None:
    assert (await run(place, f"({script}) && echo reached")).stdout == ""


async def test_the_command_has_no_capabilities_and_can_gain_none(place: Place) -> None:
    status = (await run(place, "cat /proc/self/status")).stdout
    values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(values[name], 16) == 0
    assert values["NoNewPrivs"].strip() == "1"


async def test_the_policy_is_not_on_a_command_line_in_the_sandbox(place: Place) -> None:
    text = (await run(place, "cat /proc/1/cmdline")).stdout
    assert "bwrap" in text
    assert "ro-bind" not in text
    assert str(place.state) not in text


async def test_no_descriptor_of_the_daemon_is_inherited(place: Place) -> None:
    descriptors = (await run(place, "for f in /proc/self/fd/*; do readlink $f; done; true")).stdout
    assert "sayso.db" not in descriptors
    assert "socket:" not in descriptors
    assert len(descriptors.splitlines()) <= 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another account to become")
async def test_root_never_starts_bwrap_and_its_files_are_closed(place: Place) -> None:
    result = await run(place, "id -u; cat /etc/shadow")
    assert result.stdout == "65534\n"
    assert "Permission denied" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another account to become")
@pytest.mark.parametrize(
    ("user", "words"),
    [("root", "is root"), ("no-such-account", "there is no account"), (None, "no sandbox account")],
)
async def test_root_without_a_usable_account_runs_nothing(place: Place, user: str | None, words: str) -> None:
    order = place.shell("true", plan=lambda plan: replace(plan, user=user))
    with pytest.raises(RunError, match=words):
        await place.sandbox.run(order, Recorder())


async def test_a_writable_place_that_is_not_there_is_told(place: Place) -> None:
    broken = replace(place.plan, writable=(place.plan.workspace, "/srv/there-is-no-such-directory"))
    sink = Recorder()
    with pytest.raises(RunError, match=r"/srv/there-is-no-such-directory cannot be shown .*: No such file"):
        await place.sandbox.run(place.shell("echo ran", plan=lambda _: broken), sink)
    assert sink.text("stdout") == ""


async def test_a_cwd_that_is_masked_is_refused_before_anything_starts(place: Place) -> None:
    with pytest.raises(RunError, match=r"cwd /root is not visible"):
        await place.sandbox.run(place.shell("pwd", cwd="/root"), Recorder())


async def test_a_program_that_is_masked_is_refused_with_the_key_that_shows_it(place: Place) -> None:
    with pytest.raises(RunError, match=r"/home/op/bin/tool is not visible .* sandboxing\.readable"):
        await place.sandbox.run(place.order("/home/op/bin/tool"), Recorder())


async def test_an_operator_s_workspace_that_is_not_there_is_not_made(place: Place) -> None:
    order = place.shell(
        "true", plan=lambda plan: replace(plan, workspace="/srv/none", writable=("/srv/none",))
    )
    with pytest.raises(RunError, match=r"agents\.<id>\.workspace"):
        await place.sandbox.run(order, Recorder())
    assert not on_the_host("/srv/none")
