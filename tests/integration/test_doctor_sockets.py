"""What the doctor finds at the two sockets; each is one that really listens, or does not."""

from __future__ import annotations

import grp
import os
import socket
from pathlib import Path

import pytest

from bot.check import Status
from bot.doctor_sockets import agents, operators
from core.config import SocketSettings

GROUP = grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def place(short_home):
    (short_home / "home").mkdir(mode=0o700)
    (short_home / "run").mkdir(mode=0o700)
    return short_home / "run" / "agent.sock"


@pytest.fixture
def listening(place):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        place.chmod(0o600)
        listener.listen()
        yield place


async def found(path: Path, **settings: str):
    home = path.parent.parent / "home"
    return await agents(SocketSettings(path=str(path), **settings), home / "sayso.sock", home)


async def test_a_socket_that_is_as_it_should_be(listening):
    check = await found(listening)
    assert (check.status, check.detail) == (Status.OK, f"{listening}, for its user alone")


async def test_nobody_listens(place):
    check = await found(place)
    assert check.status is Status.WARN
    assert f"nobody listens on {place}" in check.detail


async def test_what_a_dead_daemon_left(place):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    assert (await found(place)).status is Status.WARN


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o660])
async def test_a_socket_that_is_open_to_others_than_it_should_be(listening, mode):
    listening.chmod(mode)
    check = await found(listening)
    assert check.status is Status.FAIL
    assert f"mode {mode:04o}" in check.detail


async def test_a_group_that_was_let_in_is_told(listening, short_home):
    for path, mode in ((listening, 0o660), (listening.parent, 0o710), (short_home, 0o711)):
        path.chmod(mode)
    check = await found(listening, group=GROUP)
    assert (check.status, check.detail) == (Status.OK, f"{listening}, for its user and group {GROUP}")


async def test_a_group_that_cannot_get_there(listening):
    check = await found(listening, group=GROUP)
    assert check.status is Status.FAIL
    assert f"group {GROUP} cannot pass {listening.parent.parent}" in check.detail


async def test_a_directory_that_others_can_change(listening):
    listening.parent.chmod(0o777)
    check = await found(listening)
    assert check.status is Status.FAIL
    assert f"others can change {listening.parent}" in check.detail
    assert listening.parent.stat().st_mode & 0o777 == 0o777, "the doctor changes nothing"


async def test_a_group_that_is_not_there(place):
    check = await found(place, group="nobodys-group")
    assert check.status is Status.FAIL


async def test_without_a_place_there_is_none_and_that_is_told(short_home):
    check = await agents(SocketSettings(), short_home / "sayso.sock", short_home)
    assert (check.status, check.detail) == (
        Status.OK,
        "none: only agents that run as the daemon's user can ask",
    )


async def test_the_living_daemon_is_believed_where_nothing_is_configured(site, listening, monkeypatch):
    monkeypatch.setenv("SAYSO_OPERATOR_TOKEN", "operator-token")

    async def status():
        return {"agentSocket": str(listening)}

    monkeypatch.setattr(site.console, "status", status)
    check = await agents(SocketSettings(), site.path, site.home / "home")
    assert (check.status, check.detail) == (Status.OK, f"{listening}, for its user alone")


async def test_the_operator_s_is_for_its_owner_alone(site):
    assert (await operators(site.path)).status is Status.OK
    site.path.chmod(0o606)
    assert (await operators(site.path)).status is Status.FAIL
