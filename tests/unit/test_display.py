from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.display import MASK, duration, elide, safe, time_left

ANY_TEXT = st.text(st.characters(), max_size=80)
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Me"}


def hidden(text: str) -> list[str]:
    return [
        char for char in text if unicodedata.category(char) in FORBIDDEN or (char.isspace() and char != " ")
    ]


@given(ANY_TEXT)
def test_no_control_bidi_or_zero_width_character_survives(text: str) -> None:
    assert hidden(safe(text)) == []


@given(ANY_TEXT)
def test_only_the_newline_survives_in_multiline_text(text: str) -> None:
    shown = safe(text, multiline=True)
    assert set(hidden(shown)) <= {"\n"}
    assert shown.count("\n") == text.count("\n")


@given(ANY_TEXT, st.booleans())
def test_making_safe_twice_changes_nothing(text: str, multiline: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    once = safe(text, multiline=multiline)
    assert safe(once, multiline=multiline) == once


@given(ANY_TEXT)
def test_safe_text_can_always_be_encoded(text: str) -> None:
    safe(text).encode()


@given(st.text(st.sampled_from([chr(c) for c in range(0x20, 0x7F)]), max_size=60))
def test_plain_text_is_left_alone(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("a\rb", "a␍b"),
        ("a\nb", "a␊b"),
        ("a\tb", "a␉b"),
        ("\x7f", "␡"),
        ("\x9b2J", "\\u{9b}2J"),
        ("rm \u202egnp.exe", "rm \\u{202e}gnp.exe"),
        ("a\u200bb", "a\\u{200b}b"),
        ("a\u2028b", "a\\u{2028}b"),
        ("a\u00a0b", "a\\u{a0}b"),
        ("a\u3000b", "a\\u{3000}b"),
        ("\ufeff", "\\u{feff}"),
        ("a\u00adb", "a\\u{ad}b"),
        ("\U000e0041", "\\u{e0041}"),
        ("\u3164", "\\u{3164}"),
        ("\u2800", "\\u{2800}"),
        ("\udc80", "\\x80"),
        ("\ud83d", "\\u{d83d}"),
        ("a\u0338", "a\\u{338}"),
        ("\u0301a", "\\u{301}a"),
    ],
)
def test_what_hides_is_shown_as_what_it_is(raw: str, shown: str) -> None:
    assert safe(raw) == shown


@pytest.mark.parametrize("text", ["naïve café", "日本語", "привет", "שלום", "e\u0301", "🙂 →"])
def test_ordinary_writing_of_any_language_stays(text: str) -> None:
    assert safe(text) == text


def test_a_pile_of_marks_is_shown_one_by_one() -> None:
    assert safe("e" + "\u0301" * 4) == "e\u0301\u0301\\u{301}\\u{301}"


def test_secrets_are_masked_by_value_the_longest_first() -> None:
    shown = safe("curl -H hunter2-long hunter2", secrets=["hunter2", "hunter2-long"])
    assert shown == f"curl -H {MASK} {MASK}"


def test_a_secret_with_a_control_character_is_masked_before_it_is_made_visible() -> None:
    assert safe("x=a\x1bb", secrets=["a\x1bb"]) == f"x={MASK}"


def test_an_empty_secret_masks_nothing() -> None:
    assert safe("abc", secrets=[""]) == "abc"


@given(ANY_TEXT, st.integers(0, 20), st.integers(0, 20))
def test_nothing_is_lost_uncounted_when_text_is_elided(text: str, head: int, tail: int) -> None:
    cut = elide(text, head=head, tail=tail)
    assert len(cut.head) + cut.omitted + len(cut.tail) == len(text)
    assert text.startswith(cut.head)
    assert text.endswith(cut.tail)


def test_the_gap_is_told_in_words() -> None:
    assert elide("a" * 2000, head=2, tail=1).text == "aa …[1,997 characters left out]… a"
    assert elide("abc", head=2, tail=1).text == "abc"


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 ms"),
        (340, "340 ms"),
        (1000, "1 s"),
        (4200, "4.2 s"),
        (125_000, "2 min 5 s"),
        (120_000, "2 min"),
        (11_400_000, "3 h 10 min"),
        (187_200_000, "2 d 4 h"),
    ],
)
def test_durations_read_plainly(ms: int, words: str) -> None:
    assert duration(ms) == words


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "no time left"),
        (-1, "no time left"),
        (1, "1 s left"),
        (112_500, "1 min 53 s left"),
        (59_999, "1 min left"),
    ],
)
def test_time_left_reads_plainly(ms: int, words: str) -> None:
    assert time_left(ms) == words
