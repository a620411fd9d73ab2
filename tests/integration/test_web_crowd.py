"""Connections of whoever is not signed in are bounded, so that nobody keeps the operator from the page."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from adapters.channels.web import crowd, pages
from adapters.channels.web.adapter import WebChannel
from adapters.neighbours import Neighbours
from core.config import WebSettings
from tests.integration.test_web_callers import Connection

# Opens so many connections as another user, says nothing on them, and tells how many are still open.
CROWDS = """
import os, select, socket, sys
port, count, uid = map(int, sys.argv[1:])
"".encode("idna")
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
held = []
for _ in range(count):
    held.append(socket.create_connection(("127.0.0.1", port)))
print("up", flush=True)
sys.stdin.readline()
left = 0
for one in held:
    one.setblocking(False)
    try: left += one.recv(1) != b""
    except BlockingIOError: left += 1
    except OSError: pass
print(left, flush=True)
"""
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


@pytest.fixture
async def channel(clock, logins, desk, permissions):
    neighbours = Neighbours({os.geteuid()})
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, neighbours)
    await channel.open(desk)
    yield channel
    await channel.close()


async def signed_in(channel):
    connection = await Connection.to(channel)
    connection.token = await channel._visitors.logins.begin()
    assert (await connection.ask("GET", "/"))[0] == 200
    return connection


async def idle(channel, count):
    host, port = channel.address.removeprefix("http://").rstrip("/").rsplit(":", 1)
    return [await asyncio.open_connection(host, int(port)) for _ in range(count)]


async def still_open(connections):
    """Count those that the page has not closed."""
    count = 0
    for reader, _ in connections:
        try:
            await asyncio.wait_for(reader.read(1), 0.01)
        except TimeoutError:
            count += 1
        except ConnectionError:
            pass
    return count


def close(connections):
    for _, writer in connections:
        writer.transport.abort()


async def test_of_too_many_the_oldest_go_and_a_new_one_is_served(channel):
    connections = await idle(channel, crowd.MOST_GUESTS + 20)
    newest = await Connection.to(channel)
    assert (await newest.ask("GET", "/"))[0] == 401
    assert await still_open(connections[:21]) == 0
    assert await still_open(connections[21:]) == crowd.MOST_GUESTS - 1
    close(connections)
    newest.writer.close()


async def test_whoever_is_signed_in_stays_whatever_comes(channel):
    operator = await signed_in(channel)
    connections = await idle(channel, 2 * crowd.MOST_GUESTS)
    assert (await operator.ask("GET", "/"))[0] == 200
    close(connections)
    operator.writer.close()


async def test_a_guest_has_so_much_time_and_who_signed_in_has_more(channel, monkeypatch):
    monkeypatch.setattr(crowd, "GUEST_S", 0.3)
    (guest,) = await idle(channel, 1)
    operator = await signed_in(channel)
    assert await asyncio.wait_for(guest[0].read(1), 5) == b""
    assert (await operator.ask("GET", "/"))[0] == 200
    close([guest])
    operator.writer.close()


async def test_half_a_request_is_no_way_to_stay(channel, monkeypatch):
    monkeypatch.setattr(crowd, "GUEST_S", 0.3)
    (guest,) = await idle(channel, 1)
    guest[1].write(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
    assert await asyncio.wait_for(guest[0].read(1), 5) == b""
    close([guest])


@ONLY_ROOT
async def test_who_has_most_makes_room_and_another_user_is_let_in(channel):
    mine = await idle(channel, 3)
    port = channel.address.rstrip("/").rsplit(":", 1)[1]
    command = [sys.executable, "-c", CROWDS, port, str(3 * crowd.MOST_GUESTS), "65534"]
    other = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    )
    assert await other.stdout.readline() == b"up\n"
    newest = await Connection.to(channel)
    assert (await newest.ask("GET", "/"))[0] == 401
    assert await still_open(mine) == 3
    other.stdin.write(b"\n")
    assert int(await other.stdout.readline()) <= crowd.MOST_GUESTS - 3
    await other.wait()
    newest.writer.close()
    close(mine)


async def test_a_flood_is_told_once_a_minute_and_counted(channel, clock, caplog):
    for _ in range(2):
        close(await idle(channel, 3 * crowd.MOST_GUESTS))
    told = [record for record in caplog.records if "too many are not signed in" in record.message]
    assert len(told) == 1
    clock.advance(60_000)
    close(await idle(channel, 2 * crowd.MOST_GUESTS))
    told = [record for record in caplog.records if "too many are not signed in" in record.message]
    assert len(told) == 2
    assert f"of user {os.geteuid()}" in told[1].message


async def test_a_login_that_has_ended_ends_a_stream_that_is_never_quiet(channel, clock, make_card):
    operator = await signed_in(channel)
    operator.writer.write(
        f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{operator.port}\r\n"
        f"Cookie: sayso_login={operator.token}\r\n\r\n".encode()
    )
    await operator.reader.readuntil(b"event: state")
    await channel._visitors.logins.end(operator.token)

    async def never_quiet():
        while True:
            channel._hub.publish(make_card())
            clock.advance(int(pages._BEAT_S * 1000) // 4)
            await asyncio.sleep(0.01)

    noise = asyncio.create_task(never_quiet())
    await asyncio.wait_for(operator.reader.readuntil(b"\r\n0\r\n\r\n"), 10)
    noise.cancel()
    operator.writer.close()


def test_who_is_at_the_other_end_is_a_user_here_and_a_network_elsewhere():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as mine,
    ):
        assert crowd._named(mine.getsockname(), server.getsockname()) == f"user {os.geteuid()}"
    away = ("127.0.0.1", 1)
    assert crowd._named(("192.0.2.7", 1), away) == "192.0.2.7/32"
    assert crowd._named(("2001:db8:1:2:3:4:5:6", 1), away) == "2001:db8:1:2::/64"
