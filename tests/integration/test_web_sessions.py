"""The page of sessions: what it shows, what its forms set, and whose forms set nothing."""

from __future__ import annotations

import json
import os
import re
from html import unescape

import aiohttp
import pytest

from adapters.channels.web.adapter import WebChannel
from adapters.channels.web.identity import csrf_of
from adapters.neighbours import Neighbours
from core.config import WebSettings
from core.model.card import Mark
from core.model.elevation import Level
from core.model.principal import Sender
from core.model.session import SessionKey
from tests.session_desk import BUILDER, MAIN

HALF_AN_HOUR = 1_800_000


class Browser:
    """A browser that is signed in, or the same without its login."""

    def __init__(self, channel):
        self.channel = channel
        self.origin = channel.address.rstrip("/")
        self.http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.token = ""

    async def sign_in(self):
        code = self.channel.link()[0].rsplit("/", 1)[1]
        async with self.http.post(
            f"{self.origin}/login",
            data={"code": code},
            headers={"Origin": self.origin},
            allow_redirects=False,
        ) as response:
            self.token = response.cookies["sayso_login"].value

    async def get(self, path):
        async with self.http.get(self.origin + path) as response:
            return response.status, unescape(await response.text())

    async def post(self, path, form, *, csrf=None, origin=None):
        """Send a form and follow where it leads: the status and the page."""
        data = {"csrf": csrf_of(self.token) if csrf is None else csrf, **form}
        headers = {"Origin": origin or self.origin}
        async with self.http.post(self.origin + path, data=data, headers=headers) as response:
            return response.status, unescape(await response.text())


@pytest.fixture
async def channel(clock, logins, desk, permissions, sessions):
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    channel.show_sessions(sessions.desk)
    await channel.open(desk)
    yield channel
    await channel.close()


@pytest.fixture
async def stranger(channel):
    stranger = Browser(channel)
    yield stranger
    await stranger.http.close()


@pytest.fixture
async def browser(channel, sessions):
    browser = Browser(channel)
    await browser.sign_in()
    await sessions.seen(MAIN, BUILDER)
    yield browser
    await browser.http.close()


def said(page):
    return re.search(r'<p class="said([^"]*)"[^>]*>([^<]*)', page).groups()


def alarm(page):
    """What stands at the top of every page; None where it is hidden."""
    start, text = re.search(r'<p class="(alarm[^>]*)><span data-alarm-text>([^<]*)', page).groups()
    return None if start.endswith("hidden") else text


def article(page, session):
    return next(
        part for part in re.findall(r"<article.*?</article>", page, re.DOTALL) if str(session) in part
    )


def wish(level, session=MAIN, **more):
    return {"session": str(session), "level": level, "for": "30m", "reason": "", **more}


async def test_every_level_is_set_by_its_form_for_its_time(browser, sessions):
    for level, words in (
        ("on", "asked about as the policy says"),
        ("ask", "every one is asked about"),
        ("full", "nobody is asked"),
        ("off", "where the configuration says"),
    ):
        status, page = await browser.post("/sessions/level", wish(level, reason="the deploy"))
        assert (status, said(page)[0]) == (200, "")
        assert words in said(page)[1]
        assert sessions.level(MAIN) == level
    assert sessions.level(BUILDER) is Level.OFF
    kept = sessions.news[0]
    assert (kept.actor, kept.data["until"]) == ("person:web:operator", sessions.clock.now() + HALF_AN_HOUR)


async def test_without_a_time_it_lasts_until_the_session_ends(browser, sessions):
    await browser.post("/sessions/level", wish("on", **{"for": ""}))
    assert sessions.elevations.standing_of(str(MAIN)).until is None
    _, page = await browser.get("/sessions")
    assert "until it ends" in article(page, MAIN)


