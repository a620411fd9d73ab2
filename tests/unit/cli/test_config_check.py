"""What `sayso config check` warns of beside what starting tells."""

from __future__ import annotations

import json

import pytest

from bot.cli.configuration import config_command

ENTRY = "allowlist: [{pattern: /usr/bin/git}]"
ON_HOST = "allowlist: [{pattern: /usr/bin/git, placement: host}]"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (f"tools: {{exec: {{security: deny, {ENTRY}}}}}", ["tools.exec"]),
        (f"tools: {{exec: {{{ENTRY}}}}}", ["tools.exec"]),
        (f"tools: {{exec: {{security: deny, {ON_HOST}}}}}", ["tools.exec"]),
        (f"tools: {{exec: {{{ON_HOST}}}}}", []),
        (f"tools: {{exec: {{security: allowlist, {ENTRY}}}}}", []),
        ("tools: {exec: {security: deny}}", []),
        (
            f"tools: {{exec: {{security: deny, {ENTRY}}}}}\nagents: {{a: {{exec: {{security: allowlist}}}}}}",
            [],
        ),
        (f"tools: {{exec: {{security: allowlist}}}}\nagents: {{a: {{exec: {{{ENTRY}}}}}}}", []),
        (f"agents: {{a: {{exec: {{security: deny, {ON_HOST}}}}}}}", ["agents.a.exec"]),
    ],
)
def test_a_list_of_which_nothing_counts_is_told(tmp_path, monkeypatch, capsys, config, told):
    monkeypatch.setenv("SAYSO_HOME", str(tmp_path / "home"))
    (tmp_path / "c.yaml").write_text(config)
    assert config_command(["check", "--json", "--config", str(tmp_path / "c.yaml")]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    idle = [warning for warning in warnings if "none of its entries counts" in warning]
    assert [warning.split(".allowlist:")[0] for warning in idle] == told
