"""Answers typed at a real pseudo-terminal: which count, for which card, and which do not."""

from __future__ import annotations

import asyncio
import os
import re
import time
from dataclasses import replace

import pytest

from adapters.channels.terminal.adapter import TerminalChannel
from adapters.channels.terminal.answers import Asked, Said, Unclear, read_line
from adapters.channels.terminal.identity import local_reviewer
from adapters.channels.terminal.printer import Printer
from adapters.channels.terminal.render import Style, fold, list_text
from core.model.card import CardOutcome
from core.model.principal import Reviewer
from core.model.request import Answer, State

IDS = ("3f2b9c1d5e6f", "3f2b0000aaaa", "77778888ffff")


class Tty:
    def __init__(self):
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.output = os.fdopen(os.dup(self.slave), "w", encoding="utf-8")

    def type(self, text):
        os.write(self.master, text.encode())

    async def read(self, until=None):
        """Read until `until` has come (it must within five seconds), or until all is still for a moment."""
        data, quiet, deadline = b"", 0, time.monotonic() + 5
        while quiet < 4 and time.monotonic() < deadline:
            await asyncio.sleep(0.015)
            try:
                data += os.read(self.master, 65536)
                quiet = 0
            except BlockingIOError:
                quiet += until is None or until in self.plain(data)
        self.raw = data.decode()
        return self.plain(data)

    @staticmethod
    def plain(data):
        return re.sub(r"\x1b\[[0-9;]*m", "", data.decode(errors="replace")).replace("\r\n", "\n")

    async def say(self, text, until=None):
        self.type(text)
        return await self.read(until)

    def close(self):
        self.output.close()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def tty():
    tty = Tty()
    yield tty
    tty.close()


@pytest.fixture
async def channel(tty, clock, desk):
    channel = TerminalChannel(tty.slave, tty.output, clock, Reviewer("terminal", "1000", "ann"))
    await channel.open(desk)
    yield channel
    await channel.close()


@pytest.fixture
async def asked(channel, tty, clock, desk, make_card):
    """One card that was printed long enough ago."""
    card = desk.ask(make_card())
    await channel.post(card, "", "")
    await tty.read("? help")
    clock.advance(500)
    return card


@pytest.mark.parametrize(
    ("typed", "answer", "reason"),
    [
        ("a\n", Answer.ALLOW_ONCE, None),
        ("once\n", Answer.ALLOW_ONCE, None),
        ("A\n", Answer.ALLOW_ALWAYS, None),
        ("always\n", Answer.ALLOW_ALWAYS, None),
        ("d\n", Answer.DENY, None),
        ("deny not on a Friday\n", Answer.DENY, "not on a Friday"),
        ("a 3f2b\n", Answer.ALLOW_ONCE, None),
        ("d 3f2b too risky\n", Answer.DENY, "too risky"),
        ("D\n", Answer.DENY_ALWAYS, None),
        ("never 3f2b\n", Answer.DENY_ALWAYS, None),
        ("D not\u202e this one\n", Answer.DENY_ALWAYS, "not\\u{202e} this one"),
    ],
)
async def test_a_typed_answer_decides(asked, tty, desk, typed, answer, reason) -> None:
    said = await tty.say(typed, "You ")
    assert [(r.request_id, r.answer, r.reason) for r in desk.reviews] == [(asked.request_id, answer, reason)]
    assert "You " in said


@pytest.mark.parametrize(
    "typed",
    [
        "\n",
        "   \n",
        "y\n",
        "yes\n",
        "allow\n",
        "aa\n",
        "a 77\n",
        "a 7777\n",
        "a 3f2b now\n",
        "a 3f2\n",
        "?\n",
        "list\n",
        "f\n",
        "f 30\n",
        "f 30x\n",
        "f 9s\n",
        "f 31d\n",
        "f -30m\n",
        "f 3f2b 30m\n",
        "f 30m 7777\n",
        "f 30m 3f2b because\n",
        "F 30m\n",
        "a 30m\n",
        "a for 30m\n",
        "A 30m\n",
        "\x00\n",
        "\N{CYRILLIC SMALL LETTER A}\n",
    ],
)
async def test_a_line_that_is_nearly_an_answer_decides_nothing(asked, tty, desk, typed) -> None:  # noqa: ARG001 - waits
    await tty.say(typed)
    assert desk.reviews == []


