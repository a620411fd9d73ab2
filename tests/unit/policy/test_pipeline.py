"""Which tools an identity gets, and what took each other one out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from core.config import Config
from core.policy import ToolIdentity, ToolSet, resolve
from core.policy.catalog import (
    CODING,
    MESSAGING,
    NAMED_ONLY,
    OWNER_ONLY,
    SANDBOX_ALLOW,
    SANDBOX_DENY,
    SUBAGENT_DENY_ALWAYS,
    SUBAGENT_DENY_LEAF,
    TOOLS,
)
from core.policy.checks import sections_without_tools

OWNER = {"byId": {"main": {"owner": True}}}
PLUGINS = {"weather": ("forecast", "radar")}
DEEP = {"tools": {"profile": "coding"}, "agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}}}
ACME = {
    "tools": {
        "byProvider": {
            "acme": {"profile": "coding", "deny": ["exec"]},
            "acme/small": {"allow": ["read"]},
        }
    }
}


def tools(config: Mapping[str, Any] | None = None, **identity: Any) -> ToolSet:
    return resolve(Config.model_validate(config or {}), ToolIdentity(**{"agent": "main", **identity}))


def allowed(config: Mapping[str, Any] | None = None, **identity: Any) -> frozenset[str]:
    return tools(config, **identity).allowed


def agent(**settings: Any) -> dict[str, Any]:
    return {"agents": {"byId": {"main": settings}}}


class TestProfiles:
    def test_coding_is_the_list_of_the_text(self) -> None:
        assert allowed({"tools": {"profile": "coding"}, "agents": OWNER}) == CODING
        assert len(CODING) == 20

    def test_messaging_and_minimal(self) -> None:
        assert allowed({"tools": {"profile": "messaging"}}) == MESSAGING
        assert allowed({"tools": {"profile": "minimal"}}) == {"session_status"}

    def test_full_is_everything_but_what_must_be_named(self) -> None:
        assert allowed({"agents": OWNER}) == TOOLS - NAMED_ONLY

    def test_full_holds_the_tools_of_plugins_and_coding_does_not(self) -> None:
        assert "forecast" in allowed(plugins={"weather": ("forecast",)})
        gone = tools({"tools": {"profile": "coding"}}, plugins={"weather": ("forecast",)}).removed
        assert gone["forecast"].rule == "tool.not-in-profile"

    def test_an_agents_profile_replaces_the_global_one(self) -> None:
        found = tools({"tools": {"profile": "full"}, **agent(tools={"profile": "minimal"})})
        assert found.allowed == {"session_status"}
        assert found.removed["exec"].source == "agents.main.tools.profile"

    def test_another_agent_keeps_the_global_profile(self) -> None:
        assert "exec" in allowed(agent(tools={"profile": "minimal"}), agent="other")

    def test_sections_that_restrict_bring_no_tool_in(self) -> None:
        config = {"tools": {"profile": "minimal", "exec": {"ask": "off"}, "fs": {"workspaceOnly": True}}}
        assert allowed(config) == {"session_status"}
        config["tools"]["alsoAllow"] = ["exec"]
        assert allowed(config) == {"session_status", "exec"}

    def test_of_sections_without_their_tools_it_is_told_what_would_add_them(self) -> None:
        config = {"tools": {"profile": "minimal", "exec": {"ask": "off"}, "fs": {"workspaceOnly": True}}}
        commands, files = sections_without_tools(Config.model_validate(config))
        assert commands.startswith("tools.exec: ")
        assert "agents.main.tools.alsoAllow: [exec, process] adds them" in commands
        assert "agents.main.tools.alsoAllow: [edit, read, write] adds them" in files
        config["tools"]["alsoAllow"] = ["group:runtime", "read"]
        (files,) = sections_without_tools(Config.model_validate(config))
        assert "[edit, write]" in files

    @pytest.mark.parametrize("tools", [{"profile": "full", "exec": {"ask": "off"}}, {"profile": "minimal"}])
    def test_nothing_is_told_of_sections_whose_tools_are_there(self, tools: dict[str, Any]) -> None:
        assert not [*sections_without_tools(Config.model_validate({"tools": tools}))]


class TestToolsThatMustBeNamed:
    @pytest.mark.parametrize("entry", ["browser", "group:ui", "Browser"])
    @pytest.mark.parametrize("key", ["allow", "alsoAllow"])
    def test_under_full_a_name_or_group_brings_them_in(self, entry: str, key: str) -> None:
        assert "browser" in allowed({"tools": {key: [entry]}})

    @pytest.mark.parametrize("entry", ["*", "brows*", "browse?"])
    @pytest.mark.parametrize("key", ["allow", "alsoAllow"])
    def test_a_pattern_does_not(self, entry: str, key: str) -> None:
        assert "browser" not in allowed({"tools": {key: [entry]}})

    def test_under_another_profile_allow_is_only_a_filter(self) -> None:
        assert "browser" not in allowed({"tools": {"profile": "coding", "allow": ["browser", "read"]}})

    def test_once_named_a_star_lets_them_pass(self) -> None:
        assert "tts" in allowed({"tools": {"allow": ["*"], "alsoAllow": ["tts"]}})


class TestLists:
    def test_an_empty_allow_list_filters_nothing(self) -> None:
        assert allowed({"tools": {"profile": "coding", "allow": []}}) == CODING - OWNER_ONLY

    def test_an_allow_list_keeps_only_what_it_names(self) -> None:
        found = tools({"tools": {"profile": "coding", "allow": ["read", "group:web"]}})
        assert found.allowed == {"read", "web_search", "web_fetch"}
        assert found.removed["exec"].source == "tools.allow"

    def test_deny_wins_over_allow_and_names_its_entry(self) -> None:
        found = tools({"tools": {"allow": ["exec", "read"], "deny": ["nothing*", "exec"]}})
        assert found.allowed == {"read", "apply_patch"}
        assert (found.removed["exec"].rule, found.removed["exec"].source) == ("tool.denied", "tools.deny[1]")

    def test_all_layers_must_pass(self) -> None:
        config = {"tools": {"allow": ["exec", "read"]}, **agent(tools={"allow": ["read", "write"]})}
        assert allowed(config) == {"read"}

    def test_also_allow_adds_to_the_profile_and_passes_its_own_list(self) -> None:
        assert allowed({"tools": {"profile": "minimal", "allow": ["read"], "alsoAllow": ["Bash"]}}) == {
            "exec"
        }

    def test_also_allow_does_not_pass_another_layers_list(self) -> None:
        assert "exec" not in allowed({"tools": {"alsoAllow": ["exec"]}, **agent(tools={"allow": ["read"]})})

    def test_exec_in_an_allow_list_admits_apply_patch_and_nothing_else(self) -> None:
        assert allowed({"tools": {"profile": "coding", "allow": ["exec"]}}) == {"exec", "apply_patch"}
        assert allowed({"tools": {"profile": "coding", "allow": ["process"]}}) == {"process"}

    def test_a_deny_still_takes_apply_patch(self) -> None:
        assert allowed({"tools": {"allow": ["exec"], "deny": ["apply-patch"]}}) == {"exec"}
        config = {"tools": {"allow": ["exec"]}, **agent(tools={"deny": ["group:fs"]})}
        assert allowed(config) == {"exec"}


CONFIGURED = {"weather": {"tools": ["forecast", "radar"]}}


class TestPluginOnlyAllowLists:
    @pytest.mark.parametrize("entries", [["forecast"], ["weather"], ["group:plugins"], ["radar", "weather"]])
    def test_they_are_set_aside_with_a_warning(self, entries: list[str]) -> None:
        found = tools({"tools": {"profile": "coding", "allow": entries}, "plugins": CONFIGURED})
        assert found.stripped_allowlist
        assert found.allowed == CODING - OWNER_ONLY
        assert "tools.allow lists only plugin tools" in found.warnings[0]

    @pytest.mark.parametrize("entries", [["forecast", "read"], ["forecast", "unknown"], ["fore*"], ["*"]])
    def test_other_lists_stand(self, entries: list[str]) -> None:
        assert not tools({"tools": {"allow": entries}, "plugins": CONFIGURED}).stripped_allowlist

    @pytest.mark.parametrize(
        "entries", [["forecast", "later"], ["later"], ["forecast", "mail"], ["group:plugins"]]
    )
    def test_no_registration_at_run_time_sets_a_list_aside(self, entries: list[str]) -> None:
        written = {"registered": ["clock"], "allow": entries}
        plugins = {} if entries == ["group:plugins"] else {"weather": {"tools": ["forecast"]}}
        config = {"tools": written, "plugins": plugins}
        before = tools(config).allowed
        found = tools(config, plugins={"mail": ("later",)})
        assert not found.stripped_allowlist
        assert found.allowed == before | {"later"}

    @pytest.mark.parametrize(
        "config",
        [
            {"groups": {"slack": {"C1": {"tools": {"allow": ["forecast"]}}}}},
            {"tools": {"byProvider": {"acme": {"allow": ["forecast"]}}}},
            agent(tools={"byProvider": {"acme": {"allow": ["forecast"]}}}),
        ],
    )
    def test_lists_for_groups_and_providers_stand(self, config: dict[str, Any]) -> None:
        found = tools({**config, "plugins": CONFIGURED}, provider="acme", channel="slack", peer="C1")
        assert found.allowed == {"forecast"}
        assert not found.stripped_allowlist

    @pytest.mark.parametrize("provider", [" acme", "ACME ", "acme\n", "Acme"])
    def test_blanks_and_capitals_around_a_provider_escape_no_list(self, provider: str) -> None:
        config = {"tools": {"byProvider": {"acme": {"deny": ["read"]}, "acme/small": {"deny": ["write"]}}}}
        assert not {"read", "write"} & tools(config, provider=provider, model=" Small ").allowed
        assert "read" in tools(config, provider="acme2", model="small").allowed

    def test_a_list_of_unknown_names_blocks_everything_and_says_so(self) -> None:
        found = tools({"tools": {"allow": ["nothing"]}})
        assert found.allowed == frozenset()
        assert "no known tool" in found.warnings[0]

    def test_deny_lists_are_never_set_aside(self) -> None:
        found = tools({"tools": {"deny": ["weather"]}}, plugins=PLUGINS)
        assert not found.stripped_allowlist
        assert not {"forecast", "radar"} & found.allowed

    def test_a_list_for_subagents_is_not_set_aside(self) -> None:
        config = {"tools": {"subagents": {"tools": {"allow": ["forecast"]}}}}
        assert allowed(config, plugins=PLUGINS, depth=1) == {"forecast"}


class TestOwners:
    @pytest.mark.parametrize("tool", sorted(OWNER_ONLY))
    def test_no_list_gives_owner_tools_to_others(self, tool: str) -> None:
        config = {"tools": {"allow": [tool], "alsoAllow": [tool]}, **agent(tools={"alsoAllow": [tool]})}
        assert tools(config).removed[tool].rule == "tool.owner-only"

    @pytest.mark.parametrize("tool", sorted(OWNER_ONLY))
    def test_owners_get_them_where_a_list_names_them(self, tool: str) -> None:
        assert tool in allowed({"tools": {"alsoAllow": [tool]}, "agents": OWNER})


class TestProviders:
    def test_the_profile_and_lists_of_a_provider_narrow(self) -> None:
        found = tools(ACME, provider="Acme")
        assert found.allowed == CODING - OWNER_ONLY - {"exec"}
        assert found.removed["exec"].source == "tools.byProvider.acme.deny[0]"
        assert found.removed["message"].source == "tools.byProvider.acme.profile"

    def test_a_model_narrows_further(self) -> None:
        assert allowed(ACME, provider="acme", model="small") == {"read"}

    def test_a_provider_can_add_nothing(self) -> None:
        config = {
            "tools": {"profile": "minimal", "byProvider": {"acme": {"profile": "full", "alsoAllow": ["*"]}}}
        }
        assert allowed(config, provider="acme") == {"session_status"}

    def test_what_is_pinned_counts_whatever_the_agent_claims(self) -> None:
        config = {**ACME, **agent(pin={"provider": "acme"})}
        assert "exec" not in allowed(config, provider="other")
        assert "exec" not in allowed(config)

    def test_an_agents_own_lists_for_a_provider_count_too(self) -> None:
        config = agent(tools={"byProvider": {"acme": {"deny": ["read"]}}})
        assert (
            tools(config, provider="acme").removed["read"].source
            == "agents.main.tools.byProvider.acme.deny[0]"
        )


class TestSubagents:
    def test_the_orchestrator_loses_nothing(self) -> None:
        assert allowed(DEEP) == CODING - OWNER_ONLY

    def test_a_middle_one_loses_eight(self) -> None:
        assert allowed(DEEP, depth=1) == CODING - OWNER_ONLY - SUBAGENT_DENY_ALWAYS

    def test_a_leaf_loses_four_more(self) -> None:
        lost = SUBAGENT_DENY_ALWAYS | SUBAGENT_DENY_LEAF
        assert allowed(DEEP, depth=2) == CODING - OWNER_ONLY - lost
        assert allowed({"tools": {"profile": "coding"}}, depth=1) == CODING - OWNER_ONLY - lost

    def test_an_exact_name_in_the_agents_own_allow_list_lifts_one(self) -> None:
        config = {**DEEP, **agent(tools={"allow": ["memory_get", "read"]})}
        assert allowed(config, depth=1) == {"memory_get", "read"}

    @pytest.mark.parametrize("entry", ["group:memory", "memory_*", "*"])
    def test_a_group_or_pattern_lifts_nothing(self, entry: str) -> None:
        assert "memory_get" not in allowed(agent(tools={"allow": [entry]}), depth=1)

    def test_the_global_allow_list_lifts_nothing(self) -> None:
        assert "memory_get" not in allowed({"tools": {"allow": ["memory_get"]}}, depth=1)

    def test_what_only_leaves_lose_cannot_be_lifted(self) -> None:
        assert "sessions_spawn" not in allowed(agent(tools={"allow": ["sessions_spawn"]}), depth=1)

    def test_a_pinned_depth_counts(self) -> None:
        assert "sessions_spawn" not in allowed(agent(pin={"depth": 1}))

    def test_the_agents_own_spawn_depth_replaces_the_default(self) -> None:
        assert "sessions_spawn" in allowed(agent(subagents={"maxSpawnDepth": 2}), depth=1)

    def test_the_lists_for_subagents_apply_to_them_only(self) -> None:
        config = {"tools": {"subagents": {"tools": {"deny": ["exec"]}}}}
        assert "exec" in allowed(config)
        assert tools(config, depth=1).removed["exec"].source == "tools.subagents.tools.deny[0]"


class TestSandboxedAgents:
    def test_they_get_the_default_list(self) -> None:
        assert allowed({"agents": OWNER}, sandboxed=True) == SANDBOX_ALLOW

    def test_also_allow_adds_one(self) -> None:
        config = agent(tools={"sandbox": {"tools": {"alsoAllow": ["web_search"]}}})
        assert allowed(config, sandboxed=True) == SANDBOX_ALLOW | {"web_search"}

    def test_also_allow_cannot_add_what_the_profile_lacks(self) -> None:
        config = agent(tools={"profile": "minimal", "sandbox": {"tools": {"alsoAllow": ["web_search"]}}})
        assert allowed(config, sandboxed=True) == {"session_status"}

    def test_a_pattern_does_not_lift_the_default_denials_but_a_name_does(self) -> None:
        def sandbox(entry: str) -> dict[str, Any]:
            lists = {"tools": {"alsoAllow": [entry]}}
            return {"tools": {"alsoAllow": ["browser"], "sandbox": lists}}

        assert "browser" not in allowed(sandbox("*"), sandboxed=True)
        assert "browser" in allowed(sandbox("browser"), sandboxed=True)

    def test_a_written_allow_list_replaces_the_default_one_and_the_agents_the_global(self) -> None:
        lists = {"sandbox": {"tools": {"allow": ["read", "web_search"]}}}
        assert allowed({"tools": lists}, sandboxed=True) == {"read", "web_search"}
        own = agent(tools={"sandbox": {"tools": {"allow": ["read", "edit"]}}})
        assert allowed({"tools": lists, **own}, sandboxed=True) == {"read", "edit"}

    def test_an_empty_allow_list_replaces_the_default_one_and_filters_nothing(self) -> None:
        empty = {"tools": {"sandbox": {"tools": {"allow": []}}}, "agents": OWNER}
        assert allowed(empty, sandboxed=True) == allowed({"agents": OWNER}) - SANDBOX_DENY
        both = {"tools": {"sandbox": {"tools": {"allow": ["read"]}}}}
        own = agent(tools={"sandbox": {"tools": {"allow": []}}})
        assert allowed({**both, **own}, sandboxed=True) == {"read"}

    def test_a_written_deny_list_replaces_the_default_one(self) -> None:
        lists: dict[str, Any] = {"allow": [], "deny": ["web_search"]}
        config = {"tools": {"sandbox": {"tools": lists}}, "agents": OWNER}
        assert allowed(config, sandboxed=True) == allowed({"agents": OWNER}) - {"web_search"}
        lists["deny"] = []
        assert allowed(config, sandboxed=True) == allowed({"agents": OWNER})
        del lists["allow"]
        assert allowed(config, sandboxed=True) == SANDBOX_ALLOW

    def test_image_is_in_the_default_list_and_in_no_other_by_itself(self) -> None:
        assert "image" in allowed({}, sandboxed=True)
        assert "image_generate" not in allowed({}, sandboxed=True)
        config = {"tools": {"sandbox": {"tools": {"allow": ["read"]}}}}
        assert allowed(config, sandboxed=True) == {"read"}

    def test_denials_of_both_places_hold(self) -> None:
        config = {
            "tools": {"sandbox": {"tools": {"deny": ["read"]}}},
            **agent(tools={"sandbox": {"tools": {"deny": ["write"], "allow": ["read", "write", "edit"]}}}),
        }
        assert allowed(config, sandboxed=True) == {"edit"}

    def test_others_are_not_touched(self) -> None:
        lists = {"tools": {"sandbox": {"tools": {"deny": ["web_search"]}}}}
        assert "web_search" in allowed({**lists, "sandboxing": {"mode": "off"}})

    def test_pinned_sandboxing_counts(self) -> None:
        assert "web_search" not in allowed(agent(pin={"sandboxed": True}))


class TestTheRest:
    def test_a_read_only_workspace_takes_what_writes(self) -> None:
        found = tools({"sandboxing": {"workspaceAccess": "ro"}})
        assert not {"write", "edit", "apply_patch"} & found.allowed
        assert "read" in found.allowed
        assert found.removed["write"].source == "sandboxing.workspaceAccess"

    def test_an_agents_workspace_access_counts_instead(self) -> None:
        config = {"sandboxing": {"workspaceAccess": "ro"}, **agent(sandbox={"workspaceAccess": "rw"})}
        assert "write" in allowed(config)

    def test_tools_with_a_switch_can_be_switched_off(self) -> None:
        config = {"tools": {"alsoAllow": ["browser"], "browser": {"enabled": False}}}
        assert tools(config).removed["browser"].source == "tools.browser.enabled"
        assert "web_fetch" not in allowed({"tools": {"web_fetch": {"enabled": False}}})

    def test_a_chat_groups_lists_hold_in_its_sessions_only(self) -> None:
        config = {"groups": {"slack": {"C1": {"tools": {"deny": ["exec"]}}}}}
        assert (
            tools(config, channel="slack", peer="C1").removed["exec"].source
            == "groups.slack.C1.tools.deny[0]"
        )
        assert "exec" in allowed(config, channel="slack", peer="C2")
        assert "exec" in allowed(config)

    def test_the_result_cannot_be_changed(self) -> None:
        found = tools()
        with pytest.raises(TypeError):
            found.admitted["browser"] = found.admitted["exec"]  # the mapping is a read-only view
