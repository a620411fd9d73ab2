"""Wrong tool lists and plugins in a file are refused with file, line, key and the nearest name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.config import Overrides, load, merge
from core.errors import ConfigError


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return the lines of the error, with the folder taken off."""

    def refused(text: str) -> list[str]:
        path = tmp_path / "c.yaml"
        path.write_text(text, "utf-8")
        with pytest.raises(ConfigError) as error:
            load([path], env={})
        return str(error.value).replace(f"{tmp_path}/", "").splitlines()

    return refused


@pytest.fixture
def warned(tmp_path: Path) -> Callable[[str], tuple[str, ...]]:
    def warnings(text: str) -> tuple[str, ...]:
        path = tmp_path / "c.yaml"
        path.write_text(text, "utf-8")
        return load([path], env={}).warnings

    return warnings


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "tools:\n  profile: codign\n",
            (
                "c.yaml:2: tools.profile: 'codign' must be one of full, coding, messaging, minimal; "
                "did you mean coding?"
            ),
        ),
        (
            "tools:\n  deny:\n    - read\n    - group:runtme\n",
            "c.yaml:4: tools.deny[1]: 'group:runtme' is no known group; did you mean group:runtime?",
        ),
        (
            "tools:\n  ask:\n    tools: [group:web, group:wep]\n",
            "c.yaml:3: tools.ask.tools[1]: 'group:wep' is no known group; did you mean group:web?",
        ),
        (
            "agents:\n  main:\n    tools: {alsoAllow: ['group:*']}\n",
            "c.yaml:3: agents.main.tools.alsoAllow[0]: 'group:*' is no known group",
        ),
        (
            "tools:\n  deny: ['']\n",
            "c.yaml:2: tools.deny[0]: must not be empty; give a value or remove the key",
        ),
        (
            "tools:\n  deny: ['  ']\n",
            "c.yaml:2: tools.deny[0]: '  ' is blank; give a tool, a group or a pattern, or remove the entry",
        ),
        (
            'tools:\n  deny: ["ex\\u0007ec"]\n',
            (
                "c.yaml:2: tools.deny[0]: 'ex\\x07ec' has a control character or one that cannot be seen; "
                "write the name in plain letters"
            ),
        ),
        (
            'tools:\n  allow: [read, "exec\\u200b"]\n',
            (
                "c.yaml:2: tools.allow[1]: 'exec\\u200b' has a control character or one that cannot be seen; "
                "write the name in plain letters"
            ),
        ),
        (
            "tools:\n  allow: [forecast]\n",
            (
                "c.yaml:2: tools.allow: names no known tool or group, so it would block every tool; "
                "a plugin's tools belong in alsoAllow"
            ),
        ),
        (
            "agents:\n  list:\n    - id: main\n      owner: true\n    - id: main\n      owner: true\n",
            "c.yaml:5: agents.list[1].id: is 'main' again (first in line 3); keep one",
        ),
        (
            "agents:\n  main:\n    profile: full\n    tools: {profile: coding}\n",
            "is written in two places with different values (lines 3 and 4); keep one",
        ),
        (
            "agents:\n  main:\n    pin: {depth: -1}\n",
            "c.yaml:3: agents.main.pin.depth: -1 must be at least 0",
        ),
        (
            "agents:\n  defaults:\n    subagents: {maxSpawnDepth: -2}\n",
            "c.yaml:3: agents.defaults.subagents.maxSpawnDepth: -2 must be at least 0",
        ),
        (
            "plugins:\n  a:\n    includes: [b]\n  b:\n    includes: [c]\n  c:\n    includes: [a]\n",
            (
                "c.yaml:3: plugins.a.includes[0]: 'b' closes a circle (a includes b includes c includes a); "
                "remove one of them"
            ),
        ),
        (
            "plugins:\n  a: {includes: [a]}\n",
            "c.yaml:2: plugins.a.includes[0]: 'a' closes a circle (a includes a); remove one of them",
        ),
        (
            "plugins:\n  weather: {tools: [x]}\n  maps: {includes: [wether]}\n",
            "c.yaml:3: plugins.maps.includes[0]: 'wether' is no plugin; did you mean weather?",
        ),
        (
            "plugins:\n  evil:\n    tools:\n      - fine\n      - Bash\n",
            "c.yaml:5: plugins.evil.tools[1]: 'Bash' is a built-in tool (exec) and cannot be registered",
        ),
        (
            "plugins:\n  exec: {tools: [x]}\n",
            "c.yaml:2: plugins.exec: is the name of a built-in tool or group; give the plugin another id",
        ),
        (
            "plugins:\n  one: {tools: [same]}\n  two: {tools: [Same]}\n",
            "c.yaml:3: plugins.two.tools[0]: 'Same' is registered twice (by one too); keep one",
        ),
        (
            "tools: {registered: [maps]}\nplugins:\n  maps: {tools: [route]}\n",
            "c.yaml:1: tools.registered[0]: 'maps' is the id of a plugin; a list could not tell them apart",
        ),
        (
            "tools:\n  registered: ['a b']\n",
            "c.yaml:2: tools.registered[0]: 'a b' is no tool name;",
        ),
        (
            "plugins:\n  maps:\n    tolls: [route]\n",
            "c.yaml:3: plugins.maps.tolls: is no known key; did you mean tools?",
        ),
    ],
)
def test_it_is_refused_by_name(refusal: Callable[[str], list[str]], text: str, line: str) -> None:
    told = refusal(text)
    assert any(line in each for each in told), told


