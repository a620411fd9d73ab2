"""The page says in a line what is wrong with other channels, to those who are signed in."""

from __future__ import annotations

import os

import aiohttp
import pytest

from adapters.channels.web.adapter import WebChannel
from adapters.neighbours import Neighbours
from core.config import WebSettings


@pytest.fixture
async def page(clock, logins, desk, permissions):
    """A page, what is wrong elsewhere, and a browser that is signed in."""
    troubles = []
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    channel.show_troubles(lambda: troubles)
    await channel.open(desk)
    code = channel.link()[0].rsplit("/", 1)[1]
    origin = channel.address.rstrip("/")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        response = await http.post(f"{origin}/login", data={"code": code}, headers={"Origin": origin})
        assert response.status == 200
        yield http, origin, troubles
    await channel.close()


async def line(http, origin):
    async with http.get(origin) as response:
        text = await response.text()
    return text.split("data-troubles", 1)[1].split("</p>", 1)[0]


async def test_while_all_is_well_the_line_is_hidden(page):
    http, origin, _ = page
    assert "hidden>" in await line(http, origin)


async def test_what_is_wrong_is_shown_as_text(page):
    http, origin, troubles = page
    troubles.append("telegram is down: <b>revoked\u202e</b>")
    shown = await line(http, origin)
    assert "hidden" not in shown.split(">")[0]
    assert "telegram is down: &lt;b&gt;revoked" in shown
    assert "\u202e" not in shown


async def test_an_open_page_hears_of_it(page):
    http, origin, troubles = page
    troubles.append("telegram is degraded: connecting")
    async with http.get(f"{origin}/events") as response:
        await response.content.readline()
        assert b'"troubles": "telegram is degraded: connecting"' in await response.content.readline()


async def test_without_a_login_nothing_of_it_is_told(page):
    _, origin, troubles = page
    troubles.append("telegram is down: gone")
    async with aiohttp.ClientSession() as stranger, stranger.get(origin) as response:
        assert response.status == 401
        assert "telegram" not in await response.text()
