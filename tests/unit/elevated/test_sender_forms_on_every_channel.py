"""Every form of a sender on every channel: whom it names there, and who comes close and is not named."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from core.config import Config
from core.elevated.authority import authority
from core.elevated.senders import KNOWN_CHANNELS
from core.model.principal import Sender

PEOPLE = {
    "telegram": Sender("telegram", "5000000001", "Ann Other", "ann_other"),
    "discord": Sender("discord", "123456789012345678", "Ann Other", "ann.other", "ann#0042"),
    "slack": Sender(
        "slack", "U012AB3CD", "Ann Other", "ann.other", None, "ann@example.com", "+1 555 123 4567"
    ),
    "web": Sender("web", "operator", "the operator"),
    "terminal": Sender("terminal", "1000", "ann"),
    "cli": Sender("cli", "1000", "ann"),
}
FORMS = {
    "id": "id",
    "user": "id",
    "name": "name",
    "username": "username",
    "tag": "tag",
    "from": "address",
    "e164": "phone",
}
# What somebody else could bear that looks or reads alike.
NEAR = {
    "id": lambda value: [
        f"0{value}",
        f"{value}0",
        f"{value} ",
        value[:-1],
        f"{value}\u200b",
        value.swapcase(),
    ],
    "name": lambda value: [value.replace("a", "\u0430").replace("n", "\u0578"), f"{value} ", f"{value}s"],
    "username": lambda value: [f"{value}_", value.replace("a", "\u0430"), value.replace("n", "\u217f")],
    "tag": lambda value: [value.replace("#0042", "#42"), value.replace("#0042", "#00042"), f"x{value}"],
    "address": lambda value: [f"x{value}", f"{value}.evil.example", value.replace("@", "@x."), value.upper()],
    "phone": lambda value: [
        value.replace("+1", "+01"),
        value.replace("+", "00"),
        value.replace("+", ""),
        f"{value}8",
        value.replace("5", "\u0665"),
    ],
}


def admits(pattern, sender):
    elevated = {"enabled": True, "allowFrom": [pattern]}
    return authority(Config.model_validate({"tools": {"elevated": elevated}}), "main").admits(sender)


def combinations():
    for channel, form in product(KNOWN_CHANNELS, FORMS):
        value = getattr(PEOPLE[channel], FORMS[form])
        if value:
            yield channel, form, FORMS[form], value.replace(" ", "") if form == "e164" else value


@pytest.mark.parametrize(("channel", "form", "field", "value"), list(combinations()))
def test_a_form_names_its_sender_and_nobody_who_comes_close(channel, form, field, value):
    sender = PEOPLE[channel]
    for pattern in (f"{form}:{value}", f"{channel}:{form}:{value}"):
        assert admits(pattern, sender), pattern
        given = getattr(sender, field)
        for near in NEAR[field](given):
            if near != given:
                assert not admits(pattern, replace(sender, **{field: near})), (pattern, near)


@pytest.mark.parametrize("channel", KNOWN_CHANNELS)
def test_an_id_pinned_to_a_channel_is_nobodys_in_another(channel):
    sender = PEOPLE[channel]
    assert admits(f"{channel}:{sender.id}", sender)
    for other in KNOWN_CHANNELS:
        if other != channel:
            assert not admits(f"{channel}:{sender.id}", replace(sender, channel=other)), other


@pytest.mark.parametrize(("channel", "form", "field", "value"), list(combinations()))
def test_no_form_is_satisfied_by_another_field(channel, form, field, value):
    wearing = {name: value for name in ("name", "username", "tag", "address", "phone") if name != field}
    impostor = Sender(channel, "999" if field != "id" else "998", **wearing)
    assert not admits(f"{form}:{value}", impostor)


@pytest.mark.parametrize("pattern", ["name:", "username:@", "e164:+", "from:@", "tag:#", "telegram:", "id: "])
def test_what_an_adapter_does_not_know_of_a_sender_matches_nothing(pattern):
    assert not admits(pattern, Sender("telegram", "1"))
