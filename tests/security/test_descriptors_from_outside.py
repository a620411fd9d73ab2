"""Another user of the machine offers a descriptor of `/`: no run can get at it, or it is not called held."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners import bubblewrap, meeting
from adapters.runners.accounts import Account
from adapters.runners.meeting import others_get_to
from core.model.plan import RunOrder, RunResult
from tests.integration.runners.kit import Place, Recorder, close, place_on_disk

OFFERS = """
import array, os, socket, sys
os.setgroups([])
os.setresgid(*[int(sys.argv[2])] * 3)
os.setresuid(*[int(sys.argv[2])] * 3)
at = socket.socket(socket.AF_UNIX)
at.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
at.listen()
root = os.open("/", os.O_RDONLY)
print("listening", flush=True)
while True:
    met, _ = at.accept()
    met.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [root]))])
"""
TAKES = """
import os, socket, sys
met = socket.socket(socket.AF_UNIX)
met.connect(sys.argv[1])
_, (root,), _, _ = socket.recv_fds(met, 1, 1)
print(os.read(os.open(sys.argv[2].lstrip("/"), os.O_RDONLY, dir_fd=root), 99).decode())
"""
OUTSIDER = pwd.getpwnam("daemon")
PYTHON = "/usr/bin/python3"
SECRET = "the operator's own"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users"),
    pytest.mark.skipif(not os.access(PYTHON, os.X_OK), reason="there is no Python of the system"),
]


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        place.workspace.chmod(0o777)
        for above in place.workspace.parents:
            if above == place.root.parent:
                break
            above.chmod(0o755)
        (place.root / "secret").write_text(SECRET)
        yield place


@contextmanager
def outsider(place: Place, at: Path | None = None) -> Iterator[str]:
    meets = str((at or place.workspace) / "meets")
    command = [sys.executable, "-c", OFFERS, meets, str(OUTSIDER.pw_uid)]
    offers = subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/")
    try:
        assert offers.stdout is not None
        assert offers.stdout.readline() == b"listening\n"
        yield meets
    finally:
        offers.kill()
        offers.wait()
        assert offers.stdout is not None
        offers.stdout.close()


async def takes(place: Place, runner: str, *, by_person: bool, opened: bool = False) -> RunResult:
    with outsider(place) as meets:
        words = (PYTHON, "-c", TAKES, meets, str(place.root / "secret"))
        order: RunOrder = place.order(
            *words, runner=runner, plan=lambda plan: replace(plan, sockets=(meets,) if opened else ())
        )
        return await place.runner(runner).run(replace(order, by_person=by_person), Recorder())


@pytest.mark.parametrize("by_person", [True, False])
@pytest.mark.parametrize("runner", ["host", "bubblewrap"])
async def test_a_run_gets_no_descriptor_from_outside(place, runner, by_person):
    result = await takes(place, runner, by_person=by_person)
    assert (result.stdout, result.exit_code) == ("", 1)
    assert "Permission denied" in result.stderr
    assert any("it seems to have wanted a Unix socket" in note for note in result.notes)


async def test_without_the_filter_a_sandbox_would_get_one(place, monkeypatch):
    monkeypatch.setattr(bubblewrap, "meeting_place", lambda *_: None)
    result = await takes(place, "bubblewrap", by_person=True)
    assert result.stdout.strip() == SECRET


async def test_a_run_with_sockets_that_the_operator_opened_is_not_called_held_from_what_comes_through(place):
    result = await takes(place, "host", by_person=True, opened=True)
    assert result.stdout.strip() == SECRET
    assert result.held == ("privileges",)


@contextmanager
def served(place: Place) -> Iterator[str]:
    """Listen as somebody else at a socket that the operator shows to sandboxes."""
    room = place.root / "served"
    room.mkdir()
    os.chown(room, OUTSIDER.pw_uid, OUTSIDER.pw_gid)
    with outsider(place, room) as named:
        yield named


async def takes_at(place: Place, meets: str, *, shown: str) -> RunResult:
    words = (PYTHON, "-c", TAKES, meets, str(place.root / "secret"))
    return await place.sandbox.run(
        place.order(*words, plan=lambda plan: replace(plan, readable=(shown,))), Recorder()
    )


async def test_who_listens_at_a_socket_that_is_named_is_trusted_with_what_comes_through_it(place):
    close(place)
    with served(place) as named:
        result = await takes_at(place, named, shown=named)
    assert (result.stdout.strip(), result.stderr, result.notes) == (SECRET, "", ())


async def test_a_socket_that_is_named_is_the_only_one_outside_that_a_run_can_reach(place):
    close(place)
    with served(place) as named:
        room = Path(named).parent
        other = room / "other"
        other.mkdir()
        os.chown(other, OUTSIDER.pw_uid, OUTSIDER.pw_gid)
        with outsider(place, other) as unnamed:
            result = await takes_at(place, unnamed, shown=named)
    assert (result.stdout, result.exit_code) == ("", 1)
    assert "No such file" in result.stderr


async def test_a_socket_that_is_named_opens_none_in_a_workspace_that_others_get_to(place, monkeypatch):
    with served(place) as named, outsider(place) as beside:
        for meets in (beside, named):
            result = await takes_at(place, meets, shown=named)
            assert (result.stdout, result.exit_code) == ("", 1)
            assert "Permission denied" in result.stderr
            assert any(f"to what it shares with the host: {place.workspace}" in note for note in result.notes)
        monkeypatch.setattr(bubblewrap, "meeting_place", lambda *_: None)
        assert (await takes_at(place, beside, shown=named)).stdout.strip() == SECRET


def test_a_socket_that_is_named_is_no_place_to_meet_and_what_lies_beside_it_is(place):
    close(place)
    nobody = pwd.getpwnam("nobody")
    account = Account("nobody", nobody.pw_uid, nobody.pw_gid, drop=True)
    with served(place) as named:
        for shown, expected in (
            ((named,), None),
            ((str(Path(named).parent),), str(Path(named).parent)),
            ((named, "/etc"), "/etc"),
        ):
            assert meeting.meeting_place(replace(place.plan, readable=shown), account) == expected


async def test_a_sandbox_that_nobody_else_gets_to_has_sockets(place):
    close(place)
    made = "import socket; socket.socket(socket.AF_UNIX).bind('s'); socket.socketpair(type=socket.SOCK_DGRAM)"
    result = await place.sandbox.run(place.order(PYTHON, "-c", made), Recorder())
    assert (result.exit_code, result.stderr, result.notes) == (0, "", ())


async def test_a_workspace_that_only_its_own_mode_closes_keeps_nobody_out_because_the_run_can_open_it(place):
    place.workspace.chmod(0o700)
    opened = "import os, socket; os.chmod('.', 0o777); socket.socket(socket.AF_UNIX).bind('s')"
    result = await place.sandbox.run(place.order(PYTHON, "-c", opened), Recorder())
    assert (result.exit_code, place.workspace.stat().st_mode & 0o777) == (1, 0o777)
    assert "PermissionError" in result.stderr
    assert "a directory above it" in result.notes[0]


@pytest.mark.parametrize(
    ("mode", "owner", "above", "expected"),
    [
        (0o700, "nobody", 0o755, True),  # the run itself can open it
        (0o711, "nobody", 0o755, True),
        (0o755, "nobody", 0o700, False),
        (0o755, "nobody", 0o711, True),
        (0o750, "nobody", 0o755, True),  # the group of all that is nobody's
        (0o700, "daemon", 0o755, True),
        (0o700, "root", 0o755, False),
        (0o700, "nobody", 0o700, False),
        (0o1777, "root", 0o755, True),
    ],
)
def test_who_can_meet_a_run_is_told_by_every_directory_on_the_way(place, mode, owner, above, expected):
    there = place.root / "above" / "there"
    there.mkdir(parents=True)
    who = pwd.getpwnam(owner)
    os.chown(there, who.pw_uid, pwd.getpwnam("daemon").pw_gid)
    there.chmod(mode)
    there.parent.chmod(above)
    nobody = pwd.getpwnam("nobody")
    account = Account("nobody", nobody.pw_uid, nobody.pw_gid, drop=True)
    assert others_get_to(str(there), account, (str(there),)) is expected


def test_a_group_that_has_no_name_may_hold_others(place):
    there = place.root / "there"
    there.mkdir()
    os.chown(there, 0, 54_321)
    there.chmod(0o750)
    assert others_get_to(str(there), Account("x", 54_321, 54_321, drop=True))
    there.chmod(0o700)
    assert not others_get_to(str(there), Account("x", 54_321, 54_321, drop=True))


def test_a_network_of_the_host_is_a_place_to_meet_where_abstract_sockets_stay_open(place, monkeypatch):
    place.workspace.parent.chmod(0o700)
    nobody = pwd.getpwnam("nobody")
    account = Account("nobody", nobody.pw_uid, nobody.pw_gid, drop=True)
    plan = replace(place.plan, network=True)
    assert meeting.meeting_place(plan, account) is None
    monkeypatch.setattr(meeting, "scopes_abstract_sockets", lambda: False)
    assert "network" in str(meeting.meeting_place(plan, account))
