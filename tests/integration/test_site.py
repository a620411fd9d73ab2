"""Where workspaces may lie: apart from Sayso's own state, for every account."""

from __future__ import annotations

import pytest

from bot.site import survey
from core.config import Config
from core.errors import ConfigError
from core.sandbox.workspace import default_root


def found(home, **config):
    return survey(Config.model_validate(config), home, ())


@pytest.mark.parametrize("is_root", [True, False])
def test_the_workspaces_of_no_account_lie_in_the_state_that_nothing_may_touch(is_root):
    root = default_root("/home/ann/.sayso", is_root=is_root)
    assert not f"{root}/".startswith("/home/ann/.sayso/")


@pytest.mark.parametrize("below", ["", "/", "/workspaces", "/deep/down", "/.."])
def test_a_workspace_root_that_meets_the_state_is_refused_and_named(tmp_path, below):
    home = tmp_path / "state"
    home.mkdir()
    with pytest.raises(ConfigError, match=r"sandboxing\.workspaceRoot"):
        found(home, sandboxing={"workspaceRoot": f"{home}{below}"})


def test_a_link_into_the_state_does_not_hide_it(tmp_path):
    home = tmp_path / "state"
    home.mkdir()
    (tmp_path / "innocent").symlink_to(home)
    agents = {"by_id": {"main": {"workspace": str(tmp_path / "innocent" / "w")}}}
    with pytest.raises(ConfigError, match=r"agents\.main\.workspace"):
        found(home, agents=agents)


def test_a_neighbour_with_a_name_that_begins_alike_is_fine(tmp_path):
    home = tmp_path / "state"
    home.mkdir()
    assert (
        found(home, sandboxing={"workspaceRoot": f"{home}-workspaces"}).workspace_root == f"{home}-workspaces"
    )
