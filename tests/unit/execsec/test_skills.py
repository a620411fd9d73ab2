"""Programs of skills run without asking only where it was said so, and only from a trusted place."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from core.config import Config
from core.execsec.policy import ExecPolicy, effective
from core.model.command import Placement
from tests.shell_world import World, effect, judge, look

BINS = ["forecast", "/usr/bin/radar", "/srv/tools/rg", "git", "xargs", "sudo", "python3", "npx"]


def under(*, common: bool = True, own: bool | None = None, bins: Any = BINS) -> ExecPolicy:
    agent = {} if own is None else {"autoAllowSkills": own}
    data = {
        "tools": {"exec": {"security": "allowlist", "ask": "off", "autoAllowSkills": common}},
        "agents": {"byId": {"main": {"exec": agent}}},
        "skills": {"weather": {"bins": bins}},
    }
    return effective(Config.model_validate(data), "main", Placement.SANDBOX)


@pytest.mark.parametrize(
    "line",
    [
        "forecast",
        "forecast --city x /etc/x",
        "radar",
        "/usr/bin/radar -v",
        "nice forecast | radar",
        "sh -c radar",
    ],
)
def test_a_registered_program_runs_and_the_answer_says_by_what(line: str) -> None:
    judgement = judge(line, under=under())
    assert str(judgement.decision.effect) == "allow"
    assert set(judgement.satisfied_by) == {"skill"}


@pytest.mark.parametrize(
    "line",
    [
        "forecasts",
        "/usr/bin/forecast",  # registered by name, so only what the PATH finds counts
        "./tools/rg x",  # registered by path, but others can change it
        "git status",
        "xargs forecast",
        "sudo forecast",
        "python3 -c x",
        "python3 x.py",
        "npx forecast",
        "forecast; rm x",
        "forecast $X",
        "LD_PRELOAD=x forecast",
        "bash -c 'forecast; rm x'",
    ],
)
def test_near_misses_are_refused(line: str) -> None:
    assert effect(line, under=under()) == "deny"


def test_skills_bring_nothing_unless_it_is_switched_on() -> None:
    assert effect("forecast", under=under(common=False)) == "deny"
    assert effect("forecast", under=under(common=True, own=False)) == "deny"
    assert effect("forecast", under=under(common=False, own=True)) == "allow"


def test_a_link_to_a_program_that_runs_anything_is_no_skill() -> None:
    world = World(links={"/usr/bin/forecast": "/usr/bin/python3.11"})
    assert effect(look("forecast x", world=world), under=under()) == "deny"
    world = World(links={"/usr/bin/forecast": "/usr/lib/forecast-2"})
    assert effect(look("forecast x", world=world), under=under()) == "allow"


@pytest.mark.parametrize("text", ["tools/rg", "./rg", "*", "/usr/bin/*", " rg", ""])
def test_what_names_no_program_is_an_error(text: str) -> None:
    with pytest.raises(ValidationError):
        under(bins=[text])