@pytest.mark.parametrize(
    ("typed", "for_ms"),
    [("f 30m\n", 1_800_000), ("for 10s\n", 10_000), ("f 2H 3f2b\n", 7_200_000), ("f 30d\n", 2_592_000_000)],
)
async def test_a_typed_time_allows_for_that_time(asked, tty, desk, typed, for_ms) -> None:
    await tty.say(typed, "You ")
    (review,) = desk.reviews
    assert (review.request_id, review.answer, review.for_ms) == (asked.request_id, Answer.ALLOW_FOR, for_ms)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("f\n", "needs a time such as 30s, 30m, 2h or 1d after it"),
        ("f 30x\n", "1d, not “30x”. Nothing was decided."),
        ("f 31d\n", "31d is out of bounds: 10 s to 30 d"),
        ("f 30m 7777\n", "begins with 7777"),
    ],
)
async def test_a_time_typed_wrong_is_told_what_is_right(asked, tty, typed, told) -> None:  # noqa: ARG001 - waits
    assert told in await tty.say(typed, told)


@pytest.mark.parametrize(
    ("changes", "unnamed", "told"),
    [
        ({"durations": ()}, "f 30m", "A time is not offered here, because a yes counts once"),
        ({"denies_always": False}, "D deny always", "A test question leaves nothing behind"),
    ],
)
async def test_what_a_card_does_not_offer_is_neither_named_nor_taken(
    channel, tty, clock, desk, make_card, changes, unnamed, told
) -> None:
    await channel.post(desk.ask(make_card(**changes)), "", "")
    assert unnamed not in await tty.read("? help")
    clock.advance(500)
    assert told in await tty.say(f"{unnamed}\n", told)
    assert desk.reviews == []


async def test_the_prompt_names_all_answers_in_one_line(channel, tty, desk, make_card) -> None:
    await channel.post(desk.ask(make_card()), "", "")
    prompt = (await tty.read("? help")).strip().splitlines()[-1]
    assert prompt == "╰─ a once  f 30m  A always  d deny [reason]  D deny always  ? help"


async def test_any_arguments_are_named_and_taken_where_they_are_offered(
    channel, tty, clock, desk, make_card
) -> None:
    card = desk.ask(make_card(always_any=("any `ls` command in the sandbox",)))
    await channel.post(card, "", "")
    shown = await tty.read("? help")
    assert "any `ls` command in the sandbox" in shown
    assert "A always  any arguments, always  d deny" in shown.strip().splitlines()[-1]
    clock.advance(500)
    await tty.say("any\n", "You ")
    assert [review.answer for review in desk.reviews] == [Answer.ALLOW_ALWAYS_ANY]


async def test_any_arguments_are_not_taken_where_they_are_not_offered(asked, tty, desk) -> None:  # noqa: ARG001
    assert "only for programs that just read" in await tty.say("any\n", "just read")
    assert desk.reviews == []


async def test_a_letter_without_enter_decides_nothing(asked, tty, desk) -> None:  # noqa: ARG001 - the card waits
    await tty.say("a")
    assert desk.reviews == []


async def test_what_was_typed_ahead_approves_nothing(channel, tty, clock, desk, make_card) -> None:
    assert "Nothing waits" in await tty.say("a\n", "Nothing waits")
    await channel.post(desk.ask(make_card()), "", "")
    clock.advance(499)
    assert "did not count" in await tty.say("a\n", "did not count")
    assert desk.reviews == []
    clock.advance(1)
    await tty.say("a\n", "You ")
    assert len(desk.reviews) == 1


async def test_the_oldest_is_asked_about_first_and_the_others_are_counted(
    channel, tty, clock, desk, make_card
) -> None:
    first, second = make_card(request_id="1" * 32), make_card(request_id="2" * 32, command="/usr/bin/second")
    await channel.post(desk.ask(first), "", "")
    await channel.post(desk.ask(second), "", "")
    shown = await tty.read("2 in all")
    assert "22222222 waits too, 2 in all" in shown
    assert "/usr/bin/second" not in shown
    clock.advance(500)
    shown = await tty.say("a\n", "/usr/bin/second")
    assert desk.reviews[0].request_id == first.request_id
    assert "/usr/bin/second" in shown
    assert "did not count" in await tty.say("a\n", "did not count")
    assert len(desk.reviews) == 1
    clock.advance(500)
    await tty.say("a\n", "You ")
    assert desk.reviews[1].request_id == second.request_id


async def test_a_card_that_was_not_shown_yet_is_shown_before_it_can_be_answered(
    channel, asked, tty, clock, desk, make_card
) -> None:
    later = desk.ask(make_card(request_id="7" * 32, command="/usr/bin/later"))
    await channel.post(later, "", "")
    shown = await tty.say("a 7777\n", "not shown yet")
    assert "/usr/bin/later" in shown
    assert "not shown yet" in shown
    assert desk.reviews == []
    clock.advance(500)
    await tty.say("a 7777\n", "You ")
    assert desk.reviews[0].request_id == later.request_id != asked.request_id


