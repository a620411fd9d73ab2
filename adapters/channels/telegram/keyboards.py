"""The buttons below a card: pure. Each carries its verb and the nonce of its copy, some a length of time."""

from __future__ import annotations

from collections.abc import Sequence

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from adapters.channels.telegram.text import shorten, visible
from core.display import span
from core.model.card import Card
from core.model.chat import Choice, Verb

_IN_ROW = 3
_LABEL = 48  # a phone shows about as many; the message says it whole


def keyboard(card: Card, nonce: str, *, view_first: bool) -> InlineKeyboardMarkup | None:
    """Return the first buttons of a card; none once it is decided."""
    if not card.waits:
        return None
    return _view_keyboard(nonce) if view_first else answer_keyboard(card, nonce)


def answer_keyboard(card: Card, nonce: str) -> InlineKeyboardMarkup:
    """Return Allow once, Always allow where it is offered, Deny and More."""
    allow = [_button("Allow once", Verb.ALLOW_ONCE, nonce)]
    if card.offers_always:
        allow.append(_button("Always allow", Verb.ALLOW_ALWAYS, nonce))
    return InlineKeyboardMarkup([allow, [_deny(nonce), _button("More", Verb.MORE, nonce)]])


def more_keyboard(card: Card, nonce: str) -> InlineKeyboardMarkup:
    """Return the answers that are given more rarely, and the way back."""
    lasting = [_button(f"Allow {span(ms)}", Verb.ALLOW_FOR, f"{nonce}:{ms}") for ms in card.durations]
    always_any = [_button("Always, any arguments", Verb.ALLOW_ALWAYS_ANY, nonce)] if card.always_any else []
    rows = [lasting[at : at + _IN_ROW] for at in range(0, len(lasting), _IN_ROW)]
    denials = [_button("Deny with a reason", Verb.DENY_BECAUSE, nonce)]
    if card.denies_always:
        denials.insert(0, _button("Deny always", Verb.DENY_ALWAYS, nonce))
    rows += [always_any] if always_any else []
    return InlineKeyboardMarkup([*rows, denials, [_button("Back", Verb.LESS, nonce)]])


def choice_keyboard(choices: Sequence[Choice]) -> InlineKeyboardMarkup:
    """Return a button for each choice, numbered as the message numbers them."""
    return InlineKeyboardMarkup(
        [
            [_button(shorten(f"{number} · {visible(choice.label)}", _LABEL), Verb.CHOOSE, choice.token)]
            for number, choice in enumerate(choices, start=1)
        ]
    )


def _view_keyboard(nonce: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[_button("View all", Verb.VIEW_ALL, nonce)], [_deny(nonce)]])


def _deny(nonce: str) -> InlineKeyboardButton:
    return _button("Deny", Verb.DENY, nonce)


def _button(label: str, verb: Verb, carried: str) -> InlineKeyboardButton:
    return InlineKeyboardButton(label, callback_data=f"{verb}:{carried}")
