"""`sayso` alone, help, version, and what the overview promises."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from bot.cli import COMMANDS, main
from bot.cli.about import OVERVIEW


def test_sayso_alone_is_a_short_overview(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Sayso stands between")
    assert len(out.splitlines()) < 25


def test_every_command_of_the_overview_exists():
    named = set(re.findall(r"sayso (\w+)", OVERVIEW))
    assert named <= COMMANDS.keys()
    assert COMMANDS.keys() - named <= {"help", "version"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_its_function(name):
    assert callable(getattr(import_module(f"bot.cli.{COMMANDS[name]}"), f"{name}_command"))


@pytest.mark.parametrize("arguments", [["--version"], ["version"], ["-V"]])
def test_the_version_is_told(capsys, arguments):
    assert main(arguments) == 0
    assert re.fullmatch(r"sayso \S+\n", capsys.readouterr().out)


@pytest.mark.parametrize("name", ["exec", "check", "wait", "up", "pending", "explain", "tools", "lock"])
def test_every_command_tells_its_options(capsys, name):
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert f"sayso {name}" in capsys.readouterr().out
