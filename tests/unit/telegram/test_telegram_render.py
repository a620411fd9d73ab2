"""Cards as Telegram messages: whole, within the limits, and with nothing in them that a client would link."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telegram import MessageEntity

from adapters.channels.telegram.keyboards import answer_keyboard, choice_keyboard, keyboard, more_keyboard
from adapters.channels.telegram.prompt import why_message
from adapters.channels.telegram.render import (
    choice_message,
    notice_message,
    render,
    reply_message,
    whole_output,
)
from adapters.channels.telegram.text import LONGEST, Text, fit, shorten, units, visible
from core.model.card import Card, CardOutcome, Mark
from core.model.chat import Choice
from core.model.notice import Notice, NoticeKind
from core.model.request import State
from core.model.standing import LONGEST_MS, SHORTEST_MS
from tests.platforms.telegram.text import linked

NONCE = "AAAAAAAAAAAAAAAAAAAAAA"
NOW = 1_700_000_000_000
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

HOSTILE = [
    "@everyone",
    "@sayso_bot",
    "#tag",
    "$USD",
    "/deny 3f2b9c1d",
    "/approve@other_bot x",
    "https://evil.example/x",
    "evil.example",
    "a.sh",
    "www.evil.example",
    "tg://user?id=5",
    "t.me/joinchat/x",
    "mailto:a@evil.example",
    "a@evil.example",
    "+1 234 567 8901",
    "4242424242424242",
    "*bold* _it_",
    "`code`",
    "```\npre\n```",
    "<b>bold</b>",
    "<a href='https://evil.example'>ok</a>",
    "[ok](https://evil.example)",
    "||spoiler||",
    "~~x~~",
    "\u202etxt.exe",
    "\u2066abc\u2069",
    "\u200bhidden",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\xadsoft",
    "\u061c",
    "\U000e0041\U000e007f",
    "\ufe0f",
    "\u034f",
    "\u115f",
    "\u3164",
    "\u2800",
    "\xa0",
    "\u2003",
    "\u3000",
    "\u2028",
    "\u2029",
    "\x00",
    "\x07",
    "\x08\x08",
    "\x1b[2J",
    "\r",
    "\t",
    "\n" * 50,
    " " * 300,
    "a" * 10000,
    "\U0001f600" * 5000,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 400,
    "e\u0301\u0301\u0301\u0301",
    "a\u030ab",
    "a\u0333b",
    "x\u033fy",
    "\u0440\u0430\u0443",
    "\u0430\u0440\u0440\u04cf\u0435.com",
    "\U0001f170\U0001f171",
    "\ud800",
    "\udcff",
    "\U0010ffff",
    "\ue000",
    "Allow once",
    "\u2753 Asks to run \xb7 main",
    "Or /approve 00000000",
    "\u2026 9 characters left out \u2026",
    "\U0001f7e5 HOST",
    "Id 3f2b9c1d",
    "\n\u2705 Allowed \xb7 main",
    "\u202e\u2066@admin\u2069",
    "",
    "evil\u3002example",
    "evil\uff0eexample",
    "@\u0430dmin",
]


def card_of(text: str, **changes: object) -> Card:
    card = Card(
        request_id="3f2b9c1d5e6f7a8b9c0d1e2f3a4b5c6d",
        state=State.WAITING,
        agent=text,
        session=text,
        command=text,
        cwd=text,
        placement="sandbox (bubblewrap)",
        on_host=False,
        reason=f"{text}.",
        rule=text,
        written=text,
        env=((text, text),),
        always=(text,),
        always_why=None,
        durations=(900_000, 3_600_000),
        denies_always=True,
        created_at=NOW,
        deadline=NOW + 120_000,
        progress=text,
        account=text,
        marks=tuple(Mark(word, text) for word in ("HOST", "UNPROTECTED", "ELEVATED", "CHANGEABLE")),
    )
    return replace(card, **changes)


def ended(text: str) -> Card:
    outcome = CardOutcome(text, 1, 5, text, text)
    return card_of(text, state=State.FINISHED, decided=text, decided_at=NOW, outcome=outcome)


def marked(message) -> list[tuple[str, str]]:
    raw = message.text.encode("utf-16-le")
    return [
        (one.type, raw[2 * one.offset : 2 * (one.offset + one.length)].decode("utf-16-le"))
        for one in message.entities
    ]


def outside(message) -> str:
    """Return what stands in no CODE or PRE, where clients link."""
    raw, kept, at = message.text.encode("utf-16-le"), b"", 0
    for one in message.entities:
        if one.type in {MessageEntity.CODE, MessageEntity.PRE}:
            kept += raw[2 * at : 2 * one.offset] + " ".encode("utf-16-le")
            at = one.offset + one.length
    return (kept + raw[2 * at :]).decode("utf-16-le")


def check(message) -> None:
    total = units(message.text)
    assert 0 < total <= LONGEST
    assert len(message.entities) <= 100
    end = 0
    for one in message.entities:
        assert one.length > 0
        assert one.offset >= end
        end = one.offset + one.length
        assert end <= total
    marked(message)  # decodes strictly: fails where an entity splits a pair
    bad = [char for char in message.text if unicodedata.category(char) in FORBIDDEN and char != "\n"]
    assert bad == []
    ours = re.sub(r"\d\d:\d\d:\d\d UTC|\d{1,3}(,\d{3})* characters", "", outside(message))
    assert not re.search(r"[@#$/+]\w|\w[.:@/\u3002\uff0e]\w|\d{3}", ours)
    assert linked(message.text, [one.to_dict() for one in message.entities]) == []


def test_there_are_enough_hostile_texts() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_within_the_limits_and_never_linked(text) -> None:
    for card in (card_of(text), card_of(text, on_host=True, placement="HOST"), ended(text)):
        check(render(card, NOW).message)
    check(notice_message(Notice(NoticeKind.DENIED, text, "3f2b9c1d5e6f")))
    if text:
        check(reply_message(text)[0])


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=3_000), st.integers(1, 40))
def test_any_text_keeps_entities_inside_and_pairs_whole(text, times) -> None:
    check(render(card_of(text * times), NOW).message)
    check(render(ended(text * times), NOW).message)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400), st.integers(60, 500))
def test_what_is_fitted_adds_up_to_the_text(text, most) -> None:
    shown = fit(text, most)
    assert units(shown.text) <= most
    assert text.startswith(shown.head)
    assert text.endswith(shown.tail)
    assert len(shown.head) + shown.omitted + len(shown.tail) == len(text)


@given(st.text(alphabet="ab😀", max_size=50), st.integers(1, 40))
def test_what_is_shortened_says_so(text, most) -> None:
    short = shorten(text, most)
    assert units(short) <= most
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


def test_offsets_count_units_not_characters() -> None:
    message = Text().add("😀😀 ").code("👍x").add(" ").bold("b").message()
    assert [(one.offset, one.length) for one in message.entities] == [(5, 3), (9, 1)]


def test_everything_a_reviewer_needs_is_there(make_card, clock) -> None:
    message = render(make_card(env=(("CI", "true"),)), clock.now()).message
    texts = marked(message)
    assert ("pre", "/usr/bin/rm -rf build") in texts
    assert ("code", "/approve 3f2b9c1d") in texts
    assert ("code", "CI=true") in texts
    assert ("code", "exactly `rm -rf build` in the sandbox") in texts
    assert "Until 22:15:20 UTC · 2 min left at posting" in message.text
    assert "exec.allowlist-miss, written in tools.exec.security (config.yaml, line 12)" in message.text
    assert "HOST" not in message.text


def test_the_host_is_the_first_thing_said(make_card, clock) -> None:
    message = render(make_card(on_host=True, placement="HOST"), clock.now()).message
    assert message.text.startswith("🟥 HOST on this machine itself, outside the sandbox\n")


def test_elevation_is_said_right_below_the_host_also_once_it_ran(make_card, clock) -> None:
    line = "it runs on the host: elevated on (by @ann)"
    card = make_card(on_host=True, marks=(Mark("ELEVATED", line),))
    ran = replace(card, state=State.FINISHED, decided="Allowed once by Ann")
    for message in (render(each, clock.now()).message for each in (card, ran)):
        assert message.text.splitlines()[1] == f"⚡ ELEVATED {line}"
        assert ("bold", "⚡ ELEVATED") in marked(message)
        assert ("code", line) in marked(message)
    assert "ELEVATED" not in render(make_card(), clock.now()).message.text


def test_a_notice_of_elevation_has_a_head_of_its_own() -> None:
    message = notice_message(Notice(NoticeKind.ELEVATED, "Elevated full\nSession: agent:main:main"))
    assert marked(message)[0] == ("bold", "⚡ Elevated")
    assert "Elevated full" in message.text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_choices_of_any_label_are_within_the_limits_and_never_linked(text) -> None:
    choices = tuple(Choice(text, NONCE) for _ in range(8))
    check(choice_message("Which one?", choices))
    for button in (button for row in choice_keyboard(choices).inline_keyboard for button in row):
        assert 0 < units(button.text) <= 48
        assert not [char for char in button.text if unicodedata.category(char) in FORBIDDEN]


def labels(markup) -> list[list[str]]:
    return [[button.text for button in row] for row in markup.inline_keyboard]


def carried(markup) -> list[str]:
    return [button.callback_data for row in markup.inline_keyboard for button in row]


def test_a_short_card_can_be_answered_at_once(make_card) -> None:
    markup = keyboard(make_card(), NONCE, view_first=False)
    assert labels(markup) == [["Allow once", "Always allow"], ["Deny", "More"]]
    assert carried(markup) == [f"{verb}:{NONCE}" for verb in "oadm"]


def test_more_offers_times_denials_and_the_way_back(make_card) -> None:
    card = make_card(durations=(900_000, 3_600_000, 28_800_000))
    markup = more_keyboard(card, NONCE)
    assert labels(markup) == [
        ["Allow 15 min", "Allow 1 h", "Allow 8 h"],
        ["Deny always", "Deny with a reason"],
        ["Back"],
    ]
    times = [f"f:{NONCE}:{ms}" for ms in card.durations]
    assert carried(markup) == [*times, f"n:{NONCE}", f"r:{NONCE}", f"l:{NONCE}"]


def test_more_offers_no_times_and_no_deny_always_where_there_are_none(make_card) -> None:
    markup = more_keyboard(make_card(durations=(), denies_always=False), NONCE)
    assert labels(markup) == [["Deny with a reason"], ["Back"]]


@given(st.lists(st.integers(SHORTEST_MS, LONGEST_MS), max_size=8))
def test_button_data_is_within_its_limit_and_rows_are_short(durations) -> None:
    card = card_of("x", durations=tuple(durations))
    for markup in (more_keyboard(card, NONCE), answer_keyboard(card, NONCE)):
        assert all(len(data.encode()) <= 64 for data in carried(markup))
        assert all(0 < len(row) <= 3 for row in markup.inline_keyboard)


def test_the_question_for_a_reason_mentions_who_is_asked_and_links_nothing_else(make_card) -> None:
    message = why_message(make_card(), 5_000_000_001)
    assert message.text == "Why do you deny 3f2b9c1d? Reply to this message with the reason."
    assert marked(message) == [("bold", "Why"), ("text_mention", "you"), ("code", "3f2b9c1d")]
    assert message.entities[1].user.id == 5_000_000_001


def test_output_that_fits_is_no_file(make_card) -> None:
    assert whole_output(make_card()) is None
    fits = CardOutcome("exited with 0", 0, 5, "x" * 700, "y\n" * 23)
    assert whole_output(make_card(state=State.FINISHED, outcome=fits)) is None


@pytest.mark.parametrize("output", ["x" * 701, "y\n" * 24])
def test_output_that_does_not_fit_is_a_file_with_all_of_it(make_card, output) -> None:
    outcome = CardOutcome("exited with 1", 1, 5, "short", output)
    card = make_card(state=State.FINISHED, outcome=outcome)
    assert whole_output(card) == f"Output\nshort\n\nErrors\n{output}"
    only = replace(outcome, stdout="", stderr=output)
    assert whole_output(replace(card, outcome=only)) == f"Errors\n{output}"


def test_always_is_not_offered_where_there_is_nothing_to_remember(make_card, clock) -> None:
    card = make_card(always=(), always_why="sudo changes who runs")
    assert labels(keyboard(card, NONCE, view_first=False)) == [["Allow once"], ["Deny", "More"]]
    assert "sudo changes who runs" in render(card, clock.now()).message.text


@pytest.mark.parametrize(
    "changes",
    [
        {"command": "x" * 6_000},
        {"command": "\n".join("abcd" * 10)},
        {"cwd": "/" + "d" * 900},
        {"env": (("PATH", "p" * 900),)},
        {"always": ("a" * 900,)},
        {"reason": "r" * 900},
        {"marks": (Mark("ELEVATED", "e" * 900),)},
    ],
)
def test_a_card_that_does_not_fit_must_be_viewed_first(make_card, clock, changes) -> None:
    rendered = render(make_card(**changes), clock.now())
    assert rendered.elided
    assert labels(keyboard(make_card(**changes), NONCE, view_first=True)) == [["View all"], ["Deny"]]
    assert "/approve" not in rendered.message.text
    assert "characters left out" in rendered.message.text


def test_a_card_that_fits_need_not_be_viewed(make_card, clock) -> None:
    assert not render(make_card(command="x" * 1_700), clock.now()).elided


def test_the_gap_counts_exactly_and_the_tail_is_seen(make_card, clock) -> None:
    command = "echo " + "😀" * 3_000 + " && rm -rf /"
    message = render(make_card(command=command), clock.now()).message
    head, tail = [text for kind, text in marked(message) if kind == "pre"]
    (said,) = re.findall(r"… ([\d,]+) characters left out here …", message.text)
    assert int(said.replace(",", "")) == len(command) - len(head) - len(tail)
    assert tail.endswith(" && rm -rf /")


def test_empty_lines_do_not_push_the_end_out_of_sight(make_card, clock) -> None:
    message = render(make_card(command="ls" + "\n" * 500 + "rm -rf /"), clock.now()).message
    assert message.text.count("\n") < 50
    assert [text for kind, text in marked(message) if kind == "pre"][1].endswith("rm -rf /")


def test_once_decided_there_are_no_buttons_and_the_outcome_is_shown(make_card, clock) -> None:
    outcome = CardOutcome("exited with 3 after 1.2 s", 3, 1_200, "out", "err")
    card = make_card(state=State.FINISHED, decided="allowed by ann", decided_at=clock.now(), outcome=outcome)
    message = render(card, clock.now()).message
    assert keyboard(card, NONCE, view_first=False) is None
    for words in ("allowed by ann", "22:13:20 UTC", "exited with 3 after 1.2 s", "out", "err"):
        assert words in message.text


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_words(make_card, clock, state) -> None:
    assert render(make_card(state=state), clock.now()).message.text


def test_marks_that_telegram_takes_out_are_made_visible() -> None:
    assert visible("a\u030a") == "a\\u{30a}"


def test_plain_words_stay_plain_and_names_become_code() -> None:
    message = reply_message("Denied by @ann, see evil.example. Nothing ran.")[0]
    assert marked(message) == [("code", "@ann,"), ("code", "evil.example.")]


def test_a_long_answer_says_that_it_was_cut() -> None:
    message, cut = reply_message("word " * 2_000)
    assert cut
    assert units(message.text) <= LONGEST


@pytest.mark.parametrize(("code", "head"), [(0, "✅ Ran"), (1, "❌ Failed (1)"), (137, "❌ Failed (137)")])
def test_what_ended_badly_is_not_headed_as_if_all_were_well(make_card, clock, code, head):
    outcome = CardOutcome(f"finished with status {code}", code, 5, "", "")
    card = make_card(state=State.FINISHED, decided="allowed by ann", decided_at=clock.now(), outcome=outcome)
    assert head in render(card, clock.now()).message.text
