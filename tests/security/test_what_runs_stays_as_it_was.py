"""How long an interpreter reads its script nobody can tell: who writes it in place ends the run.

What is held at first is let go here after a shorter time than in earnest; all else is as it is.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners import held_still
from adapters.runners.bubblewrap import find_bubblewrap
from adapters.runners.exchanges import Exchanges, exchanges
from adapters.runners.held_still import HeldStill
from adapters.runners.late_options import LateOptions
from adapters.runners.threshold import Threshold
from core.approvals.binding import bind
from core.errors import BindingMismatch, RunError
from core.model.plan import Beginning, RunOrder, RunResult
from tests.integration.runners.kit import Place, Recorder, place_on_disk

PLACEMENTS = ("host", "bubblewrap", "unheld")
KILLED = 137
AT_FIRST_S = 0.5
REPOSITORY = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def _shorter(monkeypatch):
    monkeypatch.setattr(held_still, "_BEGUN_S", AT_FIRST_S)


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


@pytest.fixture
def script(place) -> Path:
    path = place.workspace / "script"
    path.write_text("echo ready\nsleep 1.5\n")
    if os.geteuid() == 0:
        shutil.chown(path, "nobody")
    return path


def running(place: Place, program: str, script: Path, runner: str, *, held: bool = True) -> RunOrder:
    order = place.order(program, str(script), runner=runner)
    files = Beginning((program, str(script))) if held else Beginning()
    return replace(order, bound=replace(order.bound, begins_with=files))


async def begun(place: Place, order: RunOrder, runner: str) -> asyncio.Task[RunResult]:
    """Start it, and wait until it is let go what is held at first."""
    heard = Recorder()
    task = asyncio.create_task(place.runner(runner).run(order, heard))
    await asyncio.wait_for(heard.first.wait(), 10)
    await asyncio.sleep(AT_FIRST_S + 0.2)
    assert not task.done()
    return task


def append(script: Path, text: str = "echo exchanged\n") -> float:
    began = time.monotonic()
    with script.open("a") as file:
        file.write(text)
    return time.monotonic() - began


def can_be_written(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("runner", PLACEMENTS)
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/dash"])
async def test_without_being_held_a_shell_runs_what_is_appended(place, script, shell, runner):
    task = await begun(place, running(place, shell, script, runner, held=False), runner)
    await asyncio.to_thread(append, script)
    assert (await task).stdout == "ready\nexchanged\n"


@pytest.mark.parametrize("runner", PLACEMENTS)
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/dash"])
async def test_who_writes_what_a_shell_reads_ends_the_run_and_goes_on_at_once(place, script, shell, runner):
    task = await begun(place, running(place, shell, script, runner), runner)
    waited = await asyncio.to_thread(append, script)
    result = await task
    assert (result.stdout, result.exit_code) == ("ready\n", KILLED)
    assert f"{script} was opened for writing, or exchanged, while it ran" in result.notes[0]
    assert result.tampered
    assert waited < 5
    assert script.read_text().endswith("echo exchanged\n")


async def test_who_comes_at_first_waits_until_it_is_let_go(place, script):
    script.write_text("echo ready\nexec sleep 1.5\n")
    heard = Recorder()
    task = asyncio.create_task(place.host.run(running(place, "/bin/bash", script, "host"), heard))
    await heard.first.wait()
    waited = await asyncio.to_thread(append, script)
    assert waited > AT_FIRST_S / 2
    assert (await task).exit_code == KILLED


PERL = """BEGIN { $| = 1; print "ready\\n"; sleep 2 }
%s
print "reviewed\\n";
""" % ("# much to read\n" * 2_000)


def member(script: Path, text: str) -> None:
    """Make an archive with a member that is read only when it is imported."""
    with zipfile.ZipFile(script, "w") as archive:
        archive.writestr(
            "__main__.py", "import time\nprint('ready', flush=True)\ntime.sleep(2)\nimport late\n"
        )
        archive.writestr("late.py", f"print({text!r})\n")


def perl(script: Path, text: str) -> None:
    script.write_text(PERL.replace("reviewed", text))


LATE = {"/usr/bin/perl": perl, "/usr/bin/python3": member}


@pytest.mark.parametrize("program", list(LATE))
@pytest.mark.parametrize("held", [False, True])
async def test_what_is_read_long_after_the_start_is_never_another_text(place, script, program, held):
    """Without being held, each of them runs what was written meanwhile."""
    LATE[program](script, "reviewed")
    task = await begun(place, running(place, program, script, "host", held=held), "host")
    await asyncio.to_thread(LATE[program], script, "replaced")
    result = await task
    assert result.stdout == ("ready\n" if held else "ready\nreplaced\n")
    assert result.tampered is held


async def test_an_archive_whose_place_is_taken_by_another_ends_the_run(place, script):
    member(script, "reviewed")
    member(script.with_name("other"), "replaced")
    task = await begun(place, running(place, "/usr/bin/python3", script, "host"), "host")
    script.with_name("other").rename(script)
    result = await task
    assert (result.stdout, result.exit_code, result.tampered) == ("ready\n", KILLED, True)


@pytest.mark.parametrize("late", [False, True])
async def test_a_script_behind_another_is_held_in_its_place_until_the_end(place, script, late):
    first = script.with_name("first")
    first.write_text(f"echo ready; sleep 1.5; . {script}\n")
    script.write_text("echo reviewed\n")
    script.with_name("new").write_text("echo replaced\n")
    order = place.order("/bin/sh", str(first), runner="host")
    files = Beginning(("/bin/sh", str(first)), (str(script),) if late else ())
    order = replace(order, bound=replace(order.bound, begins_with=files))
    task = await begun(place, order, "host")
    script.with_name("new").rename(script)
    assert (await task).stdout == ("ready\n" if late else "ready\nreplaced\n")


@pytest.mark.parametrize(("mode", "killed"), [(0o644, False), (0o755, True)])
async def test_a_word_that_cannot_be_executed_is_rather_worked_on(place, script, mode, killed):
    """As by `npx prettier --write FILE`: the run writes it itself, and goes on."""
    script.chmod(mode)
    writes = f"echo ready; sleep 1; echo written > {script}; echo on"
    order = place.order("/bin/sh", "-c", writes, runner="host")
    files = Beginning(("/bin/sh",), words=(str(script),))
    order = replace(order, bound=replace(order.bound, begins_with=files))
    result = await place.host.run(order, Recorder())
    assert (result.stdout, result.tampered) == (("ready\n", True) if killed else ("ready\non\n", False))


async def test_a_new_file_in_its_place_ends_nothing(place, script):
    task = await begun(place, running(place, "/bin/bash", script, "host"), "host")
    new = script.with_name("new")
    new.write_text("echo exchanged\n")
    new.replace(script)
    result = await task
    assert (result.stdout, result.exit_code, result.notes) == ("ready\n", 0, ())


async def test_a_script_that_writes_itself_is_ended(place, script):
    script.write_text(f"echo ready\nsleep 1\necho 'echo exchanged' >> {script}\necho on\n")
    result = await place.host.run(running(place, "/bin/bash", script, "host"), Recorder())
    assert (result.stdout, result.exit_code) == ("ready\n", KILLED)


@pytest.mark.parametrize("end", ["over", "timeout", "cancelled"])
async def test_it_is_let_go_however_the_run_ends(place, script, end):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    order = running(place, "/bin/bash", script, "host")
    if end == "timeout":
        limited = replace(order.bound, plan=place.seconds(1.2)(order.bound.plan))
        order = replace(order, bound=limited, expected=bind(limited))
    task = await begun(place, order, "host")
    assert not can_be_written(script), "held until then"
    if end == "cancelled":
        task.cancel()
    await asyncio.wait({task})
    assert can_be_written(script)
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # noqa: PTH208 - the one that all share


def instances() -> int:
    links = (entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
    return [str(link) for link in links].count("anon_inode:inotify")


def watches() -> int:
    return Path(f"/proc/self/fdinfo/{exchanges()._instance}").read_text().count("inotify wd:")


def test_all_runs_share_one_instance_and_a_watch_goes_with_the_last(script):
    exchanges()
    one, none = instances(), watches()
    with HeldStill.holding(Beginning((str(script),))) as first:
        several = watches()
        with HeldStill.holding(Beginning((str(script),))) as second:
            assert (instances(), watches()) == (one, several)
        script.rename(script.with_name("gone"))
        with pytest.raises(BindingMismatch):
            first.check()
        second.check()
    assert several > none == watches()


def test_what_happened_before_it_was_held_is_nothing_to_it(script):
    with HeldStill.holding(Beginning((str(script),))) as first:
        with exchanges()._lock:
            script.rename(script.with_name("gone"))
            script.with_name("gone").rename(script)
        with HeldStill.holding(Beginning((str(script),))) as second:
            second.check()
        with pytest.raises(BindingMismatch):
            first.check()


def test_more_than_can_be_heard_counts_as_exchanged(script):
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with HeldStill.holding(Beginning((str(script),))) as still:
        with exchanges()._lock:
            for count in range(limit // 2 + 10):
                (script.with_name(f"x{count}")).touch()
                (script.with_name(f"x{count}")).unlink()
        with pytest.raises(BindingMismatch, match="more happened than could be watched"):
            still.check()


TAKEN = """
import ctypes, os, sys, tempfile
from adapters.runners.exchanges import exchanges
from adapters.runners.held_still import HeldStill
from core.errors import RunError
from core.model.plan import Beginning
os.setgroups([])
os.setresuid(*[int(sys.argv[2])] * 3)
place = tempfile.TemporaryDirectory(dir="/var/tmp")
script = place.name + "/script"
open(script, "w").close()
if sys.argv[1] == "before": exchanges()
while ctypes.CDLL(None).inotify_init1(0) >= 0: pass
try:
    with HeldStill.holding(Beginning((script,))) as still: still.check()
    print("held")
