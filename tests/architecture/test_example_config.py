"""The example configuration is documentation that loads: complete, true about defaults, safe as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bot.config import load
from core.config import AskMode, Config, ExecSecurity, SandboxBackend, SandboxMode, Section

EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
TEXT = EXAMPLE.read_text("utf-8")

# What the file says "differs:" about, and the agent it introduces.
DIFFERING = {"tools.profile", "tools.exec.security", "agents.main.exec.allowlist"}


def models(model: type[Section] = Section) -> Iterator[type[Section]]:
    for below in model.__subclasses__():
        if below.__module__.startswith("core.config"):
            yield below
        yield from models(below)


def written(value: Any) -> Iterator[tuple[type[Section], str]]:
    """Yield each model and each of its fields that the file sets, wherever that model stands."""
    if isinstance(value, Section):
        for name in value.model_fields_set:
            yield type(value), name
            yield from written(getattr(value, name))
    elif isinstance(value, dict):
        for below in value.values():
            yield from written(below)
    elif isinstance(value, tuple):
        for below in value:
            yield from written(below)


def differences(value: Any, default: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, BaseModel):
        default = default if default is not None else type(value)()
        for name, field in type(value).model_fields.items():
            below = (getattr(value, name), getattr(default, name))
            yield from differences(*below, f"{path}.{field.alias or name}".lstrip("."))
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from differences(below, default.get(key), f"{path}.{key}".replace(".byId", ""))
    elif value != default:
        yield path


def uncommented(text: str) -> str:
    """Switch every commented key on; an empty mapping or list that they belong to makes room."""
    lines: list[str] = []
    for line in text.splitlines():
        switched = re.sub(r"^(\s*)#(?=[A-Za-z\"-]|  )", r"\1", line)
        if switched != line and lines:
            indent = len(switched) - len(switched.lstrip())
            above = len(lines[-1]) - len(lines[-1].lstrip())
            if indent > above:
                lines[-1] = re.sub(r": (\{\}|\[\])", ":", lines[-1])
        lines.append(switched)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Config:
    file = tmp_path_factory.mktemp("config") / "all.yaml"
    file.write_text(uncommented(TEXT), "utf-8")
    names = re.findall(r"\$\{(SAYSO_\w+)\}", TEXT)
    return load([file], env=dict.fromkeys(names, "a-secret-of-the-test")).config


@pytest.mark.parametrize("model", sorted(models(), key=lambda model: model.__name__))
def test_every_key_stands_in_the_example(model: type[Section], everything: Config) -> None:
    there = {name for where, name in written(everything) if issubclass(where, model)}
    assert model.model_fields.keys() <= there


def test_it_loads_without_a_warning() -> None:
    assert load([EXAMPLE], env={}).warnings == ()


def test_what_does_not_say_that_it_differs_is_the_default() -> None:
    assert set(differences(load([EXAMPLE], env={}).config, Config())) == DIFFERING


def test_it_says_where_it_differs() -> None:
    assert TEXT.count("differs: ") == len(DIFFERING)


def test_what_is_commented_out_would_load_too(everything: Config) -> None:
    config = everything
    assert config.channels.slack is not None
    assert config.tools.by_provider["anthropic"].deny == ("process",)
    assert config.tools.exec is not None
    assert [rule.pattern for rule in config.tools.exec.allowlist] == ["/usr/bin/rg", "/usr/bin/git"]
    assert config.agents.by_id["main"].sandbox.docker is not None
    assert config.groups["telegram"]["-1001234567890"].tools.deny == ("group:runtime",)


def test_every_active_value_is_written_where_it_says() -> None:
    loaded = load([EXAMPLE], env={})
    line = TEXT.splitlines().index("    security: allowlist") + 1
    assert loaded.where("tools.exec.security") == f"{EXAMPLE}:{line}"


def test_it_confines_asks_and_admits_one_exact_command() -> None:
    config = load([EXAMPLE], env={}).config
    assert config.sandboxing.mode is SandboxMode.ALL
    assert config.sandboxing.backend is SandboxBackend.BUBBLEWRAP
    assert config.sandboxing.network is False
    assert config.exec.security is ExecSecurity.ALLOWLIST
    assert config.exec.ask is AskMode.ON_MISS
    (rule,) = config.agents.by_id["main"].exec.allowlist
    assert (rule.pattern, rule.args) == ("/usr/bin/git", ("--version",))


def test_the_page_is_for_this_machine_only() -> None:
    web = load([EXAMPLE], env={}).config.channels.web
    assert (web.host, web.port, web.hosts) == ("127.0.0.1", 8717, ())
