"""The places where people review, as the contract of channels meets them: a page, a terminal, a group."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import time
from contextlib import nullcontext
from html.parser import HTMLParser

import aiohttp
import pytest

from adapters.channels.telegram.adapter import TelegramChannel
from adapters.channels.terminal.adapter import TerminalChannel
from adapters.channels.web.adapter import WebChannel
from adapters.neighbours import Neighbours
from core.config import TelegramSettings, WebSettings
from core.errors import DeliveryRefused
from core.model.principal import Reviewer
from core.model.request import Answer
from tests.permission_desk import MemoryPermissions
from tests.platforms.telegram.server import BotApi
from tests.platforms.telegram.text import part

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
    "@ann_a look here",
    "https://evil.example.com/x?y=1",
    "install.sh from evil.io/setup",
    "/approve 3f2b9c1d always",
    "#deploy mail@evil.com",
    "[Ann](tg://user?id=5000000001)",
    "@everyone @here <@1234> <!channel>",
    "\n❓ Asks to run · main\n/usr/bin/ls\nWhere /srv",
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
    refuses_unknown = nullcontext()

    def __init__(self, clock, logins, desk):
        self.clock, self.logins, self.desk = clock, logins, desk
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def open(self):
        self.signed_in = False
        self.channel = WebChannel(
            WebSettings(port=0), self.logins, MemoryPermissions(), self.clock, Neighbours({os.geteuid()})
        )
        await self.channel.open(self.desk)

    async def post(self, card):
        return await self.channel.post(card, "", "")

    async def update(self, card, ref):
        await self.channel.update(card, "", ref, "")

    async def restart(self, card):
        await self.channel.close()
        await self.open()
        await self.post(card)

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
        value = f"allow-for:{card.durations[0]}" if answer is Answer.ALLOW_FOR else answer.value
        data = {"answer": value, "csrf": csrf}
        url = f"{self.origin}/request/{card.request_id}/decide"
        async with self.session.post(url, data=data, headers={"Origin": self.origin}) as response:
            return page_of(await response.text()).text

    async def answer_as_outsider(self, card, answer):
        await self.html()
        url = f"{self.origin}/request/{card.request_id}/decide"
        async with (
            aiohttp.ClientSession() as stranger,
            stranger.post(url, data={"answer": answer.value}, headers={"Origin": self.origin}) as response,
        ):
            return page_of(await response.text()).text

    async def end(self):
        await self.session.close()
        await self.channel.close()


class OnTerminal:
    """A real pseudo-terminal, read and typed at from its other side."""

    letters = {  # noqa: RUF012 - never changed
        Answer.ALLOW_ONCE: "a",
        Answer.ALLOW_FOR: "f 15m",
        Answer.ALLOW_ALWAYS: "A",
        Answer.ALLOW_ALWAYS_ANY: "any",
        Answer.DENY: "d",
        Answer.DENY_ALWAYS: "D",
    }
    reviewer = Reviewer("terminal", "1000", "ann")
    refuses_unknown = nullcontext()

    def __init__(self, clock, logins, desk):  # noqa: ARG002 - same shape as the page's
        self.clock, self.desk = clock, desk
        self.master, self.slave = os.openpty()
        self.output = os.fdopen(os.dup(self.slave), "w", encoding="utf-8")
        self.all = ""

    async def open(self):
        self.channel = TerminalChannel(self.slave, self.output, self.clock, self.reviewer)
        await self.channel.open(self.desk)

    async def post(self, card):
        return await self.channel.post(card, "", "")

    async def update(self, card, ref):
        await self.channel.update(card, "", ref, "")

    async def restart(self, card):
        await self.channel.close()
        await self.settled()
        self.all = ""  # what the closed one printed proves nothing about the new one
        await self.open()
        await self.post(card)

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
        return await self.settled("You ", "Too late", "Nothing waits")

    async def end(self):
        await self.channel.close()
        self.output.close()
        os.close(self.master)
        os.close(self.slave)


class OnTelegram:
    """A group of the Bot API on loopback, read and pressed as its members do."""

    labels = {  # noqa: RUF012 - never changed
        Answer.ALLOW_ONCE: "Allow once",
        Answer.ALLOW_FOR: "Allow 15 min",
        Answer.ALLOW_ALWAYS: "Always allow",
        Answer.ALLOW_ALWAYS_ANY: "Always, any arguments",
        Answer.DENY: "Deny",
        Answer.DENY_ALWAYS: "Deny always",
    }

    def __init__(self, clock, logins, desk):  # noqa: ARG002 - same shape as the page's
        self.clock, self.desk = clock, desk
        self.api = BotApi()
        self.ann = self.api.new_user("Ann", username="ann_a")
        self.mallory = self.api.new_user("Ann", username="ann_b")
        self.ops = self.api.new_supergroup("Ops", self.ann, self.mallory)
        self.reviewer = Reviewer("telegram", str(self.ann.id), "Ann")
        desk.approvers.add(f"telegram:{self.ann.id}")
        self.refuses_unknown = pytest.raises(DeliveryRefused)
        self.nonces = {}

    async def open(self):
        if not self.api.calls:
            await self.api.start()
        settings = TelegramSettings(token=self.api.token)
        self.channel = TelegramChannel(settings, self.clock, base_url=self.api.base_url)
        await self.channel.open(self.desk)
        await self.api.called("getUpdates")

    async def post(self, card):
        place = str(self.ops.id)
        nonce = self.desk.nonce(card, "telegram", place)
        ref = await self.channel.post(card, place, nonce)
        self.nonces[ref] = nonce
        return ref

    async def update(self, card, ref):
        await self.channel.update(card, str(self.ops.id), ref, self.nonces.get(ref, ""))

    async def restart(self, card):  # noqa: ARG002 - its message is still there, nobody tells it again
        await self.channel.close()
        await self.open()

    async def shown(self):
        return "\n".join(self.read(message) for message in self.api.sent(self.ops))

    async def fresh(self):
        return await self.shown()

    @staticmethod
    def read(message):
        assert message.links == [], message.text
        kinds = {"bold", "code", "pre", *(["text_mention"] if message.begins_reply else [])}
        assert {entity["type"] for entity in message.entities} <= kinds
        return "\n".join([message.text, *itertools.chain(*message.buttons)])

    def own_words(self):
        """Return what stands outside CODE and PRE, the labels among it, and the buttons; files have none."""
        found = []
        for message in self.api.sent(self.ops):
            if message.document:
                continue
            raw = message.text.encode("utf-16-le")
            for entity in sorted(message.entities, key=lambda entity: -entity["offset"]):
                if entity["type"] != "bold":
                    start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
                    raw = raw[:start] + "▮".encode("utf-16-le") + raw[end:]
            bold = [part(message.text, entity) for entity in message.entities if entity["type"] == "bold"]
            found.append((raw.decode("utf-16-le"), bold, message.buttons))
        return found

    def message_of(self, card):
        sent = self.api.sent(self.ops)
        return [one for one in sent if card.short_id in one.text and not one.begins_reply][-1]

    async def press(self, card, label, person):
        """Press a button; where it is not to be seen, Ann turns to it first, for everybody."""
        message = self.message_of(card)
        labels = list(itertools.chain(*message.buttons))
        if label not in labels:
            turn = "More" if "More" in labels else "Back"
            await self.api.answer_to(self.api.press(message, turn, self.ann))
        return (await self.api.answer_to(self.api.press(message, label, person))).text

    async def answer(self, card, answer):
        return await self.press(card, self.labels[answer], self.ann)

    async def answer_as_outsider(self, card, answer):
        return await self.press(card, self.labels[answer], self.mallory)

    async def asked_why(self, card):
        """Let Ann deny with a reason, and return the message that asks for it."""
        assert await self.press(card, "Deny with a reason", self.ann) == ""
        return [message for message in self.api.sent(self.ops) if message.begins_reply][-1]

    async def replied(self, asked, words, person):
        """Reply to a message in the group and return the answer, which goes to its sender alone."""
        return await self.typed(words, person, reply_to=asked)

    async def typed(self, command, person, reply_to=None):
        """Say a command in the group and return the answer, which goes to its sender alone."""
        private = self.api.private_chat(person)
        before = len(self.api.sent(private))
        self.api.say(self.ops, person, command, reply_to=reply_to)
        answers = await self.api.until(lambda: self.api.sent(private)[before:])
        return self.read(answers[0])

    async def end(self):
        await self.channel.close()
        await self.api.stop()
        self.api.assert_clean()