except RunError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes all instances of a user, which must be another")
@pytest.mark.parametrize(
    ("opened", "uid", "said"), [("before", 54321, "held"), ("after", 54322, "max_user_instances")]
)
def test_a_user_without_instances_left_can_start_scripts(opened, uid, said):
    found = subprocess.run(
        [sys.executable, "-c", TAKEN, opened, str(uid)],
        env={"PYTHONPATH": REPOSITORY, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in found.stdout, found.stderr


async def test_a_file_with_the_lease_of_another_is_refused_in_words(place, script):
    order = running(place, "/bin/bash", script, "host")
    with script.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(RunError, match="is held by another process"):
            await place.host.run(order, Recorder())


@pytest.mark.parametrize("device", ["/dev/tty", "/dev/null", "fifo"])
async def test_only_files_are_held(place, device):
    path = device if device.startswith("/") else str(place.workspace / device)
    if device == "fifo":
        os.mkfifo(path, 0o666)
    order = place.shell("echo ready", runner="host")
    order = replace(order, bound=replace(order.bound, begins_with=Beginning(("/bin/sh", path))))
    assert (await place.host.run(order, Recorder())).stdout == "ready\n"


def test_bwrap_passes_the_threshold_when_it_comes_to_the_command():
    bwrap = find_bubblewrap()
    with LateOptions.awaited() as late, Threshold.laid() as threshold:
        inherit = (threshold.descriptor, *late.descriptors)
        command = ("sh", "-c", "ls /proc/self/fd; sleep 0.2")
        with subprocess.Popen(
            [bwrap.path, *threshold.words, *late.words, "--", *command],
            pass_fds=inherit,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            time.sleep(0.3)
            assert not threshold.passed()
            late.give(["--dev-bind", "/", "/", "--unshare-user"])
            said = process.communicate()[0]
            assert threshold.passed()
        assert str(threshold.descriptor) not in said.split()


def test_the_time_counts_from_when_the_command_can_begin(script):
    came = time.monotonic() + 2 * AT_FIRST_S
    with (
        HeldStill.holding(Beginning(words=(str(script),))) as still,
        subprocess.Popen(["/bin/sleep", "5"], start_new_session=True) as process,
    ):
        began = time.monotonic()
        guard = threading.Thread(target=still.guard, args=(process, lambda: time.monotonic() > came))
        guard.start()
        while not can_be_written(script):
            time.sleep(0.02)
        assert time.monotonic() - began > 2.8 * AT_FIRST_S
        process.kill()
        guard.join()
    assert still.told(begun=True) == ()


def test_another_instance_hears_for_itself(tmp_path):
    heard: list[str] = []
    own = Exchanges()
    with own.watched(str(tmp_path), "x", held_still.EXCHANGED, held_still.Watched("it", heard.append)):
        began = time.monotonic()
        (tmp_path / "x").touch()
        while not heard and time.monotonic() - began < 5:
            pass
    assert heard[0] == "it"
