"""Flags, variables and rows over the configuration, without files."""

from __future__ import annotations

import time

import pytest

from bot.config import LoadedConfig, Overrides, load, merge
from core.config import AskMode, ExecSecurity, ProfileName, SandboxMode
from core.errors import ConfigError
from core.policy import ToolIdentity, resolve


def started(env: dict[str, str] | None = None, **flags: object) -> LoadedConfig:
    return load([], env=env or {}, overrides=Overrides(**flags))


def test_without_files_the_defaults_count() -> None:
    loaded = started()
    assert loaded.config.exec.ask is AskMode.ON_MISS
    assert loaded.config.exec.security is None
    assert loaded.config.sandboxing.mode is SandboxMode.ALL
    assert loaded.where("tools.exec.ask") is None
    assert loaded.warnings == loaded.protected_paths == loaded.secrets == ()


def test_flags_change_what_they_name_and_say_so() -> None:
    loaded = started(exec_security="deny", exec_ask="always", no_sandbox=True, profile="minimal", port=0)
    assert (loaded.config.exec.security, loaded.config.exec.ask) == (ExecSecurity.DENY, AskMode.ALWAYS)
    assert loaded.config.sandboxing.mode is SandboxMode.OFF
    assert loaded.config.agent("main").tools.profile is ProfileName.MINIMAL
    assert loaded.config.channels.web.port == 0
    assert loaded.where("tools.exec.security") == "--exec-security"
    assert loaded.where("sandboxing.mode") == "--no-sandbox"


def test_variables_do_the_same_and_flags_win_over_them() -> None:
    env = {
        "SAYSO_EXEC_SECURITY": "full",
        "SAYSO_EXEC_ASK": "off",
        "SAYSO_SANDBOX": "off",
        "SAYSO_TOOL_PROFILE": "coding",
    }
    loaded = started(env, exec_security="deny")
    assert (loaded.config.exec.security, loaded.config.exec.ask) == (ExecSecurity.DENY, AskMode.OFF)
    assert loaded.config.sandboxing.mode is SandboxMode.OFF
    assert loaded.where("tools.exec.ask") == "SAYSO_EXEC_ASK"
    assert loaded.where("agents.main.tools.profile") == "SAYSO_TOOL_PROFILE"


def test_tools_are_added_and_denied() -> None:
    loaded = started(allow_tools=("browser",), deny_tools=("bash",))
    allowed = resolve(loaded.config, ToolIdentity("main")).allowed
    assert "browser" in allowed
    assert "exec" not in allowed
    assert "read" in allowed, "adding a tool must not turn the rest off"


def test_an_override_of_exec_does_not_bring_the_tool_in() -> None:
    loaded = started({"SAYSO_EXEC_SECURITY": "full"}, profile="minimal")
    assert resolve(loaded.config, ToolIdentity("main")).allowed == {"session_status"}
    assert loaded.config.exec.security is ExecSecurity.FULL


@pytest.mark.parametrize(
    ("env", "flags", "name"),
    [
        ({"SAYSO_EXEC_SECURITY": "allow"}, {}, "SAYSO_EXEC_SECURITY"),
        ({"SAYSO_EXEC_ASK": "never"}, {}, "SAYSO_EXEC_ASK"),
        ({"SAYSO_SANDBOX": "on"}, {}, "SAYSO_SANDBOX"),
        ({"SAYSO_TOOL_PROFILE": "Full"}, {}, "SAYSO_TOOL_PROFILE"),
        ({}, {"exec_security": ""}, "--exec-security"),
        ({}, {"exec_ask": "x"}, "--exec-ask"),
        ({}, {"profile": "x"}, "--profile"),
        ({}, {"port": 70_000}, "--port"),
        ({}, {"allow_tools": ("brwser",)}, "--allow-tool"),
        ({}, {"deny_tools": ("exce",)}, "--deny-tool"),
    ],
)
def test_a_wrong_value_names_its_flag_or_variable(
    env: dict[str, str], flags: dict[str, object], name: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: "):
        started(env, **flags)


def test_a_row_lays_its_configuration_over_what_is_loaded() -> None:
    base = started(exec_ask="always")
    row = merge(base, {"tools": {"profile": "minimal", "exec": {"security": "full"}}})
    assert row.config.tools.profile is ProfileName.MINIMAL
    assert (row.config.exec.security, row.config.exec.ask) == (ExecSecurity.FULL, AskMode.ALWAYS)
    assert base.config.tools.profile is ProfileName.FULL
    assert row.where("tools.profile") == "this row's config"
    assert row.where("tools.exec.ask") == "--exec-ask"


def test_a_row_knows_synonyms_and_refuses_what_a_file_would_refuse() -> None:
    row = merge(started(), {"agents": {"list": [{"id": "main", "profile": "coding"}]}})
    assert row.config.agent("main").tools.profile is ProfileName.CODING
    with pytest.raises(ConfigError, match="did you mean profile"):
        merge(started(), {"tools": {"profil": "coding"}})


def test_a_row_cannot_read_variables_or_files() -> None:
    token = "file:/etc/passwd"
    row = merge(
        started({"HOME": "/root"}),
        {"channels": {"telegram": {"token": token}}, "tools": {"deny": ["${HOME}"]}},
    )
    assert row.config.channels.telegram is not None
    assert row.config.channels.telegram.token.get_secret_value() == token
    assert row.config.tools.deny == ("${HOME}",)


def test_a_repeated_row_costs_next_to_nothing() -> None:
    base, extra = started(), {"tools": {"profile": "coding", "exec": {"security": "allowlist"}}}
    assert merge(base, extra) is merge(base, dict(extra))
    started_at = time.perf_counter()
    for _ in range(1000):
        merge(base, dict(extra))
    assert time.perf_counter() - started_at < 1


def test_many_different_rows_do_not_pile_up() -> None:
    base = started()
    for port in range(400):
        merge(base, {"channels": {"web": {"port": port}}})
    assert len(base._merges) <= 256


def test_what_is_shown_is_shaped_like_a_file() -> None:
    row = merge(started(), {"agents": {"main": {"owner": True}}, "channels": {"discord": {"token": "hush"}}})
    shown = row.redacted()
    assert shown["agents"]["main"]["owner"] is True
    assert shown["channels"]["discord"]["token"] == "***"
    assert shown["tools"]["web_fetch"]["enabled"] is True
    assert shown["sandboxing"]["mode"] == "all"
    assert "hush" not in f"{shown}{row}{row.config}{row.tree}"
    assert merge(started(), {k: v for k, v in shown.items() if k != "channels"}).config.agent("main").owner