async def test_a_session_shows_all_that_is_known_of_it_and_the_elevated_come_first(browser, sessions):
    await sessions.bind(BUILDER, "telegram", "-100")
    await sessions.set(BUILDER, Level.FULL, HALF_AN_HOUR, "the <disk> is full\u202e")
    _, page = await browser.get("/sessions")
    assert page.index(str(BUILDER)) < page.index(f"<strong>{MAIN}</strong>")
    shown = article(page, BUILDER)
    for words in (
        "Elevated full",
        "30 min left",
        "by Ann (telegram:1)",
        "the <disk> is full\\u{202e}",
        "telegram -100",
        "<strong>HOST</strong><strong>FULL</strong>",
        "nobody is asked",
    ):
        assert words in shown, words
    assert "Not elevated" in article(page, MAIN)
    assert "host-mark" not in article(page, MAIN)
    assert "Break-glass" not in shown


async def test_break_glass_is_said(browser, sessions):
    cli = Sender("cli", "0", "root")
    await sessions.set(MAIN, Level.ON, HALF_AN_HOUR, "chats are down", cli, break_glass=True)
    _, page = await browser.get("/sessions")
    assert "Break-glass" in article(page, MAIN)
    assert "break-glass" in alarm(page)


async def test_while_a_session_is_elevated_every_page_says_so(browser, sessions):
    pages = ("/", "/permissions", "/sessions")
    assert [alarm((await browser.get(path))[1]) for path in pages] == [None] * 3
    await sessions.set(MAIN, Level.ON, HALF_AN_HOUR)
    await sessions.set(BUILDER, Level.FULL, HALF_AN_HOUR, "why")
    for path in pages:
        lines = alarm((await browser.get(path))[1]).splitlines()
        first, second = (line.removeprefix("• ") for line in lines)
        assert first.startswith(f"Elevated full, nobody is asked: {BUILDER} until ")
        assert second.startswith(f"Elevated on: {MAIN} until ")
    sessions.clock.advance(HALF_AN_HOUR)
    assert alarm((await browser.get("/"))[1]) is None


async def test_many_elevated_sessions_are_counted(browser, sessions):
    for number in range(6):
        await sessions.set(SessionKey("main", "telegram", f"-{number + 1}"), Level.ON)
    lines = alarm((await browser.get("/"))[1]).splitlines()
    assert (len(lines), lines[-1]) == (5, "• And 2 more.")


async def test_an_open_page_hears_of_it(browser, sessions):
    await sessions.set(MAIN, Level.FULL, HALF_AN_HOUR, "why")
    async with browser.http.get(f"{browser.origin}/events") as response:
        await response.content.readline()
        heard = json.loads((await response.content.readline()).removeprefix(b"data: "))["alarm"]
    assert heard["full"] is True
    assert str(MAIN) in heard["text"]


async def test_what_does_not_count_any_more_raises_no_alarm(browser, sessions):
    await sessions.set(MAIN, Level.FULL, HALF_AN_HOUR, "why", Sender("telegram", "9", "Ann", "ann"))
    await sessions.set(BUILDER, Level.OFF)
    _, page = await browser.get("/sessions")
    assert alarm(page) is None
    assert "host-mark" not in page
    assert "Not elevated" in article(page, MAIN)


async def test_ending_a_session_ends_what_was_set_for_it(browser, sessions):
    await sessions.set(MAIN, Level.ON)
    _, page = await browser.post("/sessions/end", {"session": str(MAIN)})
    assert "its level, permissions and chats ended" in said(page)[1]
    assert sessions.level(MAIN) is Level.OFF


