"""Cards as Telegram messages: pure. Texts of others stand in CODE and PRE, where no client links anything.

Lengths and offsets count UTF-16 units, as Telegram does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from adapters.channels.telegram.text import LONGEST, Message, Text, fit, units, visible
from core.display import Elided, time_left
from core.model.card import Card, CardOutcome
from core.model.chat import Choice
from core.model.notice import Notice, NoticeKind
from core.model.request import State

_COMMAND_ASKED, _COMMAND_ASKED_LINES = 1_700, 30
_WORDS = 450  # what the agent's name and our own words beside the facts take at most
_MARK, _MARKS_ASKED, _MARKS_PAST = 350, 800, 420
_COMMAND_PAST, _COMMAND_PAST_LINES = 900, 12
_OUTPUT, _OUTPUT_LINES = 700, 24

_HEADS = {
    State.WAITING: "❓ Asks to run",
    State.APPROVED: "✅ Allowed",
    State.RUNNING: "⏳ Running",
    State.FINISHED: "✅ Ran",
    State.FAILED: "❌ Failed",
    State.DENIED: "⛔ Denied",
    State.EXPIRED: "⌛ Expired",
    State.WITHDRAWN: "↩ Withdrawn",
    State.INTERRUPTED: "❌ Interrupted",
    State.USED: "✅ Allowed",
}
_SIGNS = {"ELEVATED": "⚡", "CHANGEABLE": "✏"}
_KINDS = {
    NoticeKind.DENIED: "⛔ Denied",
    NoticeKind.SECURITY: "🚨 Security",
    NoticeKind.ASKED_ELSEWHERE: "❓ Asked elsewhere",
    NoticeKind.FINISHED: "🏁 Finished",
    NoticeKind.CHANNEL: "🔌 Channel",
    NoticeKind.REMINDER: "⏰ Still open",
    NoticeKind.ELEVATED: "⚡ Elevated",
    NoticeKind.UNASKED: "⚡ Elevated",
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A card as a message; what had to be left out of it must be viewed before it is allowed."""

    message: Message
    elided: bool


def render(card: Card, now: int) -> Rendered:
    """Render a card as it stands."""
    return _asked(card, now) if card.waits else _past(card)


def whole_output(card: Card) -> str | None:
    """Return all that was kept of a run's output, where its message shows less of it."""
    if card.outcome is None:
        return None
    outputs = [(label, output) for label, output in _outputs(card.outcome) if output]
    if not any(_cut(output, _OUTPUT, _OUTPUT_LINES).omitted for _, output in outputs):
        return None
    return "\n\n".join(f"{label}\n{output}" for label, output in outputs)


def notice_message(notice: Notice) -> Message:
    """Render a notice."""
    text = Text()
    text.bold(_KINDS[notice.kind]).add("\n")
    text.words(fit(visible(notice.text, multiline=True), LONGEST - 100).text)
    if notice.request_id:
        text.add("\n").code(visible(notice.request_id[:8]))
    return text.message()


def reply_message(words: str) -> tuple[Message, bool]:
    """Render an answer, and tell whether something had to be left out."""
    shown = fit(visible(words, multiline=True), LONGEST)
    return Text().words(shown.text).message(), bool(shown.omitted)


def choice_message(words: str, choices: Sequence[Choice]) -> Message:
    """Render a reply that lets its reader choose; labels stand here whole, also where buttons cut them."""
    lines = [words, *(f"{number}. {choice.label}" for number, choice in enumerate(choices, start=1))]
    return reply_message("\n".join(lines))[0]


