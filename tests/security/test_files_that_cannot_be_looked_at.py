"""A file that is there, and that nobody can look at for now, is no file that is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.call import CommandText
from core.model.command import NOT_LOOKED_AT, UNHASHED
from core.shell.inspect import inspect
from core.shell.scripts import with_scripts
from tests.shell_world import Machine, effect, judge

NOBODY = 65534
_HOLDER = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def work() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="sayso-test-", dir="/var/tmp"))
    for name in ("x.py", "data.csv", "tool"):
        (made / name).write_text("#!/bin/sh\necho reviewed\n")
        (made / name).chmod(0o755)
    (made / "way").mkdir()
    (made / "way" / "x.py").write_text("1\n")
    (made / "link.py").symlink_to("way/x.py")
    if os.geteuid() == 0:
        for path in (made, *made.rglob("*")):
            shutil.chown(path, NOBODY)
    yield made
    shutil.rmtree(made)


@contextmanager
def write_lease(path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()


def as_ordinary_user(test: Callable[[], None]) -> None:
    """Run it in a process of an account that rights hold for."""
    if os.geteuid() != 0:
        test()
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            test()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the child must not go on as the test
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def facts(line: str, work: Path):
    resolver = Machine().for_one_command()
    found = inspect(CommandText(line=line), cwd=str(work), path=("/usr/bin",), resolver=resolver)
    return with_scripts(found, resolver, ("/usr/bin",))


@pytest.mark.parametrize("resolver", [FilesystemResolver(), FilesystemResolver().for_one_command()])
def test_a_file_that_another_process_leases_is_there(work: Path, resolver: FilesystemResolver) -> None:
    script = str(work / "x.py")
    with write_lease(work / "x.py"):
        with pytest.raises(BlockingIOError):
            os.open(script, os.O_RDONLY | os.O_NONBLOCK)
        found = resolver.file(script)
        assert found is not None
        assert (found.sha256, found.inode) == (UNHASHED, Path(script).stat().st_ino)
        assert resolver.beginning(script, found) is None
    later = FilesystemResolver().for_one_command()
    read = later.file(script)
    assert read is not None
    assert read.sha256 not in {None, UNHASHED}
    assert later.beginning(script, read) == b"#!/bin/sh\necho reviewed\n"


def test_a_leased_file_is_not_remembered_nor_admitted_by_what_was(work: Path) -> None:
    line = "tar -cf /dev/null data.csv"
    entries = judge(facts(line, work)).always.entries
    assert effect(facts(line, work), *entries, ask="off") == "allow"
    with write_lease(work / "data.csv"):
        assert effect(facts(line, work), *entries, ask="off") == "deny"
        judged = judge(facts(line, work))
        assert (judged.decision.effect.name, judged.always.entries) == ("ASK", ())
        assert "data.csv may change before it runs" in judged.decision.reason


def test_a_leased_script_does_not_run(work: Path) -> None:
    assert judge(facts("python3 x.py", work)).decision.effect.name == "ASK"
    with write_lease(work / "x.py"):
        judged = judge(facts("python3 x.py", work))
    assert (judged.decision.effect.name, judged.decision.rule) == ("DENY", "exec.unread")
    assert "cannot be read now" in judged.decision.reason


def test_a_leased_program_is_not_found(work: Path) -> None:
    tool = str(work / "tool")
    with write_lease(work / "tool"):
        assert FilesystemResolver().find(tool, path=(), cwd="/") is None
    assert FilesystemResolver().find(tool, path=(), cwd="/") is not None


def test_a_file_without_rights_is_there(work: Path) -> None:
    def look() -> None:
        for name in ("x.py", "data.csv"):
            (work / name).chmod(0)
        resolver = FilesystemResolver().for_one_command()
        found = resolver.file(str(work / "x.py"))
        assert found is not None
        assert found.sha256 == UNHASHED
        assert resolver.beginning(str(work / "x.py"), found) is None
        assert judge(facts("tar -cf /dev/null data.csv", work)).always.entries == ()
        (work / "data.csv").chmod(0o600)
        assert judge(facts("tar -cf /dev/null data.csv", work)).always.entries

    as_ordinary_user(look)


@pytest.mark.parametrize("name", ["way/x.py", "link.py", "way/nonesuch", "way/deeper/x.py"])
def test_what_a_closed_directory_hides_may_be_there(work: Path, name: str) -> None:
    def look() -> None:
        (work / "way").chmod(0)
        assert FilesystemResolver().file(str(work / name)) == NOT_LOOKED_AT
        assert FilesystemResolver().for_one_command().file(str(work / name)) == NOT_LOOKED_AT
        assert judge(facts(f"tar -cf /dev/null ./{name}", work)).always.entries == ()
        (work / "way").chmod(0o700)
        assert judge(facts(f"tar -cf /dev/null ./{name}", work)).always.entries

    as_ordinary_user(look)


@pytest.mark.parametrize(
    "name", ["nonesuch", "nonesuch/x.py", "x.py/x", "loop", "dangling", "n" * 300, "n" * 4090]
)
def test_what_is_not_there_for_anybody_is_not_there(work: Path, name: str) -> None:
    (work / "loop").symlink_to("loop")
    (work / "dangling").symlink_to("nonesuch/x")
    assert FilesystemResolver().file(str(work / name)) is None


def test_what_root_alone_hides_hinders_nothing(work: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can hide it so")

    def look() -> None:
        with pytest.raises(PermissionError):
            Path("/root/x").stat()
        assert FilesystemResolver().file("/root/x") is None
        assert judge(facts("tar -cf /dev/null x.py /root/x", work)).always.entries

    if Path("/root").stat().st_mode & 0o011:
        pytest.skip("/root is open here")
    as_ordinary_user(look)
