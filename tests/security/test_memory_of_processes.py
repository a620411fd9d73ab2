"""The environment and the memory of processes are out of reach: the daemon's hold its tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.execsec.real_paths import with_own_state
from core.model.command import Placement
from tests.shell_world import judge, look, policy

ROOT = Path(__file__).parents[2]
DENIED = [
    "cat /proc/1/envi[^x]on", "cat /proc/$X/environ", "cat /proc/1/env$X",
    "cat /proc/4242/environ", "cat /proc/4242/mem", "cat /proc/4242/task/4243/environ",
    "strings /proc/1/mem", "cat /proc/self/environ", "cat /proc/thread-self/environ",
    "cat /proc//4242/./environ", "cat ../proc/1/environ", "cat /proc/*/environ", "cat /proc/1/env*",
    "cat /pro?/1/m[e]m", "cat --file=/proc/1/environ", "cat -nf/proc/1/environ", "cat lnk/1/environ",
    "X=/proc/1/environ cat",
]  # fmt: skip
NEAR = [
    "cat /proc/self/status", "cat /proc/meminfo", "cat /proc/mounts", "cat /proc/1/status",
    "cat /proc/1/maps", "cat /srv/proc/1/environ", "cat environ", "cat /proc/1/environs",
    "cat /proc/sys/vm/mem", "cat mem", "cat /proc/1/net/mem",
]  # fmt: skip


def leads_to(line: str, cwd: Path, placement: Placement = Placement.HOST) -> str:
    under = policy(placement)
    facts = with_own_state(look(line, cwd=str(cwd)), FilesystemResolver(), under, placement)
    return judge(facts, "/usr/bin/cat", "/usr/bin/strings", placement=placement, under=under).decision.rule


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "lnk").symlink_to("/proc")
    return tmp_path


@pytest.mark.parametrize("line", DENIED)
def test_the_environment_and_memory_of_a_process_are_denied_on_the_host(line: str, work: Path) -> None:
    assert leads_to(line, Path("/srv") if ".." in line else work) == "exec.deny-own-state"


@pytest.mark.parametrize(("cwd", "line"), [("/proc/1", "cat environ"), ("/proc", "cat 1/task/1/mem")])
def test_where_the_command_runs_counts_for_them_too(cwd: str, line: str) -> None:
    assert leads_to(line, Path(cwd)) == "exec.deny-own-state"
    assert leads_to(line, Path("/srv")) == "exec.allowlist"


@pytest.mark.parametrize("line", NEAR)
def test_what_else_lies_below_proc_is_judged_by_the_list(line: str, work: Path) -> None:
    assert leads_to(line, work) == "exec.allowlist"


def test_in_the_sandbox_there_are_no_other_processes(work: Path) -> None:
    assert leads_to("cat /proc/1/environ", work, Placement.SANDBOX) == "exec.allowlist"


READ = "import sys; print(open(f'/proc/{sys.argv[1]}/environ').read())"
WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"
UP = "import sys; from bot.cli import main; sys.exit(main())"
# Root without any capability is a user like every other, and owns its files.
WITHOUT_PRIVILEGES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def started(place: Path, *words: str) -> subprocess.Popen[str]:
    environment = {
        "HOME": str(place),
        "SAYSO_HOME": str(place / "state"),
        "SAYSO_TEST_TOKEN": "secret-of-the-daemon",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.Popen(
        [*WITHOUT_PRIVILEGES, sys.executable, *words],
        env=environment,
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_by_another(pid: int, place: Path) -> tuple[str, str]:
    """Read a process' environment from another process of the same user."""
    return started(place, "-c", READ, str(pid)).communicate(timeout=20)


def test_another_process_of_the_same_user_cannot_read_the_environment_of_the_daemon(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"sandboxing: {{mode: 'off', workspaceRoot: {tmp_path}/workspaces}}\n")
    with started(tmp_path, "-c", UP, "up", "--config", str(config), "--port", "0") as daemon:
        try:
            assert daemon.stdout is not None
            assert daemon.stdout.readline().startswith("ready ")
            out, err = read_by_another(daemon.pid, tmp_path)
            assert "PermissionError" in err
            assert "secret-of-the-daemon" not in out
            assert Path(f"/proc/{daemon.pid}/environ").stat().st_uid == 0
        finally:
            daemon.terminate()
            _, log = daemon.communicate(timeout=20)
        assert daemon.returncode == 0
        assert "PR_SET_DUMPABLE" not in log


def test_of_a_process_that_does_not_close_itself_the_same_reader_gets_it_all(tmp_path: Path) -> None:
    with started(tmp_path, "-c", WAIT) as open_one:
        assert open_one.stdout is not None
        open_one.stdout.readline()
        out, _ = read_by_another(open_one.pid, tmp_path)
        open_one.communicate(timeout=20)
    assert "secret-of-the-daemon" in out


def test_what_a_closed_process_starts_is_as_open_as_ever(tmp_path: Path) -> None:
    is_open = "import ctypes; print(ctypes.CDLL(None).prctl(3))"
    closed = (
        "import subprocess, sys\n"
        "from bot.undumpable import close_to_other_processes\n"
        "print(close_to_other_processes(), flush=True)\n"
        f"exec({is_open!r})\n"
        "sys.stdout.flush()\n"
        f"subprocess.run([sys.executable, '-c', {is_open!r}], check=True)\n"
    )
    out, _ = started(tmp_path, "-c", closed).communicate(timeout=20)
    assert out.split() == ["None", "0", "1"]
