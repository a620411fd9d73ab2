"""`daemon.socket`: who may be let in, and how it is written."""

from __future__ import annotations

import pytest

from bot.config import load
from core.errors import ConfigError


@pytest.fixture
def read(tmp_path):
    def of(socket: str):
        file = tmp_path / "c.yaml"
        file.write_text(f"daemon:\n  socket: {socket}\n")
        return load([file], env={})

    return of


@pytest.mark.parametrize(
    ("written", "shared_with"),
    [
        ("{}", None),
        ("{mode: 0600}", None),
        ("{group: agents}", "agents"),
        ("{group: agents, mode: 0660}", "agents"),
        ("{group: agents, mode: '0660'}", "agents"),
        ("{group: agents, mode: 660}", "agents"),
        ("{group: agents, mode: 0o660}", "agents"),
    ],
)
def test_a_group_is_let_in_by_its_mode(read, written, shared_with):
    loaded = read(written)
    assert loaded.config.daemon.socket.shared_with == shared_with
    assert loaded.warnings == ()


def test_a_group_that_its_mode_shuts_out_is_a_warning(read):
    loaded = read("{group: agents, mode: 0600}")
    assert loaded.config.daemon.socket.shared_with is None
    assert "daemon.socket.group: 'agents' is shut out by daemon.socket.mode" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        *(
            (f"{{group: agents, mode: {mode}}}", "daemon.socket.mode: .*whom nobody let in could connect")
            for mode in ("0666", "0777", "0604", "0620", "0", "432", "384", "true", "660.0", "[0660]")
        ),
        ("{mode: 0660}", "daemon.socket: mode 0660 lets a group in and none is named; set group"),
        ("{group: 12}", "daemon.socket.group: 12 must be text"),
        ("{group: ''}", "daemon.socket.group: must not be empty"),
        ("{path: agent.sock}", "daemon.socket.path: 'agent.sock' must be an absolute path"),
        ("{path: ''}", "daemon.socket.path: "),
        ('{path: "/run/\\0/s"}', "daemon.socket.path: .*cannot be seen"),
        ('{path: "/run/\\n/s"}', "daemon.socket.path: .*cannot be seen"),
        ("{owner: me}", "daemon.socket.owner"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_line(read, written, told):
    with pytest.raises(ConfigError, match=rf"c\.yaml:2: {told}"):
        read(written)
