"""Reading the configuration again: what holds at once, what waits, and that a bad one changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.config import LoadedConfig, Overrides, load
from bot.reload import AT_START, differences, reload
from core.config import Config, Section
from core.errors import ConfigError

BASE = """\
tools:
  profile: coding
  deny: [image]
channels:
  telegram:
    token: 1:the-old-secret
agents:
  main:
    exec:
      allowlist: [{pattern: /usr/bin/ls}]
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(BASE, "utf-8")
    return path


@pytest.fixture
def read(file):
    def again(text: str | None = None, **flags) -> LoadedConfig:
        if text is not None:
            file.write_text(text, "utf-8")
        return load([file], env=os.environ, overrides=Overrides(**flags))

    return again


def at_once(old: LoadedConfig, new: LoadedConfig) -> list[str]:
    return [changed.key for changed in differences(old, new).at_once]


def at_restart(old: LoadedConfig, new: LoadedConfig) -> list[str]:
    return [changed.key for changed in differences(old, new).at_restart]


def test_what_reads_the_same_is_no_difference(read):
    told = differences(read(), read(BASE + "# a comment\n"))
    assert (told.at_once, told.at_restart, told.warnings) == ((), (), ())


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("profile: coding", "profile: minimal", "tools.profile"),
        ("deny: [image]", "deny: [image, exec]", "tools.deny"),
        ("deny: [image]", "deny: [image]\n  exec: {ask: always}", "tools.exec"),
        ("pattern: /usr/bin/ls", "pattern: /usr/bin/cat", "agents.main.exec.allowlist"),
        ("agents:\n", "agents:\n  ci: {owner: true}\n", "agents.ci"),
        (
            "agents:\n",
            "agents:\n  defaults: {subagents: {maxSpawnDepth: 2}}\n",
            "agents.defaults.subagents.maxSpawnDepth",
        ),
        ("tools:\n", "groups: {telegram: {'-1': {tools: {deny: [exec]}}}}\ntools:\n", "groups.telegram"),
        ("tools:\n", "approvals: {exec: {timeout: 5000}}\ntools:\n", "approvals.exec.timeout"),
        ("tools:\n", "approvals: {notices: {finished: true}}\ntools:\n", "approvals.notices.finished"),
        ("tools:\n", "sandboxing: {mode: 'off'}\ntools:\n", "sandboxing.mode"),
        ("tools:\n", "sandboxing: {network: true}\ntools:\n", "sandboxing.network"),
    ],
)
def test_policy_holds_at_once_in_both_directions(read, old, new, key):
    before, after = read(), read(BASE.replace(old, new, 1))
    assert (at_once(before, after), at_restart(before, after)) == ([key], [])
    assert (at_once(after, before), at_restart(after, before)) == ([key], [])


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("the-old-secret", "the-new-secret", "channels.telegram.token"),
        ("  telegram:\n    token: 1:the-old-secret\n", "  web: {port: 1}\n", "channels.telegram"),
        ("tools:\n", "operator: {local: 'off'}\ntools:\n", "operator.local"),
        ("tools:\n", "sandboxing: {workspaceRoot: /srv/w}\ntools:\n", "sandboxing.workspaceRoot"),
        ("tools:\n", "sandboxing: {user: daemon}\ntools:\n", "sandboxing.user"),
        (
            "tools:\n",
            "approvals: {exec: {cleanupAfterResolve: true}}\ntools:\n",
            "approvals.exec.cleanupAfterResolve",
        ),
    ],
)
def test_what_is_built_at_start_waits_for_a_restart(read, old, new, key):
    before, after = read(), read(BASE.replace(old, new, 1))
    assert key in at_restart(before, after)
    assert at_once(before, after) == []


def test_every_key_that_waits_exists():
    for path in AT_START:
        section: type[Section] = Config
        *above, last = path.split(".")
        for part in above:
            section = type(getattr(section(), part))
        names = {field.alias or name for name, field in section.model_fields.items()}
        assert last in names, path


