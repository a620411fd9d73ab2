from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.channels.web import render
from core.display import safe
from core.model.card import CardOutcome
from core.model.request import State

CSRF = "c" * 64
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def buttons(html: str) -> list[str]:
    return re.findall(r'name="answer" value="([^"]*)"', html)


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


PLAIN = {"durations": (), "denies_always": False}


def test_a_waiting_card_offers_three_answers_and_more(make_card, clock) -> None:
    html = render.card_html(make_card(), clock.now(), CSRF)
    first, more = html.split('<details class="choices"')
    assert list(dict.fromkeys(buttons(first))) == ["deny", "allow-once", "allow-always"]
    assert buttons(more) == ["allow-for:900000", "allow-for:3600000", "deny-always"]
    assert [word in more for word in (">15 min<", ">1 h<", "Exactly this command of this agent")] == [
        True
    ] * 3


def test_a_yes_that_counts_once_means_no_time(make_card, clock) -> None:
    html = render.card_html(make_card(durations=()), clock.now(), CSRF)
    assert "allow-for" not in html
    assert "deny-always" in html


def test_a_test_question_is_not_denied_always(make_card, clock) -> None:
    html = render.card_html(make_card(denies_always=False), clock.now(), CSRF)
    assert "deny-always" not in html
    assert "allow-for:900000" in html


def test_where_there_are_no_more_answers_nothing_opens(make_card, clock) -> None:
    assert "More answers" not in render.card_html(make_card(**PLAIN), clock.now(), CSRF)


def test_nothing_to_remember_means_no_always_button(make_card, clock) -> None:
    card = make_card(always=(), always_why="sudo changes who runs")
    html = render.card_html(card, clock.now(), CSRF)
    assert "allow-always" not in buttons(html)
    assert "sudo changes who runs" in html


@pytest.mark.parametrize("state", [state for state in State if state is not State.WAITING])
def test_a_card_that_no_longer_waits_offers_nothing(make_card, clock, state) -> None:
    html = render.card_html(make_card(state=state, decided="denied by ann"), clock.now(), CSRF)
    assert buttons(html) == []
    assert "<form" not in html
    assert CSRF not in html
    assert "denied by ann" in html


def test_enter_in_the_reason_field_can_only_deny(make_card, clock) -> None:
    html = render.card_html(make_card(), clock.now(), CSRF)
    form = next(form for form in re.findall(r"<form.*?</form>", html, re.DOTALL) if 'name="reason"' in form)
    assert re.search(r"<button[^>]*>", form)[0].count('value="deny"') == 1
    assert buttons(form)[0] == "deny"


def test_a_long_command_is_cut_counted_and_whole_before_the_buttons(make_card, clock) -> None:
    command = "/usr/bin/echo " + "x" * 5000 + " END"
    html = render.card_html(make_card(command=command), clock.now(), CSRF)
    omitted = len(command) - 600 - 240
    assert f"{omitted:,} characters left out here" in html
    assert html.index(command) < html.index('value="allow-once"')
    assert 'class="whole"' in html


def test_a_command_of_many_lines_is_cut_by_lines() -> None:
    command = "\n".join(f"line {n}" for n in range(100))
    cut = render.cut(command)
    assert cut.head.count("\n") == 11
    assert cut.tail.endswith("line 99")
    assert len(cut.head) + cut.omitted + len(cut.tail) == len(command)


def test_a_command_that_fits_is_shown_whole(make_card, clock) -> None:
    html = render.card_html(make_card(command="x" * 1200), clock.now(), CSRF)
    assert "left out" not in html
    assert "View all" not in html


def test_the_stylesheet_hides_allow_until_all_was_viewed() -> None:
    css = (Path(render.__file__).parent / "static" / "sayso.css").read_text()
    assert ".whole:not([open]) ~ .answers .allow" in css


def test_the_host_is_marked_and_the_sandbox_is_not(make_card, clock) -> None:
    marked = render.card_html(make_card(on_host=True, placement="HOST"), clock.now(), CSRF)
    assert "host-mark" in marked
    assert "host-mark" not in render.card_html(make_card(), clock.now(), CSRF)


def test_output_is_shown_as_head_and_tail_with_the_gap_counted(make_card, clock) -> None:
    outcome = CardOutcome("exited with 3", 3, 1500, "H" * 3000 + "T" * 3000, "oh no")
    card = make_card(state=State.FINISHED, decided="allowed by ann", outcome=outcome)
    html = render.card_html(card, clock.now(), CSRF)
    for part in ("exited with 3", "2,000 characters left out here", "oh no", "Exit 3"):
        assert part in html


def test_time_left_is_told_and_never_below_nothing(make_card, clock) -> None:
    card = make_card()
    assert "2 min left" in render.card_html(card, clock.now(), CSRF)
    assert "no time left" in render.card_html(card, card.deadline + 5000, CSRF)


def test_the_title_counts_what_waits(make_card, clock) -> None:
    page = render.Page(clock.now(), CSRF)
    assert "<title>(2) Sayso</title>" in render.home_html([make_card(), make_card()], [], page)
    assert "<title>Sayso</title>" in render.home_html([], [], page)


def test_an_empty_page_says_what_to_try(clock) -> None:
    assert "sayso exec -- rm -rf build" in render.home_html([], [], render.Page(clock.now(), CSRF))


def test_what_is_spoken_is_one_safe_line(make_card) -> None:
    assert render.spoken(make_card(command="ls\x1b[2J\nid")) == "main asks to run ls␛[2J␊id"
    assert render.spoken(make_card(on_host=True)).endswith(", HOST")
    denied = replace(make_card(), state=State.DENIED, decided="denied by ann")
    assert render.spoken(denied) == "Request 3f2b9c1d: denied by ann"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.text(st.characters(), max_size=60))
def test_any_command_reads_as_its_safe_form_and_adds_no_element(make_card, clock, text) -> None:
    html = render.card_html(make_card(command=text, agent=text, reason=text), clock.now(), CSRF)
    plain = render.card_html(make_card(command="x", agent="x", reason="x"), clock.now(), CSRF)
    elements = re.compile(r"<[a-z]+")
    assert elements.findall(html) == elements.findall(plain)
    assert safe(text, multiline=True) in text_of(html)
    assert not [char for char in html if unicodedata.category(char) in HIDDEN and char != "\n"]


def test_a_decided_card_tells_when(make_card, clock) -> None:
    card = make_card(state=State.DENIED, decided="Denied by ann", decided_at=1_700_000_000_000)
    html = render.card_html(card, clock.now(), CSRF)
    assert 'data-at="1700000000000"' in html
    assert "2023-11-14 22:13:20 UTC" in html


def test_a_press_that_did_not_count_is_not_dressed_as_one_that_did(clock) -> None:
    def page(*, accepted: bool) -> str:
        return render.home_html(
            [], [], render.Page(clock.now(), CSRF, render.Said("Denied by ann", accepted))
        )

    assert 'class="said refused"' in page(accepted=False)
    assert 'class="said"' in page(accepted=True)
