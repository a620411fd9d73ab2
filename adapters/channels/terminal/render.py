"""Cards as framed text: pure. Every line of a card begins with the frame, so no text can pose as ours."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.display import elide, safe, time_left
from core.model.card import Card
from core.model.chat import Reply
from core.model.notice import Notice, NoticeKind

_HEAD, _TAIL = 4_000, 1_000
_LABEL = 9
_ELEVATED = " ELEVATED "
_ABOUT_LEVELS = (NoticeKind.ELEVATED, NoticeKind.UNASKED)


@dataclass(frozen=True, slots=True)
class Style:
    """How wide the terminal is, and whether it shows colour."""

    width: int = 80
    colour: bool = False

    def paint(self, code: str, text: str) -> str:
        """Colour a text that is safe already."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


BOLD, DIM, RED, GREEN, AMBER, ALARM = "1", "2", "31", "32", "33", "1;97;41"


def card_text(card: Card, now: int, more: int, style: Style) -> str:
    """Render a waiting card; `more` others wait behind it."""
    lines = [
        style.paint(BOLD, f"╭─ {safe(card.agent)} asks to run") + style.paint(DIM, f" · {card.short_id}")
    ]
    for mark in card.marks:
        lines += _marked(f" {mark.word} ", mark.text, style)
    lines.append("│")
    lines += [f"│   {style.paint(BOLD, part)}" for part in _command(card, style)]
    lines.append("│")
    for label, text in _facts(card, now):
        lines += _fact(label, text, style)
    lines.append(_prompt(card, more, style))
    return "\n".join(lines)


def _marked(mark: str, text: str, style: Style) -> list[str]:
    first, *rest = _wrapped(safe(text), style.width - len(mark) - 3)
    head = "│ " + style.paint(ALARM, mark) + style.paint(RED, f" {first}")
    return [head, *("│ " + " " * len(mark) + style.paint(RED, f" {part}") for part in rest)]


def progress_text(card: Card, style: Style) -> str:
    """Say in one line who has answered a question that needs several people."""
    return style.paint(DIM, f"· {card.short_id} ") + safe(card.progress)


def decided_text(card: Card, style: Style) -> str:
    """Say in one line how a request ended that was decided elsewhere."""
    said = safe(card.decided or f"is {card.state.value} now")
    return style.paint(DIM, f"· {card.short_id} ") + said


def outcome_text(card: Card, style: Style) -> str:
    """Say in one line what came of a run."""
    line = safe(card.outcome.line) if card.outcome else safe(card.state.value)
    return style.paint(DIM, f"· {card.short_id} ") + line


def list_text(cards: Iterable[Card], now: int, style: Style) -> str:
    """List what waits, one line each, oldest first."""
    lines = []
    for card in cards:
        where = "".join(style.paint(ALARM, f" {mark.word} ") + " " for mark in card.marks)
        command = elide(safe(card.command), head=max(style.width - 40, 30), tail=10).text
        lines.append(
            f"· {card.short_id}  {time_left(card.deadline - now)}  {where}{safe(card.agent)}: {command}"
        )
    return "\n".join(lines) or "Nothing waits."


def reply_text(reply: Reply, style: Style) -> str:
    """Render the answer to a command, with the choices that it offers, by their numbers."""
    lines = [safe(reply.text, multiline=True)]
    lines += [
        f"  {style.paint(BOLD, str(number))}  {safe(choice.label)}"
        for number, choice in enumerate(reply.choices, start=1)
    ]
    if reply.choices:
        lines.append("Type its number.")
    return "\n".join(lines)


def notice_text(notice: Notice, style: Style) -> str:
    """Render what is told without being asked; elevated mode in a way that is not overlooked."""
    about = f"\nRequest: {notice.request_id[:8]}" if notice.request_id else ""
    mark = style.paint(ALARM, _ELEVATED) + " " if notice.kind in _ABOUT_LEVELS else ""
    return mark + notice.text + about


def _facts(card: Card, now: int) -> Iterator[tuple[str, str]]:
    yield "where", f"{card.cwd} {card.place}"
    yield "for", f"{card.agent} · session {card.session}"
    yield "because", f"{card.because} (rule {card.rule}, written in {card.written})"
    for name, value in card.env:
        yield "env", f"{name}={value}"
    if card.progress:
        yield "answers", card.progress
    if card.offers_always:
        yield "always", f"would let {card.agent} run, without asking again: {', '.join(card.always)}"
        if card.always_any:
            yield "any", f"would let it run: {', '.join(card.always_any)}"
    else:
        yield "always", f"not offered: {card.always_why or 'nothing here can be remembered'}"
    yield "time", time_left(card.deadline - now)


def _fact(label: str, text: str, style: Style) -> list[str]:
    first, *rest = _wrapped(safe(text), style.width - _LABEL - 3)
    head = "│ " + style.paint(DIM, label.ljust(_LABEL)) + first
    return [head, *("│ " + " " * _LABEL + part for part in rest)]


def _prompt(card: Card, more: int, style: Style) -> str:
    answers = [f"{style.paint(GREEN, 'a')} once"]
    if card.durations:
        answers.append(f"{style.paint(AMBER, 'f')} 30m")
    if card.offers_always:
        answers.append(f"{style.paint(AMBER, 'A')} always")
    if card.always_any:
        answers.append(f"{style.paint(AMBER, 'any')} arguments, always")
    answers.append(f"{style.paint(RED, 'd')} deny [reason]")
    if card.denies_always:
        answers.append(f"{style.paint(RED, 'D')} deny always")
    others = f"  ({more} more {'waits' if more == 1 else 'wait'} behind it)" if more else ""
    return f"╰─ {'  '.join(answers)}  ? help{others}"


def _command(card: Card, style: Style) -> Iterator[str]:
    cut = elide(safe(card.command, multiline=True), head=_HEAD, tail=_TAIL)
    yield from _folded_lines(cut.head, style)
    if cut.omitted:
        hint = f"…[{cut.omitted:,} characters left out; all of it: sayso show {card.short_id}]…"
        yield from fold(hint, style.width - 5)
        yield from _folded_lines(cut.tail, style)


def _folded_lines(text: str, style: Style) -> Iterator[str]:
    for line in text.split("\n"):
        yield from fold(line, style.width - 5)


def _wrapped(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, max(width, 8), break_on_hyphens=False, drop_whitespace=False) or [""]
    for number in range(1, len(lines)):
        # The space at a break goes before it, where nobody sees it; the frame leaves a column for it.
        if lines[number].startswith(" ") and not lines[number - 1].endswith(" "):
            lines[number - 1], lines[number] = lines[number - 1] + " ", lines[number][1:]
    return [part for line in lines for part in fold(line, width + 1)]


def fold(text: str, width: int) -> list[str]:
    """Break a text into lines that take no more than `width` columns; nothing is dropped."""
    lines, line, used = [], "", 0
    for char in text:
        columns = _columns(char)
        if used + columns > max(width, 8):
            lines.append(line)
            line, used = "", 0
        line += char
        used += columns
    return [*lines, line]


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