class TestNotInAllowFrom:
    @pytest.fixture
    def allow_from(self):
        return ["telegram:1", "telegram:operator", "discord:username:operator", "web:name:operators"]

    async def test_the_page_may_not_elevate_and_says_where_that_is_written(self, browser, sessions):
        for level in ("on", "ask", "full"):
            _, page = await browser.post("/sessions/level", wish(level, reason="please"))
            outcome, words = said(page)
            assert outcome == " refused"
            assert words.startswith(
                "Nothing was changed: web:operator is not in tools.elevated.allowFrom; add it"
            )
            assert sessions.level(MAIN) is Level.OFF
        assert sessions.news == []

    async def test_it_may_switch_off_and_end_what_others_set(self, browser, sessions):
        await sessions.set(MAIN, Level.FULL, HALF_AN_HOUR, "why")
        await browser.post("/sessions/level", wish("off"))
        assert sessions.level(MAIN) is Level.OFF
        await sessions.set(BUILDER, Level.ON)
        await browser.post("/sessions/end", {"session": str(BUILDER)})
        assert sessions.level(BUILDER) is Level.OFF


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"for": ""}, "give a time and a reason"),
        ({"reason": ""}, "give a time and a reason"),
        ({"reason": "   "}, "give a time and a reason"),
        ({"session": "agent:nobody:main"}, "there is no agent 'nobody'"),
        ({"session": "main"}, "is not of the form agent:"),
        ({"for": "31d"}, "31d is out of bounds"),
        ({"for": "30"}, "needs a time such as 30s"),
        ({"level": "fuller"}, "level must be one of off, ask, on, full"),
        ({"level": ""}, "level must be one of"),
        ({"session": ""}, "session must name a session"),
        ({"session": "x" * 1_001}, "session must name a session"),
        ({"reason": "x" * 501}, "longer than 500 characters"),
    ],
)
async def test_a_form_that_lacks_something_is_told_what_and_sets_nothing(browser, sessions, more, words):
    _, page = await browser.post("/sessions/level", wish("full", reason="the deploy") | more)
    assert words in page
    assert sessions.elevations.all() == ()


@pytest.mark.parametrize("path", ["/sessions/level", "/sessions/end"])
async def test_a_form_without_its_proof_or_from_elsewhere_changes_nothing(browser, sessions, channel, path):
    await sessions.set(MAIN, Level.ON)
    other = Browser(channel)
    await other.sign_in()
    await other.http.close()
    for wrong in ({"csrf": ""}, {"csrf": "0" * 64}, {"csrf": csrf_of(other.token)}):
        assert (await browser.post(path, wish("full", reason="x"), **wrong))[0] == 403
    for origin in ("http://evil.example", "null"):
        assert (await browser.post(path, wish("full", reason="x"), origin=origin))[0] == 403
    assert sessions.level(MAIN) is Level.ON


async def test_without_a_login_nothing_is_told_and_nothing_is_set(stranger, sessions):
    await sessions.set(BUILDER, Level.ON)
    status, page = await stranger.get("/sessions")
    assert (status, str(BUILDER) in page) == (401, False)
    for path in ("/sessions/level", "/sessions/end"):
        assert (await stranger.post(path, wish("off", BUILDER), csrf=""))[0] == 401
    assert sessions.level(BUILDER) is Level.ON


async def test_a_page_without_a_desk_for_sessions_has_none(clock, logins, desk, permissions):
    channel = WebChannel(WebSettings(port=0), logins, permissions, clock, Neighbours({os.geteuid()}))
    await channel.open(desk)
    browser = Browser(channel)
    await browser.sign_in()
    assert (await browser.get("/sessions"))[0] == 404
    assert (await browser.post("/sessions/level", wish("on")))[0] == 404
    assert 'href="/sessions">Sessions</a>\n<a' not in (await browser.get("/"))[1]
    await browser.http.close()
    await channel.close()


async def test_a_question_tells_of_elevation(browser, desk, make_card):
    line = "it runs on the host: elevated on (set by <Ann>)"
    desk.ask(make_card(on_host=True, marks=(Mark("ELEVATED", line),)))
    _, page = await browser.get("/")
    assert f"<strong>ELEVATED</strong> {line}" in page
    assert ", HOST, ELEVATED" in page
