"""Places are numbers; names are refused in words."""

from __future__ import annotations

import pytest

from adapters.channels.telegram.identity import Address, MessageRef, address_of, place_of, ref_of


@pytest.mark.parametrize(
    ("to", "place"),
    [
        ("user:5000000001", "5000000001"),
        ("5000000001", "5000000001"),
        ("channel:-1001234567890", "-1001234567890"),
        ("-4000001", "-4000001"),
        ("thread:-1001234567890/77", "-1001234567890/77"),
        ("-1001234567890/77", "-1001234567890/77"),
        ("thread:-1001234567890/1", "-1001234567890"),
        ("user:4503599627370495", "4503599627370495"),
    ],
)
def test_a_target_names_a_place(to, place) -> None:
    assert place_of(to) == place
    assert place_of(place) == place
    assert str(address_of(place)) == place


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("@ops", "names can pass to somebody else"),
        ("user:@ann", "names can pass to somebody else"),
        ("channel:@ops", "names can pass to somebody else"),
        ("user:-1001234567890", "write channel:-1001234567890"),
        ("channel:5000000001", "write user:5000000001"),
        ("thread:-1001234567890", "write thread:CHAT/THREAD"),
        ("thread:-100/0", "write thread:CHAT/THREAD"),
        ("thread:-100/-5", "write thread:CHAT/THREAD"),
        ("thread:-100/5/6", "write thread:CHAT/THREAD"),
        ("", "names no chat"),
        ("user:", "names no chat"),
        ("user:0", "names no chat"),
        ("user:007", "names no chat"),
        ("user:+5", "names no chat"),
        ("user:5 6", "names no chat"),
        ("user:\uff15", "names no chat"),
        ("user:12345678901234567", "names no chat"),
        ("group:-5", "names no chat"),
        ("-", "names no chat"),
        ("user:5\n6", "names no chat"),
    ],
)
def test_what_is_no_number_is_refused_in_words(to, words) -> None:
    with pytest.raises(ValueError, match=words):
        place_of(to)


def test_a_reference_names_chat_and_message() -> None:
    assert ref_of("-1001234567890/12") == MessageRef(-1001234567890, 12)
    assert str(MessageRef(-5, 6)) == "-5/6"


@pytest.mark.parametrize("ref", ["12", "a/b", "-5/", "/5", "5/-1", "5/6/7", ""])
def test_what_is_no_reference_is_refused(ref) -> None:
    with pytest.raises(ValueError, match="is no message of a chat"):
        ref_of(ref)


def test_an_address_without_a_topic_is_the_chat() -> None:
    assert str(Address(-5)) == "-5"
