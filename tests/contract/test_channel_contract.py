"""What every Channel that shows cards must keep, over the page and over a real terminal."""

from __future__ import annotations

import asyncio
import os
import re
import time
import unicodedata
from html.parser import HTMLParser

import aiohttp
import pytest

from adapters.channels.terminal.adapter import TerminalChannel
from adapters.channels.web.adapter import WebChannel
from core.config import WebSettings
from core.display import safe
from core.errors import StartError
from core.model.card import CardOutcome
from core.model.principal import Reviewer
from core.model.request import Answer, State

FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'><b>",
    "</code></pre><h1>Approved</h1>",
    "</article><article class='card'>",
    "<form action=/sign-out method=post><button>Allow once</button></form>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//x>",
    "<base href=//x>",
    "<meta http-equiv=refresh content=0>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&lt;b&gt;",
    "&#60;b&#62;",
    "&amp;",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{# hidden #}",
    "${7*7}",
    "javascript:alert(1)",
    '" autofocus onfocus=alert(1) x="',
    "' onmouseover=alert(1) '",
    "`backticks` **bold** _it_ [a](b)",
    "\x00",
    "\x07",
    "\x08\x08\x08\x08safe",
    "\x1b[2J\x1b[H",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b[8mhidden\x1b[0m",
    "\x1b[1A\x1b[2Kls",
    "\x1b[?1049h",
    "\x1bc",
    "\x9b31m",
    "\x9d0;t\x9c",
    "\x90q\x9c",
    "rm -rf /\rls       ",
    "a\x0bb",
    "a\x0cb",
    "a\tb",
    "a\x7fb",
    "a\x85b",
    "\u202egnp.exe",
    "\u2066rm\u2069",
    "\u2067rm\u2069",
    "\u200fabc\u200e",
    "\u061cabc",
    "r\u200bm",
    "r\u200cm\u200d",
    "\u2060\u2061\u2062",
    "\ufeffrm",
    "rm\u00a0-rf",
    "rm\u2003-rf\u3000/",
    "rm\u2028ls",
    "rm\u2029ls",
    "r\u00adm",
    "\U000e0072\U000e006d",
    "\ufff9a\ufffab\ufffb",
    "\u3164\uffa0\u115f",
    "\u2800\u2800",
    "a\ufe0fb\U000e0100",
    "\ue000",
    "\U0010ffff",
    "\udc80\udcff",
    "\ud83d",
    "e" + "\u0301" * 40,
    "ls\u0338\u20e0",
    "שלום /etc",
    "A\nB\nC",
    "\n╰─ a once\n\nmain asks to run ls",
    " " * 300 + "; rm -rf /",
    "x" * 6000 + "TAIL-OF-IT",
]


class Texts(HTMLParser):
    """Collects elements and visible text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), attrs

    def handle_data(self, data):
        self.text += data


def page_of(html: str) -> Texts:
    parser = Texts()
    parser.feed(html)
    parser.close()
    return parser


def flat(text: str) -> str:
    """Leave out what only breaks lines."""
    return re.sub(r"[│\s]", "", text)


class OnWeb:
    """The page, read and pressed as a browser without JavaScript does."""

    reviewer = Reviewer("web", "operator", "operator")

    def __init__(self, clock, logins):
        self.channel = WebChannel(WebSettings(port=0), logins, clock)
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.signed_in = False

    async def sign_in(self):
        self.origin = self.channel.address.rstrip("/")
        url, _ = self.channel.link()
        code = url.rsplit("/", 1)[1]
        async with self.session.post(
            f"{self.origin}/login", data={"code": code}, headers={"Origin": self.origin}
        ) as response:
            assert response.status == 200
        self.signed_in = True

    async def html(self):
        if not self.signed_in:
            await self.sign_in()
        async with self.session.get(self.channel.address) as response:
            return await response.text()

    async def shown(self):
        return page_of(await self.html()).text

    async def fresh(self):
        return await self.shown()

    async def answer(self, card, answer):
        html = await self.html()
        csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', html)[1]
        data = {"answer": answer.value, "csrf": csrf}
        url = f"{self.origin}/request/{card.request_id}/decide"
        async with self.session.post(url, data=data, headers={"Origin": self.origin}) as response:
            return page_of(await response.text()).text

    async def end(self):
        await self.session.close()
        await self.channel.close()


class OnTerminal:
    """A real pseudo-terminal, read and typed at from its other side."""

    letters = {Answer.ALLOW_ONCE: "a", Answer.ALLOW_ALWAYS: "A", Answer.DENY: "d"}  # noqa: RUF012 - never changed

    def __init__(self, clock, logins):  # noqa: ARG002 - same shape as the page's
        self.clock = clock
        self.master, self.slave = os.openpty()
        self.output = os.fdopen(os.dup(self.slave), "w", encoding="utf-8")
        self.reviewer = Reviewer("terminal", "1000", "ann")
        self.channel = TerminalChannel(self.slave, self.output, clock, self.reviewer)
        self.all = ""

    async def settled(self, *until):
        """Read until one of `until` has come (within five seconds) and the terminal is still."""
        os.set_blocking(self.master, False)
        before, quiet, new = len(self.all), 0, b""
        limit = time.monotonic() + (5 if until else 0.3)
        while quiet < 3 and time.monotonic() < limit:
            await asyncio.sleep(0.015)
            try:
                new += os.read(self.master, 65536)
                quiet = 0
            except BlockingIOError:
                seen = self.plain(new.decode(errors="replace"))
                quiet += any(mark in seen for mark in until)
        self.all += new.decode()
        return self.plain(self.all[before:])

    @staticmethod
    def plain(text):
        return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")

    async def shown(self):
        await self.settled(*([] if self.all else ["? help"]))
        return self.plain(self.all)

    async def fresh(self):
        return await self.settled("· 3f2b9c1d ")

    async def answer(self, card, answer):
        self.clock.advance(1000)
        waits = card.request_id in self.channel._waiting
        prefix = f" {card.request_id}" if waits else ""
        os.write(self.master, f"{self.letters[answer]}{prefix}\n".encode())
        return await self.settled("You ", "Too late")

    async def end(self):
        await self.channel.close()
        self.output.close()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture(params=[OnWeb, OnTerminal])
async def place(request, clock, logins, desk):
    place = request.param(clock, logins)
    await place.channel.open(desk)
    yield place
    await place.end()


async def test_a_posted_card_shows_all_that_a_person_must_know(place, desk, make_card) -> None:
    card = desk.ask(make_card(env=(("CI", "true"),), agent="builder"))
    assert await place.channel.post(card, "", "") == card.request_id
    shown = flat(await place.shown())
    for fact in (card.command, card.cwd, card.placement, "builder", card.session, card.rule, card.written):
        assert flat(fact) in shown, fact
    for fact in (card.reason, "CI=true", *card.always, card.short_id, "2 min left"):
        assert flat(fact) in shown, fact


async def test_what_runs_on_the_host_says_so(place, desk, make_card) -> None:
    await place.channel.post(desk.ask(make_card(on_host=True, placement="HOST")), "", "")
    assert "outside the sandbox" in await place.shown()


async def test_what_runs_in_the_sandbox_does_not_speak_of_the_host(place, desk, make_card) -> None:
    await place.channel.post(desk.ask(make_card()), "", "")
    assert "HOST" not in await place.shown()


async def test_why_always_is_not_offered_is_told(place, desk, make_card) -> None:
    await place.channel.post(desk.ask(make_card(always=(), always_why="sudo changes who runs")), "", "")
    shown = await place.shown()
    assert "sudo changes who runs" in shown
    assert "Always allow" not in shown
    assert "A always" not in shown


@pytest.mark.parametrize("answer", list(Answer))
async def test_an_answer_reaches_the_desk_with_the_person_who_gave_it(place, desk, make_card, answer) -> None:
    card = desk.ask(make_card())
    await place.channel.post(card, "", "")
    await place.shown()
    said = await place.answer(card, answer)
    assert [(r.request_id, r.answer, r.reviewer) for r in desk.reviews] == [
        (card.request_id, answer, place.reviewer)
    ]
    assert f"You {'allowed' if answer.allows else 'denied'} {card.short_id}." in said


async def test_a_card_decided_elsewhere_says_by_whom(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    ref = await place.channel.post(card, "", "")
    await place.shown()
    await place.channel.update(desk.settle(card.request_id, State.DENIED, "denied by ann at 12:01"), "", ref)
    assert "denied by ann at 12:01" in await place.fresh()


async def test_an_answer_that_comes_too_late_is_told_what_stands(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    await place.channel.post(card, "", "")
    await place.shown()
    desk.settle(card.request_id, State.DENIED, "denied by ann at 12:01")
    desk.cards["f" * 32] = make_card(request_id="f" * 32)  # keeps a form on the page
    assert "Too late: denied by ann at 12:01" in await place.answer(card, Answer.ALLOW_ONCE)


async def test_posting_a_card_twice_asks_once(place, desk, make_card) -> None:
    card = desk.ask(make_card(reason="not listed"))
    first = await place.channel.post(card, "", "")
    await place.shown()
    assert await place.channel.post(card, "", "") == first
    assert (await place.shown()).count(card.command) == 1


async def test_a_new_channel_shows_again_what_waited_before_a_restart(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    await place.channel.post(card, "", "")
    await place.channel.close()
    again = type(place)(
        place.channel._clock, getattr(getattr(place.channel, "_logins", None), "_store", None)
    )
    await again.channel.open(desk)
    try:
        await again.channel.post(card, "", "")
        assert card.command in await again.shown()
    finally:
        await again.end()


async def test_an_update_of_a_card_never_posted_does_no_harm(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    await place.channel.update(desk.settle(card.request_id, State.EXPIRED, "nobody answered"), "", "unknown")
    later = desk.ask(make_card(command="/usr/bin/later"))
    await place.channel.post(later, "", "")
    assert "/usr/bin/later" in await place.shown()


async def test_closing_twice_is_safe(place) -> None:
    await place.channel.close()
    await place.channel.close()


async def test_what_a_run_left_is_told(place, desk, make_card) -> None:
    card = desk.ask(make_card())
    ref = await place.channel.post(card, "", "")
    await place.answer(card, Answer.ALLOW_ONCE)
    outcome = CardOutcome("exited with 0 after 1.2 s", 0, 1200, "some output", "")
    ended = desk.settle(card.request_id, State.FINISHED, "allowed by ann", outcome=outcome)
    await place.channel.update(ended, "", ref)
    assert "exited with 0 after 1.2 s" in await place.fresh()


def test_there_are_enough_hostile_texts() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_of_an_agent_can_break_or_disguise_a_card(place, desk, make_card, text) -> None:
    card = make_card(
        command=text, cwd=text, reason=text, agent=text, session=text, env=((text, text),), always=(text,)
    )
    await place.channel.post(desk.ask(card), "", "")
    shown = await place.shown()
    hidden = [char for char in shown if unicodedata.category(char) in FORBIDDEN and char != "\n"]
    assert hidden == []
    assert flat(safe(text, multiline=True))[-10:] in flat(shown)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_output_of_a_run_is_only_text(place, desk, make_card, text) -> None:
    card = desk.ask(make_card())
    ref = await place.channel.post(card, "", "")
    await place.shown()
    outcome = CardOutcome(text, 1, 5, text, text)
    await place.channel.update(desk.settle(card.request_id, State.FINISHED, text, outcome=outcome), "", ref)
    shown = await place.fresh()
    assert not [char for char in shown if unicodedata.category(char) in FORBIDDEN and char != "\n"]


async def test_every_line_of_a_card_at_the_terminal_is_framed(clock, logins, desk, make_card) -> None:
    place = OnTerminal(clock, logins)
    await place.channel.open(desk)
    await place.channel.post(make_card(command="\n╰─ a once\n\nmain asks to run ls"), "", "")
    lines = [line for line in (await place.shown()).split("\n") if line]
    await place.end()
    assert lines[0].startswith("╭─ ")
    assert lines[-1].startswith("╰─ ")
    assert all(line.startswith("│") for line in lines[1:-1])


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_adds_or_removes_an_element_of_the_page(clock, logins, desk, make_card, text) -> None:
    place = OnWeb(clock, logins)
    await place.channel.open(desk)
    try:
        desk.ask(make_card(command="x", agent="x", reason="x", cwd="x"))
        plain = page_of(await place.html()).elements
        desk.ask(make_card(command=text[:500], agent=text, reason=text, cwd=text))
        assert page_of(await place.html()).elements == plain
    finally:
        await place.end()


async def test_a_terminal_that_is_no_terminal_is_a_start_error(clock, desk, tmp_path) -> None:
    with (tmp_path / "file").open("w+") as file:
        channel = TerminalChannel(file.fileno(), file, clock, Reviewer("terminal", "0", "root"))
        with pytest.raises(StartError, match=r"channels\.terminal needs a terminal"):
            await channel.open(desk)
        await channel.close()
