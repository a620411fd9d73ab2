"""The socket as a file: who can open it, and what lies in its way."""

from __future__ import annotations

import grp
import os
import socket
import stat

import pytest

from adapters.ingress.unix_socket import UnixSocketIngress
from core.errors import StartError
from tests.desks import some_desks


@pytest.fixture
def make(site):
    def build(path, **options) -> UnixSocketIngress:
        return UnixSocketIngress(
            path, site.gatekeeper, site.desk, some_desks(console=site.console), **options
        )

    return build


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_its_owner_can_open_it_whatever_the_umask_says(make, short_home):
    before = os.umask(0)
    try:
        ingress = make(short_home / "s")
        await ingress.open()
    finally:
        os.umask(before)
    assert mode_of(short_home / "s") == 0o600
    await ingress.close()


async def test_a_group_can_be_let_in(make, short_home):
    group = grp.getgrgid(os.getgid()).gr_name
    ingress = make(short_home / "s", group=group)
    await ingress.open()
    assert mode_of(short_home / "s") == 0o660
    assert (short_home / "s").stat().st_gid == os.getgid()
    await ingress.close()


async def test_a_group_that_does_not_exist_is_named(make, short_home):
    with pytest.raises(StartError, match="'nobodys-group'"):
        await make(short_home / "s", group="nobodys-group").open()
    assert not (short_home / "s").exists()


async def test_a_live_daemon_on_it_is_an_error_and_is_left_alone(make, site):
    with pytest.raises(StartError, match="another daemon answers"):
        await make(site.path).open()
    assert "result" in await (await site.agent()).call("exec.run", command="exit 0")


async def test_a_stale_socket_is_replaced(make, short_home):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(short_home / "s"))
    ingress = make(short_home / "s")
    await ingress.open()
    await ingress.close()


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
async def test_what_is_no_socket_is_never_removed(make, short_home, kind):
    path = short_home / "s"
    if kind == "file":
        path.write_text("mine")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(short_home / "elsewhere")
    with pytest.raises(StartError, match="not a socket"):
        await make(path).open()
    assert path.is_symlink() or path.exists()


async def test_a_path_too_long_for_a_socket_is_named(make, short_home):
    path = short_home / ("x" * 100)
    with pytest.raises(StartError, match="107") as caught:
        await make(path).open()
    assert str(path) in str(caught.value)


async def test_the_longest_path_works(make, short_home):
    path = short_home / ("x" * (107 - len(os.fsencode(short_home)) - 1))
    ingress = make(path)
    await ingress.open()
    await ingress.close()


async def test_a_directory_that_is_not_there_is_an_error(make, short_home):
    with pytest.raises(StartError, match="No such file"):
        await make(short_home / "gone" / "s").open()


async def test_closing_removes_its_own_socket_and_no_other(make, short_home):
    path = short_home / "s"
    ingress = make(path)
    await ingress.open()
    path.unlink()
    path.write_text("somebody else's")
    await ingress.close()
    await ingress.close()
    assert path.read_text() == "somebody else's"
