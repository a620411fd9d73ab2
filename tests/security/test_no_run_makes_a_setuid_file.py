"""A setuid file would make whoever may execute it the account of the run: no run makes one."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

import pytest

from tests.integration.runners.kit import Place, Recorder, place_on_disk

PYTHON = "/usr/bin/python3"
TRIES = """
import ctypes, os, stat, struct, sys
call = ctypes.CDLL(None, use_errno=True).syscall
path = b"made"

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result

def named(mode): os.chmod(path, mode)
def opened(mode):
    held = os.open(path, os.O_RDONLY)
    try: os.fchmod(held, mode)
    finally: os.close(held)
def at(mode): os.chmod(path.decode(), mode, dir_fd=os.open(".", os.O_RDONLY))
def anew(mode): checked(call(452, -100, path, mode, 0))
def created(mode): os.unlink(path); os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
def creat(mode): os.unlink(path); os.close(checked(call(85, path, mode)))
def unnamed(mode):
    held = os.open(".", os.O_TMPFILE | os.O_WRONLY, mode)
    os.unlink(path)
    try: checked(call(265, -100, b"/proc/self/fd/%d" % held, -100, path, 0x400))
    finally: os.close(held)
def node(mode): os.unlink(path); os.mknod(path, stat.S_IFREG | mode)
def how(mode):
    os.unlink(path)
    os.close(checked(call(437, -100, path, struct.pack("QQQ", 0o101, mode, 0), 24)))

os.umask(0)
mode = int(sys.argv[1], 8)
for way in (named, opened, at, anew, created, creat, unnamed, node, how):
    open(path, "w").close()
    try:
        way(mode)
    except OSError:
        pass
    there = os.path.exists(path) and stat.S_IMODE(os.stat(path).st_mode) == mode
    print(way.__name__, "made" if there else "refused")
    if os.path.exists(path): os.unlink(path)
"""
ALL = ["named", "opened", "at", "anew", "created", "creat", "unnamed", "node", "how"]

pytestmark = [
    pytest.mark.skipif(not os.access(PYTHON, os.X_OK), reason="there is no Python of the system"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of calls are those of x86_64"),
]


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


async def made(place: Place, runner: str, mode: str) -> list[str]:
    result = await place.runner(runner).run(place.order(PYTHON, "-c", TRIES, mode, runner=runner), Recorder())
    assert result.exit_code == 0, result.stderr
    ways = dict(line.split() for line in result.stdout.splitlines())
    assert list(ways) == ALL
    return [way for way, found in ways.items() if found == "made"]


@pytest.mark.parametrize("mode", ["4755", "2755", "6711", "4000"])
@pytest.mark.parametrize("runner", ["host", "bubblewrap"])
async def test_no_call_makes_one(place: Place, runner: str, mode: str) -> None:
    assert await made(place, runner, mode) == []


@pytest.mark.parametrize("mode", ["755", "1777", "640", "2644"])
@pytest.mark.parametrize("runner", ["host", "bubblewrap"])
async def test_every_other_mode_is_given_as_ever(place: Place, runner: str, mode: str) -> None:
    """But by one call, which takes its mode where no filter sees it; who knows it does without."""
    assert await made(place, runner, mode) == [way for way in ALL if way != "how"]


@pytest.mark.parametrize("mode", ["4755", "2755"])
async def test_without_the_filter_every_call_makes_one(place: Place, mode: str) -> None:
    assert await made(place, "unheld", mode) == ALL


async def test_a_setgid_directory_is_inherited_and_copied(place: Place) -> None:
    place.workspace.chmod(0o2770)
    for line in ("mkdir within", "cp -r within copied", "touch copied/file"):
        result = await place.host.run(place.shell(line, runner="host"), Recorder())
        assert (result.exit_code, result.stderr) == (0, "")
    assert all((place.workspace / name).stat().st_mode & 0o2000 for name in ("within", "copied"))
