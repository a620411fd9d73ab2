"""Whom a sender pattern names, and whom it must not name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.display import safe
from core.elevated.senders import (
    KNOWN_CHANNELS,
    SenderField,
    SenderPattern,
    authorised,
    matches,
    parse,
    reaches,
    trusts_names,
)
from core.model.principal import Sender

ALICE = Sender(
    channel="discord",
    id="123456789",
    name="Alice Zoë",
    username="Alice99",
    tag="alice#1234",
    address="alice@Corp.Example",
    phone="+1 (555) 123-4567",
)


@pytest.mark.parametrize(
    "pattern",
    [
        "discord:123456789",
        "id:123456789",
        "user:123456789",
        "discord:id:123456789",
        "discord:user:123456789",
        "name:Alice Zoë",
        "name:Alice Zoe\u0308",
        "name:alice zoë",
        "Name:ALICE ZOË",
        "ID:123456789",
        "discord:User:123456789",
        "UserName:alice99",
        "TAG:Alice#1234",
        "From:alice@corp.example",
        "E164:+1 (555) 123-4567",
        "discord:name:Alice Zoë",
        "username:alice99",
        "username:@ALICE99",
        "discord:username:@alice99",
        "tag:alice#1234",
        "from:alice@corp.example",
        "from:alice@CORP.EXAMPLE",
        "e164:+15551234567",
        "e164:+1 555 123.4567",
        "discord:e164:+15551234567",
    ],
)
def test_each_form_names_its_sender(pattern: str) -> None:
    assert matches(parse(pattern), ALICE)
    assert authorised(["telegram:1", pattern], ALICE)


@pytest.mark.parametrize(
    "pattern",
    [
        "telegram:123456789",
        "slack:id:123456789",
        "discord:12345678",
        "discord:1234567890",
        "discord:0123456789",
        "id:00123456789",
        "id:+123456789",
        "name:Alice Zoe",
        "name:Alice",
        "name:Аlice Zoë",  # noqa: RUF001 - a Cyrillic first letter
        "name:123456789",
        "id:Alice99",
        "username:alice",
        "username:alice#1234",
        "telegram:username:alice99",
        "tag:alice#01234",
        "from:Alice@corp.example",
        "from:alice@corp.example.org",
        "from:alice@evil.example",
        "from:corp.example",
        "e164:+15551234568",
        "e164:+155512345670",
        "e164:15551234567",
        "123456789",
        "*",
        "id:*",
        "discord:*",
        "",
    ],
)
def test_a_near_miss_names_nobody(pattern: str) -> None:
    assert not authorised([pattern], ALICE)


@pytest.mark.parametrize(
    "sender",
    [
        Sender("discord", "123456789 "),
        Sender("discord", "\u200b123456789"),
        Sender("discord", "１２３４５６７８９"),  # noqa: RUF001 - full-width digits
        Sender("discord", "", name="123456789"),
        Sender("Discord", "123456789", username="123456789"),
    ],
)
def test_an_id_counts_character_by_character(sender: Sender) -> None:
    assert not authorised(["discord:123456789", "discord:id:123456789"], sender)


@pytest.mark.parametrize("username", ["\u017fam", "\u212aate", "sam ", "@@sam", None, ""])
def test_a_username_that_only_folds_to_the_right_one_is_another(username: str | None) -> None:
    assert not authorised(["username:sam", "username:kate"], Sender("slack", "U1", username=username))


@pytest.mark.parametrize("form", ["name:alice-ops", "username:Alice-Ops", "tag:alice-ops#1", "id:alice-ops"])
def test_a_value_may_hold_a_hyphen(form: str) -> None:
    ops = Sender("slack", "alice-ops", "Alice-Ops", "alice-ops", "Alice-Ops#1")
    assert authorised([form], ops)
    assert not authorised([form.replace("-", "")], ops)
    assert not authorised([form], Sender("slack", "aliceops", "Alice Ops", "aliceops", "alice_ops#1"))


@pytest.mark.parametrize(("name", "plain"), [("\u017fam", "sam"), ("gro\u00df", "gross"), ("\ufb01n", "fin")])
def test_a_name_or_tag_that_only_folds_to_plain_letters_is_another(name: str, plain: str) -> None:
    patterns = [f"name:{plain}", f"tag:{plain}#1"]
    assert not authorised(patterns, Sender("slack", "U1", name, tag=f"{name}#1"))
    assert authorised(patterns, Sender("slack", "U1", plain.upper()))
    assert authorised(patterns, Sender("slack", "U1", tag=f"{plain.upper()}#1"))


@pytest.mark.parametrize("phone", ["+1555123456７", "0015551234567", "15551234567", "+١٥٥٥١٢٣٤٥٦٧", None])  # noqa: RUF001 - digits of other scripts
def test_a_phone_number_needs_its_plus_and_plain_digits(phone: str | None) -> None:
    assert not authorised(["e164:+15551234567"], Sender("telegram", "5", phone=phone))


def test_an_empty_list_authorises_nobody() -> None:
    assert not authorised([], ALICE)


def test_a_faulty_pattern_takes_nothing_from_the_others() -> None:
    assert authorised(["123456789", "nonsense:1", "id:123456789"], ALICE)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("123456789", "does not say what it is"),
        ("Alice", "does not say what it is"),
        ("", "does not say what it is"),
        ("telgram:1", "'telgram' is neither a channel"),
        ("Discord:1", "'Discord' is neither a channel"),
        (":1", "'' is neither a channel"),
        ("discord:nmae:Alice", "'nmae' is no form of a sender"),
        ("discord:", "'' is not an id"),
        ("discord:id:", "'' is not an id"),
        ("id:1:2", "'1:2' is not an id"),
        ("id:1 2", "'1 2' is not an id"),
        ("id:\u0661", "is not an id"),
        (" id:1", "hidden characters or blanks"),
        ("id:1\n", "hidden characters or blanks"),
        ("name:Al\u200bice", "hidden characters or blanks"),
        ("name:\u202eecilA", "hidden characters or blanks"),
        ("name:", "is not a name"),
        ("username:@", "is not a username"),
        ("username:\u017fam", "is not a username"),
        ("tag:alice", "is not of the form username#1234"),
        ("tag:#1234", "is not of the form username#1234"),
        ("from:corp.example", "is not an address"),
        ("from:@corp.example", "is not an address"),
        ("from:alice@", "is not an address"),
        ("e164:15551234567", "is not a phone number"),
        ("e164:+0555123456", "is not a phone number"),
        ("e164:+1555", "is not a phone number"),
        ("id:" + "1" * 300, "is too long"),
    ],
)
def test_a_fault_is_named(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        parse(text)


def test_only_the_id_cannot_be_changed_by_its_user() -> None:
    trusting = {
        text: trusts_names(parse(text))
        for text in ("discord:1", "id:1", "slack:user:U1", "name:A", "username:a", "tag:a#1", "from:a@b")
    }
    assert [text for text, trusts in trusting.items() if not trusts] == ["discord:1", "id:1", "slack:user:U1"]


def test_a_pinned_pattern_reaches_its_own_channel_only() -> None:
    assert reaches("discord:1", "discord")
    assert not reaches("discord:1", "telegram")
    assert reaches("id:1", "telegram")
    assert not reaches("1", "telegram")


@given(st.text(max_size=300))
def test_any_text_is_a_pattern_or_a_value_error(text: str) -> None:
    try:
        said = parse(text).value
    except ValueError as fault:
        said = str(fault)
    assert said
    assert safe(f"x{said}") == f"x{said}"


texts = st.one_of(st.none(), st.text(max_size=20), st.from_regex(r"[a-z0-9@.#+ ]{1,12}", fullmatch=True))
senders = st.builds(
    Sender,
    channel=st.sampled_from(KNOWN_CHANNELS),
    id=st.text(max_size=12),
    name=st.text(max_size=12),
    username=texts,
    tag=texts,
    address=texts,
    phone=texts,
)


@given(senders)
def test_no_pattern_names_somebody_by_what_they_do_not_have(sender: Sender) -> None:
    nobody = Sender(sender.channel, "")
    for field in SenderField:
        for value in (sender.id, sender.name, sender.username, sender.tag, sender.address, sender.phone):
            assert not matches(SenderPattern(field, value or "x"), nobody)


@given(senders, st.sampled_from(KNOWN_CHANNELS), st.from_regex(r"[0-9]{1,3}", fullmatch=True))
def test_an_id_pattern_names_exactly_that_id_in_that_channel(
    sender: Sender, channel: str, number: str
) -> None:
    named = authorised([f"{channel}:{number}"], sender)
    assert named == (sender.channel == channel and sender.id == number)
    assert authorised([f"{channel}:{number}"], Sender(channel, number))