def _asked(card: Card, now: int) -> Rendered:
    text = Text()
    facts = [(label, fit(visible(value), most)) for label, value, most in _facts(card)]
    marks = _marks(card, _MARKS_ASKED)
    taken = sum(units(text.text) for _, text in marks)
    taken += sum(units(label) + units(value.text) for label, value in facts)
    command = _cut(card.command, min(_COMMAND_ASKED, LONGEST - _WORDS - taken), _COMMAND_ASKED_LINES)
    elided = any(part.omitted for _, part in (("", command), *marks, *facts))
    _head(text, card, marks)
    _block(text, command)
    for label, value in facts:
        text.bold(label).add(" ").code(value.text).add("\n")
    text.bold("Until").add(f" {_moment(card.deadline)} · {time_left(card.deadline - now)} at posting\n")
    if elided:
        text.add("Something is left out here: view all of it, then the Allow buttons appear.\n")
    else:
        text.bold("Or").add(" ").code(f"/approve {visible(card.short_id)}").add("\n")
    text.bold("Id").add(" ").code(visible(card.short_id))
    return Rendered(text.message(), elided)


def _past(card: Card) -> Rendered:
    text = Text()
    _head(text, card, _marks(card, _MARKS_PAST))
    _block(text, _cut(card.command, _COMMAND_PAST, _COMMAND_PAST_LINES))
    text.bold("Where").add(" ").code(fit(visible(_where(card)), 300).text).add("\n")
    if card.decided:
        text.code(fit(visible(card.decided), 400).text).add("\n")
    if card.decided_at is not None:
        text.add(f"{_moment(card.decided_at)}\n")
    if card.outcome is not None:
        text.code(fit(visible(card.outcome.line), 300).text).add("\n")
        for label, output in _outputs(card.outcome):
            if output:
                text.bold(label).add("\n")
                _block(text, _cut(output, _OUTPUT, _OUTPUT_LINES))
    text.bold("Id").add(" ").code(visible(card.short_id))
    return Rendered(text.message(), elided=False)


def _head(text: Text, card: Card, marks: Sequence[tuple[str, Elided]]) -> None:
    for label, shown in marks:
        text.bold(label).add(" ").code(shown.text).add("\n")
    text.bold(_state(card)).add(" · ").code(fit(visible(card.agent), 80).text).add("\n")


def _state(card: Card) -> str:
    code = card.outcome.exit_code if card.outcome else None
    return f"❌ Failed ({code})" if card.state is State.FINISHED and code else _HEADS[card.state]


def _marks(card: Card, most: int) -> tuple[tuple[str, Elided], ...]:
    """Give each mark with its share of so many units."""
    share = min(_MARK, most // max(len(card.marks), 1))
    return tuple(
        (f"{_SIGNS.get(mark.word, '🟥')} {mark.word}", fit(visible(mark.text), share)) for mark in card.marks
    )


def _facts(card: Card) -> Iterator[tuple[str, str, int]]:
    yield "Where", _where(card), 300
    yield "Session", card.session, 150
    if card.progress:
        yield "Answers", card.progress, 400
    yield "Why", card.because, 350
    yield "Rule", f"{card.rule}, written in {card.written}", 250
    if card.env:
        yield "Env", "  ".join(f"{name}={value}" for name, value in card.env), 400
    if card.offers_always:
        yield "Always would remember", ", ".join(card.always), 350
        if card.always_any:
            yield "With any arguments", ", ".join(card.always_any), 200
    else:
        yield "Always is not offered", card.always_why or "nothing here can be remembered", 250


def _outputs(outcome: CardOutcome) -> tuple[tuple[str, str], ...]:
    return ("Output", outcome.stdout), ("Errors", outcome.stderr)


def _where(card: Card) -> str:
    return f"{card.cwd} {card.place}"


def _block(text: Text, shown: Elided) -> None:
    text.pre(shown.head)
    if shown.omitted:
        text.add(f"\n… {shown.omitted:,} characters left out here …\n").pre(shown.tail)
    text.add("\n")


def _cut(value: str, most: int, lines: int) -> Elided:
    """Shorten by lines too: many empty ones would push the end of a command out of sight."""
    value = visible(value, multiline=True)
    rows = value.split("\n")
    if len(rows) <= lines:
        return fit(value, most)
    head, tail = "\n".join(rows[: lines * 2 // 3]), "\n".join(rows[-(lines // 3) :])
    head, tail = fit(head, most * 2 // 3).head, fit(tail[::-1], most // 3).head[::-1]
    return Elided(head, len(value) - len(head) - len(tail), tail)


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S} UTC"
