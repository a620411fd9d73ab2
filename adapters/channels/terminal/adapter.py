"""The daemon's own terminal as a channel: cards are printed, answers typed."""

from __future__ import annotations

import asyncio
import os
from typing import TextIO

from adapters.channels.terminal.answers import (
    Asked,
    Chosen,
    Commanded,
    Said,
    Unclear,
    help_text,
    not_offered,
    read_line,
)
from adapters.channels.terminal.commands import SETTLE_S, Typist
from adapters.channels.terminal.printer import Printer
from adapters.channels.terminal.render import (
    Style,
    card_text,
    decided_text,
    list_text,
    notice_text,
    outcome_text,
    progress_text,
    reply_text,
)
from core.display import safe
from core.errors import SaysoError, StartError
from core.model.card import Card
from core.model.chat import Reply
from core.model.notice import Notice
from core.model.principal import Reviewer
from core.model.request import Review
from core.ports import ChatDesk, Clock, ReviewDesk

_BACKGROUND_S = 1.0
_LONGEST_LINE = 4096
_WIDEST = 110


def style_of(output: TextIO) -> Style:
    """Find out how wide the terminal is and whether to use colour (NO_COLOR is honoured)."""
    try:
        width = os.get_terminal_size(output.fileno()).columns or 80
    except (OSError, ValueError):
        width = 80
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Style(min(max(width, 40), _WIDEST), output.isatty() and not plain)


