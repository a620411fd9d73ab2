"""Who may show the page a login: a connection is looked at once for reading, and anew for each answer."""

from __future__ import annotations

import asyncio
import logging
import os
from asyncio.subprocess import PIPE
from urllib.parse import urlencode

import pytest

from adapters.channels.web.adapter import WebChannel
from adapters.channels.web.identity import csrf_of
from adapters.neighbours import Neighbours
from core.config import WebSettings

# Runs in another user namespace, says that it does, and has what it was given until it is ended.
APART = ("unshare", "--user", "sh", "-c", "echo up; read end")
BESIDE = APART[2:]


class Connection:
    """One connection that is kept alive."""

    def __init__(self, port, reader, writer):
        self.port, self.reader, self.writer = port, reader, writer
        self.token = ""
        self.others = []

    @classmethod
    async def to(cls, channel):
        host, port = channel.address.removeprefix("http://").rstrip("/").rsplit(":", 1)
        return cls(int(port), *await asyncio.open_connection(host.strip("[]"), int(port)))

    async def ask(self, method, path, **form):
        body = urlencode(form)
        origin = f"127.0.0.1:{self.port}"
        head = {
            "Host": origin,
            "Origin": f"http://{origin}",
            "Cookie": f"sayso_login={self.token}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Content-Length": len(body),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n{body}".encode())
        said = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in said.strip().split("\r\n")[1:])
        text = (await self.reader.readexactly(int(fields.get("content-length", "0")))).decode()
        return int(said.split()[1]), text, fields

    async def share(self, *words):
        """Give this connection to another process too."""
        descriptor = self.writer.get_extra_info("socket").fileno()
        pipes = {"stdin": PIPE, "stdout": PIPE}
        other = await asyncio.create_subprocess_exec(*words, pass_fds=[descriptor], **pipes)
        self.others.append(other)
        assert await other.stdout.readline() == b"up\n"

    async def take_back(self):
        for other in self.others:
            await other.communicate(b"end\n")
        self.others = []


@pytest.fixture(params=["127.0.0.1", "::1"])
async def channel(request, clock, logins, desk, permissions):
    settings = WebSettings(host=request.param, port=0)
    channel = WebChannel(settings, logins, permissions, clock, Neighbours({os.geteuid()}))
    await channel.open(desk)
    yield channel
    await channel.close()


@pytest.fixture
async def connection(channel):
    connection = await Connection.to(channel)
    yield connection
    await connection.take_back()
    connection.writer.close()


@pytest.fixture
async def signed_in(channel, connection):
    connection.token = await channel._visitors.logins.begin()
    return connection


async def decide(connection, card, **more):
    form = {"answer": "deny", "csrf": csrf_of(connection.token), **more}
    return await connection.ask("POST", f"/request/{card.request_id}/decide", **form)


async def test_a_connection_that_was_handed_on_answers_nothing_until_it_is_taken_back(
    signed_in, desk, make_card
):
    card = desk.ask(make_card())
    assert (await signed_in.ask("GET", "/session"))[0] == 204
    await signed_in.share(*APART)
    status, text, _ = await decide(signed_in, card)
    assert (status, "another user namespace" in text) == (403, True)
    assert "sayso approve" in text
    assert desk.reviews == []
    assert (await signed_in.ask("GET", "/session"))[0] == 403
    await signed_in.take_back()
    await signed_in.share(*BESIDE)
    assert (await decide(signed_in, card))[0] == 303
    assert len(desk.reviews) == 1


@pytest.mark.parametrize("path", ["/", "/permissions", "/session", "/events", "/request/x"])
async def test_nothing_is_read_with_a_login_from_there(channel, signed_in, path):
    beside = await Connection.to(channel)
    beside.token = signed_in.token
    await signed_in.share(*APART)
    status, text, _ = await signed_in.ask("GET", path)
    assert (status, "another user namespace" in text) == (403, True)
    assert (await signed_in.ask("GET", "/static/icon.svg"))[0] == 200
    assert (await beside.ask("GET", "/session"))[0] == 204
    beside.writer.close()


@pytest.mark.parametrize("path", ["/permissions/x/revoke", "/sessions/level", "/sessions/end", "/sign-out"])
async def test_nothing_is_changed_from_there(signed_in, path):
    assert (await signed_in.ask("GET", "/session"))[0] == 204
    await signed_in.share(*APART)
    status, text, _ = await signed_in.ask("POST", path, csrf=csrf_of(signed_in.token))
    assert (status, "another user namespace" in text) == (403, True)
    await signed_in.take_back()
    status, text, _ = await signed_in.ask("POST", path, csrf=csrf_of(signed_in.token))
    assert "another user namespace" not in text


async def test_a_login_link_is_not_used_up_from_there(channel, connection):
    path = channel.link()[0].split("/", 3)[3]
    await connection.share(*APART)
    for asked in (("GET", f"/{path}"), ("POST", "/login")):
        status, text, _ = await connection.ask(*asked, code=path.rsplit("/", 1)[1])
        assert (status, "another user namespace" in text) == (403, True)
    await connection.take_back()
    assert (await connection.ask("POST", "/login", code=path.rsplit("/", 1)[1]))[0] == 303


async def test_the_log_tells_it_once_a_minute_and_only_where_a_login_was_shown(
    signed_in, desk, make_card, clock, caplog
):
    card = desk.ask(make_card())
    await signed_in.share(*APART)
    token, signed_in.token = signed_in.token, "guessed"
    with caplog.at_level(logging.WARNING, "sayso.web"):
        assert (await decide(signed_in, card))[0] == 401
        assert caplog.records == []
        signed_in.token = token
        for _ in range(3):
            await decide(signed_in, card)
        assert len(caplog.records) == 1
        clock.advance(60_000)
        await decide(signed_in, card)
        assert len(caplog.records) == 2
