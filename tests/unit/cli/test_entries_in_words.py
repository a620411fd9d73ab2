"""How `sayso allowlist list` says where an entry counts."""

from __future__ import annotations

import pytest

from bot.cli.allowlist import _print_entry

ROW = {
    **dict.fromkeys(("id", "agent", "by", "at", "request", "realPath", "sha256", "lastUsedAt")),
    "pattern": "/usr/bin/rg",
    "words": "any arguments",
    "source": "tools.exec.allowlist[0]",
    "where": "f.yaml:3",
}


@pytest.mark.parametrize(
    ("placement", "told"),
    [
        ("sandbox", "every agent, in the sandbox"),
        ("host", "every agent, on the host"),
        ("client", "every agent, in the agent's own program"),
    ],
)
def test_the_place_is_said_as_people_say_it(placement, told, capsys):
    _print_entry({**ROW, "placement": placement})
    assert told in capsys.readouterr().out
