"""Tools that configuration and operator register, and what plugins keep from chat groups."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import Config
from core.errors import RequestError
from core.policy import ToolIdentity, resolve, tools_row
from core.policy.registry import MOST_PLUGINS, NONE, with_plugin, without_plugin

WEATHER = {"tools": {"registered": ["clock"]}, "plugins": {"weather": {"tools": ["forecast", "Radar"]}}}
BUNDLE = {
    "plugins": {
        "weather": {"tools": ["forecast"]},
        "maps": {"tools": ["route"], "includes": ["weather"]},
        "all": {"includes": ["maps"]},
    }
}

KEPT = {
    "plugins": {
        "weather": {
            "tools": ["forecast", "radar"],
            "groups": {
                "slack": {"C1": {"tools": {"deny": ["radar"]}}, "C2": {"tools": {"allow": ["radar"]}}}
            },
        }
    }
}


def tools(config: dict[str, Any], **identity: Any) -> Any:
    return resolve(Config.model_validate(config), ToolIdentity("main", **identity))


def with_lists(config: dict[str, Any], **lists: list[str]) -> dict[str, Any]:
    return {**config, "tools": {**config.get("tools", {}), **lists}}


class TestInConfig:
    def test_registered_tools_exist_and_full_holds_them(self) -> None:
        assert {"clock", "forecast", "radar"} <= tools(WEATHER).allowed

    def test_another_profile_does_not_hold_them_until_a_list_adds_them(self) -> None:
        coding = with_lists({**WEATHER, "tools": {**WEATHER["tools"], "profile": "coding"}})
        assert tools(coding).removed["forecast"].rule == "tool.not-in-profile"
        assert {"forecast", "radar"} <= tools(with_lists(coding, alsoAllow=["weather"])).allowed

    def test_a_single_tool_is_no_plugins_tool(self) -> None:
        found = tools(with_lists(WEATHER, deny=["group:plugins"])).allowed
        assert "clock" in found
        assert not {"forecast", "radar"} & found

    def test_an_id_stands_for_what_it_includes(self) -> None:
        gone = tools(with_lists(BUNDLE, deny=["all"])).removed
        assert gone["forecast"].source == gone["route"].source == "tools.deny[0]"
        assert "route" in tools(with_lists(BUNDLE, deny=["weather"])).allowed

    def test_a_plugin_with_a_tool_of_its_own_name_is_denied_whole(self) -> None:
        config = with_lists({"plugins": {"weather": {"tools": ["weather", "radar"]}}}, deny=["weather"])
        assert not {"weather", "radar"} & tools(config).allowed

    def test_run_time_plugins_come_on_top(self) -> None:
        found = tools(WEATHER, plugins={"mail": ("send_mail",)}).allowed
        assert {"forecast", "send_mail"} <= found


class TestAllowlists:
    def test_a_plugin_only_list_is_set_aside_and_accounted_for(self) -> None:
        (resolution,) = tools(with_lists(WEATHER, allow=["weather"])).allowlists
        assert resolution.to_json() == {
            "path": "tools.allow",
            "policy": [],
            "unknownAllowlist": [],
            "strippedAllowlist": True,
        }

    def test_unknown_entries_are_named_and_the_list_stands(self) -> None:
        (resolution,) = tools(with_lists(WEATHER, allow=["read", "reed"])).allowlists
        assert resolution.policy == ("read", "reed")
        assert resolution.unknown_allowlist == ("reed",)
        assert not resolution.stripped_allowlist

    def test_a_row_tells_it(self) -> None:
        row = tools_row(Config.model_validate(with_lists(WEATHER, allow=["forecast"])), {})
        assert row["strippedAllowlist"] is True
        assert row["allowlists"][0]["path"] == "tools.allow"


class TestChatGroups:
    def test_a_plugin_keeps_a_tool_from_a_group(self) -> None:
        found = tools(KEPT, channel="slack", peer="C1")
        gone = found.removed["radar"]
        assert (gone.step, gone.source) == (
            "group tools.allow",
            "plugins.weather.groups.slack.C1.tools.deny[0]",
        )
        assert "forecast" in found.allowed

    def test_its_allow_list_is_not_set_aside(self) -> None:
        assert tools(KEPT, channel="slack", peer="C2").allowed == {"radar"}

    @pytest.mark.parametrize(
        "where", [{}, {"channel": "slack", "peer": "C3"}, {"channel": "discord", "peer": "C1"}]
    )
    def test_other_sessions_are_not_touched(self, where: dict[str, str]) -> None:
        assert {"forecast", "radar", "exec"} <= tools(KEPT, **where).allowed

    def test_it_can_give_nothing(self) -> None:
        groups = {"slack": {"C1": {"tools": {"allow": ["browser", "*"], "alsoAllow": ["browser"]}}}}
        config = {"plugins": {"weather": {"tools": ["forecast"], "groups": groups}}}
        assert tools(config, channel="slack", peer="C1").allowed == tools(config).allowed


class TestAtRunTime:
    CONFIG = Config.model_validate(WEATHER)

    def test_a_plugin_is_registered_replaced_and_taken_out(self) -> None:
        present = with_plugin(NONE, self.CONFIG, "mail", ["Send_Mail", "send_mail", "drafts"])
        assert present == {"mail": ("send_mail", "drafts")}
        replaced = with_plugin(present, self.CONFIG, "mail", ["drafts"])
        assert replaced == {"mail": ("drafts",)}
        assert without_plugin(replaced, "mail") == {}
        assert present == {"mail": ("send_mail", "drafts")}

    @pytest.mark.parametrize(
        ("plugin", "names", "field", "words"),
        [
            ("mail", ["Bash"], "tools", "built-in tool (exec)"),
            ("mail", ["ls"], "tools", "built-in tool (read)"),
            ("mail", ["forecast"], "tools", "by another plugin"),
            ("mail", ["clock"], "tools", "registered already"),
            ("mail", ["weather"], "tools", "name of a plugin"),
            ("mail", ["a\nb"], "tools", "no tool name"),
            ("mail", [], "tools", "give 1 to"),
            ("mail", [f"t{i}" for i in range(1001)], "tools", "give 1 to"),
            ("weather", ["x"], "plugin", "change it there"),
            ("exec", ["x"], "plugin", "built-in tool or group"),
            ("plugins", ["x"], "plugin", "built-in tool or group"),
            ("fs", ["x"], "plugin", "built-in tool or group"),
            ("Mail", ["x"], "plugin", "no plugin id"),
            ("clock", ["x"], "plugin", "registered tool"),
            ("group:fs", ["x"], "plugin", "no plugin id"),
        ],
    )
    def test_names_that_would_mean_two_things_are_refused(
        self, plugin: str, names: list[str], field: str, words: str
    ) -> None:
        with pytest.raises(RequestError, match=words.replace("(", r"\(").replace(")", r"\)")) as refused:
            with_plugin(NONE, self.CONFIG, plugin, names)
        assert refused.value.field == field

    def test_there_is_a_bound(self) -> None:
        present = NONE
        for number in range(MOST_PLUGINS):
            present = with_plugin(present, Config(), f"p{number}", [f"t{number}"])
        with pytest.raises(RequestError, match="at most"):
            with_plugin(present, Config(), "one-more", ["x"])
        assert "again" in with_plugin(present, Config(), "p0", ["again"])["p0"]

    def test_taking_out_what_is_not_there_names_the_nearest(self) -> None:
        present = with_plugin(NONE, self.CONFIG, "mail", ["drafts"])
        with pytest.raises(RequestError, match="did you mean mail"):
            without_plugin(present, "mial")
