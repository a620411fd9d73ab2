"""Where workspaces may lie: apart from Sayso's state, from each other, and from what must stay as it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from adapters.runners.accounts import own_home
from bot.daemon import state_directory
from bot.site import settled, survey
from core.config import Config
from core.errors import ConfigError, StartError
from core.sandbox.workspace import default_root


def found(home, *, protected=(), **config):
    return survey(Config.model_validate(config), home, protected)


def agents(**workspaces):
    return {"by_id": {name: {"workspace": str(path)} for name, path in workspaces.items()}}


@pytest.fixture
def disk(tmp_path):
    """A state directory, and a place for two agents with links between them."""
    for name in ("state", "p/sub", "q", "p-next"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "to-sub").symlink_to(tmp_path / "p" / "sub")
    (tmp_path / "p" / "out").symlink_to(tmp_path / "q")
    return tmp_path


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


@pytest.mark.parametrize("inner", ["p/sub", "p/sub/deep/down", "to-sub", "q/../p/sub"])
def test_one_workspace_inside_another_is_refused_and_both_are_named(disk, inner):
    with pytest.raises(ConfigError, match=r"agents\.helper\.workspace .* agents\.main\.workspace"):
        found(disk / "state", agents=agents(main=disk / "p", helper=disk / inner))


@pytest.mark.parametrize("other", ["p", "q", "p-next", "q/../p"])
def test_the_same_workspace_and_neighbours_are_fine(disk, other):
    site = found(disk / "state", agents=agents(main=disk / "p", helper=disk / other))
    assert str(disk / "p") in site.workspaces


@pytest.mark.parametrize("key", ["helper", "readable", "root"])
def test_a_link_in_a_workspace_on_the_way_to_another_place_is_refused(disk, key):
    through = str(disk / "p" / "out")
    config = {
        "helper": {"agents": agents(main=disk / "p", helper=through)},
        "readable": {"agents": agents(main=disk / "p"), "sandboxing": {"readable": [through]}},
        "root": {"agents": agents(main=disk / "p"), "sandboxing": {"workspace_root": through}},
    }
    with pytest.raises(ConfigError, match=r"through a link in agents\.main\.workspace"):
        found(disk / "state", **config[key])
    (disk / "p" / "out").unlink()
    (disk / "p" / "out").mkdir()
    if key == "readable":
        found(disk / "state", **config[key])  # a directory there is shown: no link leads anywhere


@pytest.mark.parametrize("below", ["", "/..", "/agent-one/deep", "/session-x/y", "/shared/z"])
def test_a_workspace_entangled_with_those_that_sayso_makes_is_refused(disk, below):
    root = disk / "q" / "root"
    with pytest.raises(ConfigError, match=r"agents\.main\.workspace .* sandboxing\.workspaceRoot"):
        found(disk / "state", agents=agents(main=f"{root}{below}"), sandboxing={"workspace_root": str(root)})


@pytest.mark.parametrize("below", ["/mine", "/agent-main", "/mine/deep"])
def test_a_workspace_beside_those_that_sayso_makes_is_fine(disk, below):
    root = disk / "q" / "root"
    found(disk / "state", agents=agents(main=f"{root}{below}"), sandboxing={"workspace_root": str(root)})


@pytest.mark.parametrize("masked", ["p", "p/conf", "p/none/deep", "to-sub", "p/out"])
@pytest.mark.parametrize("access", ["rw", "ro"])
def test_a_masked_path_within_reach_of_commands_is_refused(disk, masked, access):
    sandboxing = {"masked": [str(disk / "q" / "x"), str(disk / masked)], "workspace_access": access}
    config = {"agents": agents(main=disk / "p"), "sandboxing": sandboxing}
    if access == "ro":
        found(disk / "state", **config)  # commands can rename nothing there
        return
    with pytest.raises(ConfigError, match=r"sandboxing\.masked\[1\] .* agents\.main\.workspace .* move it"):
        found(disk / "state", **config)


def test_an_agent_s_own_access_counts_for_what_it_can_write(disk):
    config = {"sandboxing": {"masked": [str(disk / "p" / "x")], "workspace_access": "ro"}}
    writing = {"workspace": str(disk / "p"), "sandbox": {"workspace_access": "rw"}}
    with pytest.raises(ConfigError, match=r"sandboxing\.masked\[0\]"):
        found(disk / "state", agents={"by_id": {"main": writing}}, **config)


@pytest.mark.parametrize("path", ["p/c.yaml", "p/conf/token", "outside.yaml"])
def test_a_file_of_the_configuration_within_reach_of_commands_is_refused(disk, path):
    (disk / "p" / "link.yaml").symlink_to("/etc/hostname")
    (disk / "outside.yaml").symlink_to(disk / "p" / "link.yaml")
    beside = str(disk / "q" / "c.yaml")
    with pytest.raises(ConfigError, match=rf"configured by \({disk}/{path}.* agents\.main\.workspace"):
        found(disk / "state", protected=(beside, str(disk / path)), agents=agents(main=disk / "p"))
    found(disk / "state", protected=(beside,), agents=agents(main=disk / "p"))


@pytest.mark.parametrize("own", [Path(__file__).parents[2], Path(sys.prefix)])
def test_a_workspace_around_sayso_s_own_program_is_refused(disk, own):
    with pytest.raises(ConfigError, match=r"Sayso's program files|the Python environment that Sayso runs in"):
        found(disk / "state", agents=agents(main=own))


def test_the_operator_s_links_are_resolved_once(disk):
    config = Config.model_validate(
        {
            "agents": agents(main=disk / "to-sub"),
            "sandboxing": {"readable": [str(disk / "to-sub")], "masked": [str(disk / "to-sub" / "x")]},
        }
    )
    once = settled(config)
    (disk / "to-sub").unlink()
    assert once.agents.by_id["main"].workspace == str(disk / "p" / "sub")
    assert once.sandboxing.readable == (str(disk / "p" / "sub"),)
    assert once.sandboxing.masked == (str(disk / "p" / "sub" / "x"),)


def test_a_uid_without_an_account_or_home_is_told_what_to_set(monkeypatch):
    for name in ("HOME", "SAYSO_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 43210)
    with pytest.raises(StartError, match=r"no account .* HOME is not set.* set SAYSO_HOME"):
        state_directory()
    monkeypatch.setenv("HOME", "/srv/x")
    assert state_directory() == Path("/srv/x/.sayso")


def test_a_uid_without_an_account_has_the_home_that_its_environment_says(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 43210)
    for said, home in (("/srv/x", "/srv/x"), ("", "/nonexistent"), ("relative", "/nonexistent")):
        monkeypatch.setenv("HOME", said)
        assert own_home() == home
