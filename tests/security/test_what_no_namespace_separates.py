"""Keyrings and sockets that the kernel has once for the whole machine are not there in a sandbox."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator

import pytest

from adapters.runners.syscalls import call_filter
from tests.integration.runners.kit import Place, Recorder, close, place_on_disk

PYTHON = "/usr/bin/python3"
# add_key, request_key, keyctl(KEYCTL_GET_KEYRING_ID, the session's): each succeeds outside.
KEYS = """
import ctypes, os, platform
add, request, control = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[platform.machine()]
call = ctypes.CDLL(None, use_errno=True).syscall
def tried(*arguments):
    return "there" if call(*arguments) >= 0 else os.strerror(ctypes.get_errno())
print(tried(add, b"user", b"sayso:test", b"secret", 6, -2))
print(tried(request, b"user", b"sayso:test", None, 0))
print(tried(control, 0, -3, 1))
"""
FAMILIES = """
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_VSOCK, socket.AF_ALG):
    special = {socket.AF_NETLINK: socket.SOCK_RAW, socket.AF_ALG: socket.SOCK_SEQPACKET}
    kind = special.get(family, socket.SOCK_STREAM)
    try:
        socket.socket(family, kind).close()
        print(family.name, "there")
    except OSError as error:
        print(family.name, error.strerror)
"""
SEPARATED = ["AF_INET there", "AF_INET6 there", "AF_NETLINK there"]

pytestmark = pytest.mark.skipif(not os.access(PYTHON, os.X_OK), reason="there is no Python of the system")


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


def outside(script: str) -> list[str]:
    found = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


async def inside(place: Place, script: str) -> list[str]:
    result = await place.sandbox.run(place.order(PYTHON, "-c", script), Recorder())
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


async def test_a_sandbox_has_no_keyrings(place: Place) -> None:
    if outside(KEYS) != ["there"] * 3:
        pytest.skip("here nobody has keyrings")
    assert await inside(place, KEYS) == ["Function not implemented"] * 3


@pytest.mark.parametrize("closed", [True, False])
async def test_a_sandbox_has_only_sockets_that_a_namespace_separates(place: Place, closed: bool) -> None:  # noqa: FBT001 - a table
    """Whether or not others can meet it there, so that it has Unix sockets or not."""
    if closed:
        close(place)
    found = outside(FAMILIES)
    assert found[:3] == SEPARATED
    assert any(line.endswith(" there") for line in found[3:]), "nothing to refuse on this kernel"
    refused = [f"{name} Address family not supported by protocol" for name in ("AF_VSOCK", "AF_ALG")]
    assert await inside(place, FAMILIES) == [*SEPARATED, *refused]


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="a machine that is not known")
@pytest.mark.parametrize("unix_sockets", [True, False])
@pytest.mark.parametrize("sandbox", [True, False])
def test_each_jump_of_the_filter_leads_to_an_instruction(unix_sockets: bool, sandbox: bool) -> None:  # noqa: FBT001 - as above
    found = call_filter(unix_sockets=unix_sockets, sandbox=sandbox)
    assert found is not None
    count = len(found) // 8
    for number in range(count):
        code, yes, no = found[8 * number], found[8 * number + 2], found[8 * number + 3]
        if code in {0x15, 0x35}:
            assert number + 1 + max(yes, no) < count
