"""Commands of chats, typed at a real pseudo-terminal, and the numbers that answer their choices."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field

import pytest

from adapters.channels.terminal.adapter import TerminalChannel
from adapters.channels.terminal.answers import Chosen, Commanded, Unclear, read_line
from adapters.channels.terminal.render import Style, card_text, notice_text
from core.errors import RequestError
from core.model.card import Mark
from core.model.chat import Choice, Press, Reply, Typed
from core.model.notice import Notice, NoticeKind
from core.model.principal import Reviewer, Sender

ANN = Sender("terminal", "1000", "ann")
CHOICES = (Choice("main: agent:main:main", "t" * 22), Choice("builder: agent:builder:main", "u" * 22))
WHICH = Reply("Elevated on for which one?", choices=CHOICES)


@dataclass
class SlashDesk:
    """A ChatDesk that notes what came and says what it is told to say."""

    reply: Reply | None = None
    error: Exception | None = None
    typed_lines: list[Typed] = field(default_factory=list)
    presses: list[Press] = field(default_factory=list)
    reviews: list[object] = field(default_factory=list)

    async def typed(self, typed: Typed) -> Reply | None:
        self.typed_lines.append(typed)
        if self.error:
            raise self.error
        return self.reply

    async def press(self, press: Press) -> Reply:
        self.presses.append(press)
        return Reply(f"{press.nonce[0]} stands.")

    async def review(self, review):
        self.reviews.append(review)


class Screen:
    def __init__(self):
        self.keyboard, self.slave = os.openpty()
        os.set_blocking(self.keyboard, False)
        self.output = os.fdopen(os.dup(self.slave), "w", encoding="utf-8")
        self.text = ""

    async def see(self, words):
        async with asyncio.timeout(5):
            while words not in self.text:
                await asyncio.sleep(0.01)
                try:
                    data = os.read(self.keyboard, 65536).decode(errors="replace")
                except BlockingIOError:
                    continue
                self.text += re.sub(r"\x1b\[[0-9;]*m", "", data).replace("\r\n", "\n")
        return self.text

    async def type(self, line, words):
        self.text = ""
        os.write(self.keyboard, f"{line}\n".encode())
        return await self.see(words)

    def close(self):
        self.output.close()
        os.close(self.keyboard)
        os.close(self.slave)


@pytest.fixture
def slash():
    return SlashDesk()


@pytest.fixture
async def screen(slash, clock):
    screen = Screen()
    channel = TerminalChannel(screen.slave, screen.output, clock, Reviewer("terminal", "1000", "ann"))
    await channel.open(slash)
    yield screen
    await channel.close()
    screen.close()


@pytest.mark.parametrize(
    "line",
    [
        "/elevated on please restart it",
        "/elev",
        "/sayso lock",
        "/sayso status",
        "/sayso bind agent:main:main",
        "/approve 3f2b9c1d",
        "/deny 3f2b9c1d because",
        "/pending",
        "  /ELEVATED on",
        "/elevated onn",
    ],
)
async def test_a_command_reaches_the_desk_whole_as_from_the_user_alone(screen, slash, line):
    slash.reply = Reply("Said.\nIn two lines\u202e.")
    assert "Said.\nIn two lines\\u{202e}." in await screen.type(line, "lines")
    assert slash.typed_lines == [Typed(ANN, "", line, direct=True)]
    assert slash.reviews == []


@pytest.mark.parametrize("line", ["/nothing", "/", "//", "/approve@other_bot 3f2b9c1d", "/elevatedon"])
async def test_what_is_no_command_is_said_so_and_reaches_nobody(screen, slash, line):
    assert f"“{line.split()[0]}” is no command here" in await screen.type(line, "no command here")
    assert slash.typed_lines == []


async def test_a_refusal_by_the_desk_is_told_in_its_words(screen, slash):
    slash.error = RequestError("the store is locked")
    await screen.type("/elevated on", "the store is locked")


async def test_who_is_to_hear_nothing_hears_nothing(screen, slash):
    await screen.type("/elevated on", "/elevated on")
    await screen.type("?", "allow it once")
    assert "None" not in screen.text
    assert len(slash.typed_lines) == 1


async def test_choices_are_listed_and_answered_by_their_number_once(screen, slash, clock):
    slash.reply = WHICH
    shown = await screen.type("/elevated on", "Type its number.")
    assert "  1  main: agent:main:main\n  2  builder: agent:builder:main\n" in shown
    clock.advance(500)
    await screen.type("2", "u stands.")
    assert slash.presses == [Press(ANN, "", "", "c", "u" * 22)]
    await screen.type("2", "“2” is no answer here")
    assert len(slash.presses) == 1


async def test_a_number_that_was_typed_ahead_chooses_nothing(screen, slash, clock):
    slash.reply = WHICH
    await screen.type("/elevated on\n1", "did not count")
    clock.advance(499)
    await screen.type("1", "did not count")
    assert slash.presses == []
    clock.advance(1)
    await screen.type("1", "t stands.")


@pytest.mark.parametrize(
    ("line", "words"), [("3", "from 1 to 2"), ("0", "no answer here"), ("1 2", "no answer here")]
)
async def test_a_number_that_is_not_in_the_list_chooses_nothing(screen, slash, clock, line, words):
    slash.reply = WHICH
    await screen.type("/elevated on", "Type its number.")
    clock.advance(500)
    await screen.type(line, words)
    assert slash.presses == []


async def test_the_next_command_forgets_the_list(screen, slash, clock):
    slash.reply = WHICH
    await screen.type("/elevated full", "Type its number.")
    slash.reply = Reply("Nothing waits for you here.")
    await screen.type("/pending", "for you here")
    clock.advance(500)
    await screen.type("1", "“1” is no answer here")
    assert slash.presses == []


async def test_help_lists_the_commands_and_says_who_one_is(screen):
    shown = await screen.type("?", "ID is what the question shows")
    assert "You are terminal:1000" in shown
    for words in ("/elevated on|ask|full|off", "/sayso lock", "/approve ID", "f 30m"):
        assert words in shown
    assert "/pair" not in shown


def test_a_number_means_something_only_while_there_is_a_choice() -> None:
    assert read_line("2", (), choosing=True) == Chosen(2)
    assert isinstance(read_line("2", ()), Unclear)
    assert read_line("/pending", (), choosing=True) == Commanded("/pending")


def test_elevation_stands_right_below_the_host_and_inside_the_frame(make_card, clock) -> None:
    line = "it runs on the host: elevated on (set by ann (terminal:1000) at 12:00)\n╰─ a once"
    card = make_card(on_host=True, marks=(Mark("ELEVATED", line),))
    shown = card_text(card, clock.now(), 0, Style(60)).splitlines()
    assert shown[1].startswith("│  HOST ")
    assert shown[2].startswith("│  ELEVATED  it runs on the host: elevated on")
    assert all(part.startswith(("│", "╭", "╰")) for part in shown)
    assert "ELEVATED" not in card_text(make_card(on_host=True), clock.now(), 0, Style(60))
    assert "\x1b[1;97;41m ELEVATED \x1b[0m" in card_text(card, clock.now(), 0, Style(60, colour=True))


def test_a_notice_of_elevation_is_marked_and_no_other() -> None:
    style = Style(80, colour=True)
    assert notice_text(Notice(NoticeKind.ELEVATED, "Elevated full"), style).startswith(
        "\x1b[1;97;41m ELEVATED "
    )
    assert (
        notice_text(Notice(NoticeKind.DENIED, "Denied", "3f2b9c1d5e"), style) == "Denied\nRequest: 3f2b9c1d"
    )
