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


# The commands that are followed by a word of their own, and those words.
GROUPS = {
    "agent": ("add", "list", "revoke"),
    "allowlist": ("list", "add", "remove", "export", "import"),
    "audit": ("tail", "export", "verify"),
    "channels": ("test",),
    "config": ("check", "show"),
    "operator": ("unlock", "forget", "passphrase"),
    "people": ("list", "remove"),
    "policy": ("test",),
    "session": ("bind", "end", "tighten"),
    "web": ("link",),
}
WORDS = [
    *[(name,) for name in COMMANDS if name != "help"],
    *[(name, verb) for name, verbs in GROUPS.items() for verb in verbs],
    *[("permissions", verb) for verb in ("list", "revoke")],  # alone it lists
]


def called(*words):
    """Call a command, and return its status however it ends."""
    try:
        return main(list(words))
    except SystemExit as ended:
        return ended.code


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_command_tells_its_options(capsys, words, flag):
    assert called(*words, flag) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"usage: sayso {words[0]}")
    assert err == ""


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"help"}))
def test_help_with_a_name_is_the_help_of_that_command(capsys, name):
    assert called("help", name) == 0
    said = capsys.readouterr()
    assert called(name, "--help") == 0
    assert capsys.readouterr() == said


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("help",), ("help", "--help"), ("help", "-h")])
def test_help_without_a_name_is_the_overview(capsys, words):
    assert called(*words) == 0
    assert capsys.readouterr().out.startswith("Sayso stands between")


@pytest.mark.parametrize("name", COMMANDS)
def test_groups_name_each_of_their_verbs_and_no_other_command_has_any(capsys, name):
    called(name, "--help")
    told = capsys.readouterr().out
    listed = [line.split()[0] for line in told.splitlines() if re.match(r"  [a-z]", line)]
    assert (tuple(listed) if "Each tells its options" in told else ()) == GROUPS.get(name, ())


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_without_a_verb_is_wrong_usage_and_tells_its_help(capsys, name):
    assert called(name, "--help") == 0
    told = capsys.readouterr().out
    assert called(name) == called(name, "--json") == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(told)
    assert f"sayso: {name}: give one of {', '.join(GROUPS[name])}; sayso {name} --help shows how\n" in err


@pytest.mark.parametrize("name", GROUPS)
def test_a_verb_that_a_group_has_not_is_told_in_a_line(capsys, name):
    assert called(name, "dance") == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"not 'dance'; sayso {name} --help shows how\n")
    assert len(err.splitlines()) == 1
