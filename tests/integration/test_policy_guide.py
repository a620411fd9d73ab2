"""docs/tool-policy.md shows what really comes: its commands are run, its configurations are the files."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
import yaml

from bot.cli import COMMANDS, main

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "tool-policy.md").read_text("utf-8")
CONSOLE = "\n\n".join(re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL))
SHOWN = re.findall(r"^\$ sayso ([^\n]*)\n(.*?)(?=^\$|\Z)", CONSOLE, re.DOTALL | re.MULTILINE)
OFFLINE = [(line, out.strip()) for line, out in SHOWN if re.match("(tools|explain) ", line)]


def test_the_guide_shows_all_three_commands():
    assert {line.split()[0] for line, _ in SHOWN} == {"tools", "explain", "check", "policy"}
    assert {line.split()[0] for line, _ in SHOWN} <= COMMANDS.keys()
    assert len(OFFLINE) >= 6


@pytest.mark.parametrize(("line", "shown"), OFFLINE, ids=[line for line, _ in OFFLINE])
def test_what_a_command_of_the_guide_prints_is_what_it_shows(line, shown, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(DOCS / "examples")
    monkeypatch.setenv("SAYSO_HOME", str(tmp_path))
    words = shlex.split(line)
    if (
        os.geteuid() == 0 and "laptop.yaml" in words
    ):  # root is held by nothing, and a laptop's user is not root
        (tmp_path / "account.yaml").write_text("tools: {exec: {hostUser: nobody}}\n")
        at = words.index("laptop.yaml") + 1
        words[at:at] = ["--config", str(tmp_path / "account.yaml")]
    assert main(words) == 0
    assert capsys.readouterr().out.strip() == shown


@pytest.mark.parametrize("example", ["laptop", "messaging", "subagents"])
def test_a_configuration_of_the_guide_is_a_part_of_its_file(example):
    def part(shown: object, whole: object) -> bool:
        if isinstance(shown, dict) and isinstance(whole, dict):
            return all(key in whole and part(value, whole[key]) for key, value in shown.items())
        return shown == whole

    chapter = GUIDE[GUIDE.index(f"[examples/{example}.yaml]") :]
    shown = re.search(r"```yaml\n(.*?)```", chapter, re.DOTALL).group(1)
    file = (DOCS / "examples" / f"{example}.yaml").read_text("utf-8")
    assert part(yaml.safe_load(shown), yaml.safe_load(file))


def test_every_link_of_the_guide_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", GUIDE):
        assert (DOCS / (target[0] or target[1])).exists(), target
    anchors = {
        re.sub(r"[^\w -]", "", head).replace(" ", "-").lower()
        for head in re.findall(r"^## (.*)$", GUIDE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", GUIDE)) <= anchors
