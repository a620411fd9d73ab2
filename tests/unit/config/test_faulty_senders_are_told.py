"""A sender pattern that names nobody is told at start, with its place."""

from __future__ import annotations

from bot.config.enforcement import warnings_of
from core.config import Config

FAULTY = ["id:1", "nmae:Alice"]


def told(config: dict) -> list[str]:
    warnings = warnings_of(Config.model_validate(config))
    return [text.partition(" names nobody: ")[0] for text in warnings if " names nobody: " in text]


def test_every_list_of_senders_is_looked_at() -> None:
    target = {"channel": "slack", "to": "U1", "approvers": FAULTY}
    elevated = {"elevated": {"allowFrom": FAULTY}}
    config = {
        "approvals": {"exec": {"approvers": FAULTY, "targets": [target]}},
        "tools": elevated,
        "agents": {"byId": {"main": {"tools": elevated}}},
    }
    assert told(config) == [
        "approvals.exec.approvers[1]",
        "approvals.exec.targets[0].approvers[1]",
        "tools.elevated.allowFrom[1]",
        "agents.main.tools.elevated.allowFrom[1]",
    ]


def test_the_fault_is_in_the_words() -> None:
    config = Config.model_validate({"approvals": {"exec": {"approvers": ["123456789"]}}})
    assert any(
        "approvals.exec.approvers[0] names nobody: '123456789' does not say" in t for t in warnings_of(config)
    )


def test_good_patterns_are_worth_no_word() -> None:
    assert told({"approvals": {"exec": {"approvers": ["id:1", "slack:U1", "from:a@b.example"]}}}) == []
