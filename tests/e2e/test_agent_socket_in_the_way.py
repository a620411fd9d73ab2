"""What lies where the agents' socket belongs: an error where somebody named the place, else a warning."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def place(reachable_tmp: Path) -> Path:
    folder = reachable_tmp / "run"
    folder.mkdir(mode=0o755)
    return folder / "agent.sock"


def named(path: Path, more: str = "") -> str:
    return f"daemon: {{socket: {{path: {path}{more}}}}}\nchannels: {{web: {{port: 0}}}}\n"


def refused(daemon: Any, *flags: str) -> str:
    """Start it, which must fail as a wrong configuration does, and return its last words."""
    words = ("up", "--config", str(daemon.example), "--config", str(daemon.config), *flags)
    err: str = daemon.sayso(*words, status=78).stderr
    assert not (daemon.home / "sayso.sock").exists()
    assert "Traceback" not in err
    return err


def test_a_file_that_is_no_socket_is_never_deleted(make_daemon: Callable[..., Any], place: Path) -> None:
    place.write_text("mine")
    assert f"daemon.socket.path: {place} is in the way: it is not a socket" in refused(
        make_daemon(named(place))
    )
    assert place.read_text() == "mine"


def test_a_link_is_never_followed_and_never_deleted(make_daemon: Callable[..., Any], place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place.with_name("dead")))
    place.symlink_to(place.with_name("dead"))
    assert "it is not a socket" in refused(make_daemon(named(place)))
    assert place.is_symlink()


def test_somebody_who_answers_there_is_left_alone(make_daemon: Callable[..., Any], place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(place))
        living.listen()
        assert f"another daemon answers on {place}" in refused(make_daemon(named(place)))


def test_a_group_that_does_not_exist(make_daemon: Callable[..., Any], place: Path) -> None:
    err = refused(make_daemon(named(place, ", group: nobodys-group")))
    assert "daemon.socket.group: there is no group 'nobodys-group'" in err


def test_in_the_state_directory(make_daemon: Callable[..., Any]) -> None:
    daemon = make_daemon()
    daemon.config.write_text(named(daemon.home / "agent.sock"))
    assert f"lies in SAYSO_HOME ({daemon.home})" in refused(daemon)


def test_where_the_operator_s_socket_is(make_daemon: Callable[..., Any], place: Path) -> None:
    assert "operator's" in refused(make_daemon(named(place)), "--socket", str(place))


def test_what_a_killed_daemon_left_is_replaced(make_daemon: Callable[..., Any], place: Path) -> None:
    daemon = make_daemon(named(place)).start()
    assert f" agentSocket={place} " in daemon.ready
    daemon.kill()
    assert place.exists()
    daemon.start()
    here = {"SAYSO_SOCKET": str(place)}
    assert daemon.sayso("exec", "--", "git", "--version", env=here).stdout.startswith("git version")
    assert daemon.stop() == 0
    assert not place.exists()


def test_by_default_it_lies_in_the_login_s_directory_and_what_is_in_the_way_there_is_a_warning(
    make_daemon: Callable[..., Any], reachable_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(reachable_tmp))
    place = reachable_tmp / "sayso" / "agent.sock"
    daemon = make_daemon().start()
    assert f" agentSocket={place} " in daemon.ready
    assert daemon.json("status")["agentSocket"] == str(place)
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    other = make_daemon().start()
    assert "agentSocket" not in other.ready
    assert f"agents get no socket of their own: another daemon answers on {place}" in other.log.read_text()
    assert other.json("status")["agentSocket"] is None
    assert re.search(r"^agentSocket +none$", other.sayso("status").stdout, re.MULTILINE)
    assert daemon.stop() == 0
    os.mkdir(place)  # noqa: PTH102 - somebody's
    other.stop()
    assert "agentSocket" not in other.start().ready
    assert place.is_dir()