def test_all_is_told_at_once(refusal: Callable[[str], list[str]]) -> None:
    told = refusal("tools:\n  deny: ['group:x', 'group:y']\nplugins:\n  Maps: {tools: [read]}\n")
    assert [line.split(":")[1] for line in told] == ["2", "2", "4", "4"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "tools: {deny: [reed]}",
            "tools.deny[0]: 'reed' names no known tool or group, so it has no effect; did you mean read?",
        ),
        ("tools: {deny: ['zz*']}", "tools.deny[0]: 'zz*' matches no registered tool, so it has no effect"),
        (
            "tools: {allow: [read, exec], deny: ['exec', 'process']}",
            "tools.allow[1]: 'exec' has no effect, because tools.deny denies all of it",
        ),
        (
            "agents: {main: {tools: {alsoAllow: [cron]}}}",
            "agents.main.tools.alsoAllow[0]: 'cron' has no effect, because agents.main.owner is false",
        ),
        (
            "agents: {main: {profile: coding, tools: {allow: [read, browser]}}}",
            (
                "agents.main.tools.allow[1]: 'browser' has no effect: the coding profile does not hold it, "
                "and allow only narrows; use alsoAllow"
            ),
        ),
        (
            "plugins: {maps: {tools: [route], groups: {slack: {C1: {tools: {deny: [rout]}}}}}}",
            (
                "plugins.maps.groups.slack.C1.tools.deny[0]: 'rout' names no known tool or group, "
                "so it has no effect; did you mean route?"
            ),
        ),
    ],
)
def test_what_can_never_count_is_warned_of_by_name(
    warned: Callable[[str], tuple[str, ...]], text: str, words: str
) -> None:
    assert warned(text) == (words,)


@pytest.mark.parametrize(
    "text",
    [
        "tools: {allow: [read, exec], deny: [process]}",
        "agents: {main: {owner: true, tools: {alsoAllow: [cron]}}}",
        "agents: {main: {profile: coding, tools: {allow: [browser, read], alsoAllow: [browser]}}}",
        "agents: {main: {tools: {allow: [browser]}}}",
        "tools: {deny: [maps, route, 'rou*']}\nplugins: {maps: {tools: [route]}}",
        "tools: {profile: minimal, alsoAllow: [read]}\nagents: {main: {tools: {allow: [read]}}}",
    ],
)
def test_what_counts_is_not_warned_of(warned: Callable[[str], tuple[str, ...]], text: str) -> None:
    assert warned(text) == ()


def test_a_row_with_a_faulty_configuration_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("tools: {deny: [exec]}\n", "utf-8")
    loaded = load([path], env={}, overrides=Overrides())
    with pytest.raises(ConfigError, match="did you mean group:fs"):
        merge(loaded, {"tools": {"deny": ["group:fss"]}})
    assert loaded.config.tools.deny == ("exec",)


def test_a_flag_may_name_what_the_files_register(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("tools: {registered: [clock]}\nplugins: {maps: {tools: [route]}}\n", "utf-8")
    flags = Overrides(allow_tools=("route", "maps", "clock"), deny_tools=("exec",))
    assert load([path], env={}, overrides=flags).config.tools.also_allow == ("route", "maps", "clock")
    with pytest.raises(ConfigError, match="'rout' is no known tool or group"):
        load([path], env={}, overrides=Overrides(allow_tools=("rout",)))
