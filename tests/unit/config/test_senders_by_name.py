"""Which senders are trusted by what they may change, and what of elevated mode cannot work."""

from __future__ import annotations

import pytest

from bot.config.elevation import elevation_doubts, senders_by_name
from core.config import Config


def config(elevated, agents=None, **approvals):
    tools = {"elevated": elevated}
    return Config.model_validate({"tools": tools, "agents": agents or {}, "approvals": {"exec": approvals}})


def test_names_are_pointed_out_wherever_they_stand_and_ids_are_not():
    own = {"by_id": {"main": {"tools": {"elevated": {"allowFrom": ["name:Ann", "id:5"]}}}}}
    settings = config(
        {"allowFrom": ["telegram:1", "telegram:username:ann", "nonsense"]}, own, approvers=["tag:ann#1234"]
    )
    assert list(senders_by_name(settings)) == [
        ("approvals.exec.approvers[0]", "tag:ann#1234"),
        ("tools.elevated.allowFrom[1]", "telegram:username:ann"),
        ("agents.main.tools.elevated.allowFrom[0]", "name:Ann"),
    ]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            config({}, {"by_id": {"a": {"tools": {"elevated": {"enabled": True}}}}}),
            ["agents.a.tools.elevated.enabled"],
        ),
        (config({}, {"defaults": {"elevatedDefault": "on"}}), ["elevatedDefault: on has no effect"]),
        (config({"enabled": True}), ["allowFrom is empty"]),
        (
            config({"enabled": True, "allowFrom": ["id:1"]}, required=2),
            ["one person in allowFrom can set full"],
        ),
        (config({"enabled": True, "allowFrom": ["id:1"]}), []),
        (config({}), []),
    ],
)
def test_what_cannot_work_or_lets_in_more_is_told(settings, words):
    doubts = list(elevation_doubts(settings))
    assert len(doubts) == len(words)
    assert all(word in doubt for word, doubt in zip(words, doubts, strict=True))