async def test_always_is_refused_where_it_is_not_offered(channel, tty, clock, desk, make_card) -> None:
    await channel.post(desk.ask(make_card(always=(), always_why="sudo changes who runs")), "", "")
    clock.advance(500)
    assert "sudo changes who runs" in await tty.say("A\n", "sudo changes who runs")
    assert desk.reviews == []


async def test_a_card_decided_elsewhere_cannot_be_answered_and_the_next_one_is_shown(
    channel, asked, tty, desk, make_card
) -> None:
    await channel.post(desk.ask(make_card(request_id="7" * 32, command="/usr/bin/next")), "", "")
    await channel.update(
        desk.settle(asked.request_id, State.DENIED, "denied by bob"), "", asked.request_id, ""
    )
    shown = await tty.read("/usr/bin/next")
    assert "denied by bob" in shown
    assert "/usr/bin/next" in shown
    assert "did not count" in await tty.say("a\n", "did not count")
    assert desk.reviews == []


async def test_what_did_not_run_after_an_answer_is_told(channel, asked, tty, desk) -> None:
    await tty.say("a\n", "You ")
    card = desk.settle(asked.request_id, State.DENIED, "allowed by you")
    words = "approval binding mismatch: executables changed since it was decided"
    await channel.update(replace(card, outcome=CardOutcome(words)), "", asked.request_id, "")
    assert words in await tty.read("mismatch")


async def test_list_and_help_say_what_can_be_done(asked, tty) -> None:
    assert f"{asked.short_id}  2 min left  main: /usr/bin/rm -rf build" in await tty.say(
        "list\n", "2 min left"
    )
    assert "allow it once" in await tty.say("?\n", "allow it once")


async def test_at_the_end_of_input_it_says_once_that_it_asks_no_more(channel, tty, desk, make_card) -> None:
    said = await tty.say("\x04", "asks here no more")
    assert said.count("asks here no more") == 1
    card = desk.ask(make_card())
    ref = await channel.post(card, "", "")
    await channel.update(desk.settle(card.request_id, State.DENIED, "denied by bob"), "", ref, "")
    assert await tty.read() == ""


async def test_colour_is_used_on_a_terminal_and_no_color_is_honoured(
    tty, clock, desk, make_card, monkeypatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for no_color, expected in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_color)
        channel = TerminalChannel(tty.slave, tty.output, clock, local_reviewer())
        await channel.open(desk)
        await channel.post(make_card(on_host=True), "", "")
        await tty.read("? help")
        assert ("\x1b[" in tty.raw) is expected
        assert " HOST " in tty.raw
        await channel.close()


async def test_a_line_that_never_ends_is_not_kept(channel, tty, desk, make_card, clock) -> None:
    await channel.post(desk.ask(make_card()), "", "")
    clock.advance(500)
    for _ in range(5):
        tty.type("x" * 1000)
        await asyncio.sleep(0.01)
    await tty.read()
    assert len(channel._buffer) <= 4096
    assert desk.reviews == []


async def test_a_paused_terminal_delays_nobody(tty) -> None:
    printer = Printer(tty.output)
    printer.start()
    before = time.monotonic()
    for _ in range(400):
        printer.say("x" * 1000)  # nobody reads: the terminal's own buffer is full after a few
    assert time.monotonic() - before < 0.5
    for _ in range(100):
        await tty.read()
        if printer._queue.empty():
            break
    await asyncio.to_thread(printer.stop)


def test_the_reviewer_is_the_user_the_daemon_runs_as() -> None:
    reviewer = local_reviewer()
    assert (reviewer.channel, reviewer.id) == ("terminal", str(os.getuid()))


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("", None),
        ("a", Said(Answer.ALLOW_ONCE)),
        ("a 7777", Said(Answer.ALLOW_ONCE, "77778888ffff")),
        ("A 3f2b9", Said(Answer.ALLOW_ALWAYS, "3f2b9c1d5e6f")),
        ("d 7777 no", Said(Answer.DENY, "77778888ffff", "no")),
        ("d 777 no", Said(Answer.DENY, None, "777 no")),
        ("list", Asked("list")),
        ("help", Asked("help")),
    ],
)
def test_lines_are_read_as_what_they_say(line, meaning) -> None:
    assert read_line(line, IDS) == meaning


@pytest.mark.parametrize("line", ["a 3f2b", "d 3f2b no", "a 9999", "b", "list all", "a 7777 7777"])
def test_unclear_lines_say_what_is_unclear(line) -> None:
    assert isinstance(read_line(line, IDS), Unclear)


def test_folding_drops_nothing_and_counts_wide_characters_twice() -> None:
    assert fold("abcdefghijkl", 8) == ["abcdefgh", "ijkl"]
    assert fold("日本語日本", 8) == ["日本語日", "本"]
    assert fold("", 8) == [""]


def test_an_empty_list_says_so() -> None:
    assert list_text([], 0, Style()) == "Nothing waits."
