"""What an operator is told at load about lists that do something else than they seem to."""

from __future__ import annotations

from typing import Any

import pytest

from bot.config.enforcement import warnings_of
from core.config import Config

TRACKER = {"plugins": {"tracker": {"tools": ["issue_list"]}}}


def told(config: dict[str, Any]) -> tuple[str, ...]:
    return warnings_of(Config.model_validate(config))


def test_an_unknown_channel_is_told_with_the_nearest_known_one() -> None:
    (text,) = told({"groups": {"telegran": {"-1": {"tools": {"deny": ["exec"]}}}}})
    assert text.startswith("groups.telegran: 'telegran' is no channel that Sayso knows")
    assert text.endswith("did you mean telegram?")
    (other,) = told({"plugins": {"tracker": {"groups": {"slak": {"C1": {}}}}}})
    assert other.startswith("plugins.tracker.groups.slak: ")


@pytest.mark.parametrize("channel", ["telegram", "Telegram", "slack", "terminal"])
def test_known_channels_are_not_told(channel: str) -> None:
    assert told({"groups": {channel: {"-1": {"tools": {"deny": ["exec"]}}}}}) == ()


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"tools": {"allow": ["issue_list"]}}, "tools.allow: lists only plugin tools and is set aside"),
        (
            {"tools": {"allow": ["issue_list", "later"]}},
            "tools.allow: lists no built-in tool, so none passes",
        ),
        (
            {"groups": {"slack": {"C1": {"tools": {"allow": ["issue_list"]}}}}},
            "groups.slack.C1.tools.allow: lists no built-in tool, so none passes",
        ),
    ],
)
def test_an_allow_list_without_built_in_tools_is_told(config: dict[str, Any], text: str) -> None:
    assert [each for each in told({**config, **TRACKER}) if each.startswith(text)]


@pytest.mark.parametrize("allow", [[], ["issue_list", "read"], ["*"], ["group:fs", "tracker"]])
def test_an_allow_list_with_built_in_tools_is_not_told(allow: list[str]) -> None:
    assert told({"tools": {"allow": allow}, **TRACKER}) == ()