class TerminalChannel:
    """Asks about the oldest request at a terminal; implements `core.ports.Channel`."""

    name = "terminal"
    keeps_copies = False

    def __init__(self, stdin_fd: int, output: TextIO, clock: Clock, user: Reviewer) -> None:
        self._fd = stdin_fd
        self._output = output
        self._clock = clock
        self._user = user
        self._printer = Printer(output)
        self._style = Style()
        self._waiting: dict[str, Card] = {}
        self._printed: dict[str, float] = {}
        self._answering: set[str] = set()
        self._buffer = b""
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._silent = False

    async def open(self, desk: ChatDesk) -> None:
        """Start listening to what is typed; raises StartError where nothing can be."""
        self._style = style_of(self._output)
        try:
            self._listen()
        except OSError as error:
            raise StartError(
                "channels.terminal needs a terminal on standard input; set channels.terminal.enabled to never"
            ) from error
        self._printer.start()
        typist = Typist(desk, self._clock, self._user)
        self._reader = asyncio.create_task(self._answer_lines(desk, typist), name="terminal-answers")

    async def post(self, card: Card, place: str, nonce: str) -> str:  # noqa: ARG002 - there is one terminal
        """Print a card, or count it where an older one is being asked about."""
        if self._silent or not card.waits:
            return card.request_id
        known = self._waiting.get(card.request_id)
        self._waiting[card.request_id] = card
        if known is not None:
            if card.progress != known.progress:
                self._say(progress_text(card, self._style))
            return card.request_id
        if len(self._waiting) == 1:
            self._show(card)
        else:
            self._say(f"· {card.short_id} waits too, {len(self._waiting)} in all; list shows them")
        return card.request_id

    async def update(self, card: Card, place: str, ref: str, nonce: str) -> None:  # noqa: ARG002 - one place, or the reference has it
        """Tell what became of a card, and ask about the next one."""
        if card.waits:
            await self.post(card, place, "")
            return
        if self._silent:
            return
        if ref in self._waiting and ref not in self._answering:
            self._say(decided_text(card, self._style))
        elif card.outcome is not None:
            self._say(outcome_text(card, self._style))
        self._forget(ref)

    async def remove(self, place: str, ref: str) -> None:
        """Do nothing: what was printed stays printed."""

    async def notify(self, notice: Notice, place: str) -> None:  # noqa: ARG002 - there is one terminal
        """Print a notice."""
        if not self._silent:
            self._say(notice_text(notice, self._style))

    async def close(self) -> None:
        """Stop listening and printing."""
        self._stop_listening()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        await asyncio.to_thread(self._printer.stop)

    def _say(self, text: str) -> None:
        self._printer.say(text)

    def _show(self, card: Card) -> None:
        more = len(self._waiting) - 1
        self._say("\n" + card_text(card, self._clock.now(), more, self._style))
        self._printed[card.request_id] = self._clock.monotonic()

    def _show_oldest(self) -> None:
        oldest = self._oldest()
        if oldest is not None and oldest.request_id not in self._printed:
            self._show(oldest)

    def _forget(self, request_id: str) -> None:
        self._waiting.pop(request_id, None)
        if self._printed.pop(request_id, None) is not None:
            self._show_oldest()

    def _oldest(self) -> Card | None:
        return next(iter(self._waiting.values()), None)

    # Reading

    def _listen(self) -> None:
        self._again = None
        asyncio.get_running_loop().add_reader(self._fd, self._readable)

    def _stop_listening(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _readable(self) -> None:
        if self._in_background():
            # Reading now would stop the whole daemon (SIGTTIN); what is typed is for another program.
            self._stop_listening()
            self._again = asyncio.get_running_loop().call_later(_BACKGROUND_S, self._listen)
            return
        try:
            data = os.read(self._fd, _LONGEST_LINE)
        except OSError:
            data = b""
        if not data:
            self._end_of_input()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        self._buffer = self._buffer[-_LONGEST_LINE:]
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace"))

    def _in_background(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) != os.getpgrp()
        except OSError:
            return False  # not our controlling terminal: no signal either

    def _end_of_input(self) -> None:
        self._stop_listening()
        self._silent = True
        self._say("End of input: Sayso goes on, but asks here no more. Use the page or sayso pending.")

    # Answering

    async def _answer_lines(self, desk: ReviewDesk, typist: Typist) -> None:
        while True:
            line = await self._lines.get()
            said = read_line(line, self._waiting, choosing=typist.choosing)
            if isinstance(said, Commanded | Chosen):
                await self._command(said, typist)
            elif isinstance(said, Said):
                await self._answer(said, desk)
            elif isinstance(said, Unclear):
                self._say(safe(said.text))
            elif isinstance(said, Asked):
                self._explain(said)

    async def _command(self, said: Commanded | Chosen, typist: Typist) -> None:
        try:
            reply = await (
                typist.typed(said.text) if isinstance(said, Commanded) else typist.chosen(said.number)
            )
        except SaysoError as error:
            reply = Reply(str(error))
        if reply is not None:
            self._say(reply_text(reply, self._style))

    def _explain(self, asked: Asked) -> None:
        if asked.what == "help":
            self._say(help_text(self._user))
        else:
            self._say(list_text(self._waiting.values(), self._clock.now(), self._style))

    async def _answer(self, said: Said, desk: ReviewDesk) -> None:
        card = self._waiting.get(said.request_id) if said.request_id else self._oldest()
        if card is None:
            self._say("Nothing waits, so there is nothing to answer.")
            return
        if not self._settled(card):
            return
        refusal = not_offered(card, said.answer)
        if refusal is not None:
            self._say(safe(refusal))
            return
        review = Review(card.request_id, said.answer, self._user, said.reason, said.for_ms)
        self._answering.add(card.request_id)
        try:
            answer = await desk.review(review)
        except SaysoError as error:
            self._say(safe(str(error)))
            return
        finally:
            self._answering.discard(card.request_id)
        self._say(safe(answer.text))
        if answer.card is not None and not answer.card.waits:
            self._forget(card.request_id)
        elif answer.card is not None and card.request_id in self._waiting:
            self._waiting[card.request_id] = answer.card

    def _settled(self, card: Card) -> bool:
        printed = self._printed.get(card.request_id)
        if printed is None:
            self._show(card)
            self._say("This one was not shown yet. Read it, then answer again.")
            return False
        if self._clock.monotonic() - printed < SETTLE_S:
            self._say("This card has only just appeared, so that did not count. Read it, then answer again.")
            return False
        return True