def test_each_change_tells_its_line_and_never_its_value(read, file):
    before = read()
    told = differences(
        before, read(BASE.replace("image", "exec").replace("the-old-secret", "the-new-secret"))
    )
    assert [(changed.key, changed.where) for changed in told.at_once] == [("tools.deny", f"{file}:3")]
    (token,) = told.at_restart
    assert (token.where, token.why_later) == (f"{file}:6", "channels are opened at start")
    assert "secret" not in str(told.to_json())


def test_a_key_that_is_gone_has_no_line(read):
    (gone,) = differences(read(), read(BASE.replace("  deny: [image]\n", ""))).at_once
    assert (gone.key, gone.where) == ("tools.deny", None)


def test_what_is_put_in_force_keeps_what_waits(read):
    before, put = read(), []
    text = BASE.replace("image", "exec").replace("the-old-secret", "the-new-secret")
    text += "sandboxing: {workspaceRoot: /srv/w, network: true}\n"
    told = reload(before, lambda: read(text), put.append)
    (held,) = put
    assert [changed.key for changed in told.at_once] == ["tools.deny", "sandboxing.network"]
    assert held.config.tools.deny == ("exec",)
    assert (held.config.sandboxing.network, held.config.sandboxing.workspace_root) == (True, None)
    assert held.config.channels == before.config.channels
    assert at_restart(held, read()) == ["sandboxing.workspaceRoot", "channels.telegram.token"], "told again"
    assert at_once(held, read()) == []


def test_nothing_is_put_where_nothing_holds_at_once(read):
    put = []
    told = reload(read(), lambda: read(BASE.replace("the-old-secret", "another")), put.append)
    assert (put, [changed.key for changed in told.at_restart]) == ([], ["channels.telegram.token"])


def test_where_the_machine_is_looked_at_anew_no_secret_that_waits_for_a_restart_is_put(read):
    before, put = read(), []
    told = reload(before, lambda: read(BASE.replace("the-old-secret", "another")), put.append, anew=True)
    assert [changed.key for changed in told.at_restart] == ["channels.telegram.token"]
    assert put == [before]
    reload(before, lambda: read(BASE.replace("image", "exec")), put.append, anew=True)
    assert put[1].config.tools.deny == ("exec",)
    reload(before, lambda: read(BASE + "tols: {}\n"), put.append, anew=True)
    assert len(put) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BASE.replace("profile: coding", "profile: codng"), ":2: tools.profile: 'codng' must be one of"),
        (BASE + "tols: {}\n", ":11: tols: is no known key; did you mean tools?"),
        (BASE + "\t", ":11: is no valid YAML"),
    ],
)
def test_a_bad_configuration_changes_nothing_and_says_where(read, file, text, told):
    put = []
    answer = reload(read(), lambda: read(text), put.append)
    assert put == []
    assert answer.problems[0].startswith(f"{file}{told}")
    assert answer.to_json()["ok"] is False
    assert (answer.at_once, answer.at_restart) == ((), ())


def test_a_file_that_is_gone_changes_nothing(read, file):
    before, put = read(), []
    file.unlink()
    assert reload(before, read, put.append).problems == (f"{file}: there is no such file",)
    assert put == []


def test_what_start_would_refuse_only_later_changes_nothing_either(read):
    def refuse(_loaded: LoadedConfig) -> None:
        raise ConfigError("approvals.exec.targets[0]: telegram has no such place")

    answer = reload(read(), lambda: read(BASE.replace("image", "exec")), refuse)
    assert answer.problems == ("approvals.exec.targets[0]: telegram has no such place",)
    assert answer.at_once == ()


def test_flags_of_the_start_still_hold_after_a_reload(read):
    before = read(profile="minimal")
    assert at_once(before, read(BASE.replace("coding", "full"), profile="minimal")) == ["tools.profile"]
    assert read(profile="minimal").config.agent("main").tools.profile == "minimal"


def test_only_new_warnings_are_told(read):
    told = differences(read(), read(BASE + "  ci: {tools: {deny: [imagee]}}\n"))
    assert len(told.warnings) == 1
    assert "imagee" in told.warnings[0]
    assert differences(read(), read()).warnings == ()
