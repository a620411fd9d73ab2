"""Who has said yes by now, how far and why, on every copy of a question that several people must allow."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from adapters.channels.telegram.render import render as telegram
from adapters.channels.terminal.render import Style, card_text, progress_text
from adapters.channels.web.render import card_html
from core.approvals.card import card_of
from core.approvals.notices import reminder
from core.model.principal import Reviewer
from core.model.request import Answer, GivenReview

ANN = Reviewer("telegram", "111", "ann", "Ann")
FIRST = "1 of 3: Ann (telegram:111) allowed for 1 h (3 more at most), because: looks right"
SECOND = f"2 of 3: {FIRST.removeprefix('1 of 3: ')}; Bea (cli:1) allowed once"


@pytest.fixture
def make_card(make_request):
    """Make the card of a question that three must allow, with some answers already given."""
    yes = GivenReview(Answer.ALLOW_FOR, ANN, 0, "looks right", 3_600_000, 3)
    given = (yes, GivenReview(Answer.ALLOW_ONCE, Reviewer("cli", "1", "b", "Bea"), 0))

    def make(count, reason=yes.reason):
        reviews = (replace(yes, reason=reason), *given[1:])[:count]
        return card_of(replace(make_request(), required=3, reviews=reviews))

    return make


def shown(card, now):
    """Give the plain text of a card in each channel."""
    page = unescape(re.sub(r"<[^>]*>", "", card_html(card, now, "c" * 64)))
    terminal = card_text(card, now, 0, Style(width=400))
    return {"web": page, "terminal": terminal, "telegram": telegram(card, now).message.text}


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 of 3: 3 different people must say yes"), (1, FIRST), (2, SECOND)]
)
def test_every_channel_shows_the_answers_as_they_come_in(make_card, clock, count, words):
    card = make_card(count)
    for channel, text in shown(card, clock.now()).items():
        assert words in text, channel
    assert words in progress_text(card, Style())
    assert words in reminder(card, clock.now()).text


def test_a_question_that_one_person_may_allow_speaks_of_no_others(make_request, clock):
    for text in shown(card_of(make_request()), clock.now()).values():
        assert "different people" not in text
        assert "Answers" not in text


def test_a_long_reason_is_shortened_and_says_by_how_much(make_card):
    progress = make_card(1, "x" * 450 + "end").progress
    assert len(progress) < 300
    assert progress.endswith("end")
    assert "313" in progress


def test_what_a_reason_hides_is_made_visible(make_card):
    assert "\u202e" not in make_card(1, "fine \u202e yes").progress
