"""`sayso config check` refuses, or tells of, what this machine has not: as `up` does, with key and line."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.daemon


def sockets(daemon) -> dict[str, str]:
    root = daemon.root
    (root / "open").mkdir()
    (root / "open").chmod(0o777)
    (root / "taken").mkdir(mode=0o700)
    (root / "taken" / "a.sock").write_text("x")
    (root / "good").mkdir(mode=0o700)
    return {
        "too long": f"path: {root}/good/{'x' * 107}",
        "no directory": f"path: {root}/missing/deep/a.sock",
        "in the home": f"path: {root}/home/a.sock",
        "a file": f"path: {root}/taken/a.sock",
        "open": f"path: {root}/open/a.sock",
        "no group": f"path: {root}/good/a.sock, group: no-such-group",
        "good": f"path: {root}/good/a.sock",
    }


SAID = {
    "too long": "may have 107",
    "no directory": "missing",
    "in the home": "lies in SAYSO_HOME",
    "a file": "is not a socket",
    "open": "others can change",
    "no group": "there is no group 'no-such-group'",
}


@pytest.mark.parametrize("fault", SAID)
def test_a_bad_place_of_the_socket_is_refused_alike_by_check_and_start(make_daemon, fault):
    daemon = make_daemon()
    given, before = sockets(daemon), daemon.config.read_text()
    for what, status in (("good", 0), (fault, 78)):
        daemon.config.write_text(f"{before}daemon: {{socket: {{{given[what]}}}}}\n")
        checked = daemon.sayso("config", "check", *daemon.configs, status=status)
    started = daemon.sayso("up", *daemon.configs, "--port", "0", status=78)
    for told in (checked.stderr, started.stderr):
        assert SAID[fault] in told
        assert "daemon.socket." in told
        assert "Traceback" not in told


def test_workspaces_and_accounts_that_no_run_can_use_are_told_with_their_line(make_daemon):
    daemon = make_daemon()
    before = daemon.config.read_text()
    good, file, closed = (daemon.root / name for name in ("good", "file", "closed"))
    good.mkdir(mode=0o777)
    good.chmod(0o777)
    closed.mkdir(mode=0o500)
    file.write_text("x")
    rows = "".join(
        f"  {name}: {{workspace: {daemon.root}/{name}}}\n" for name in ("good", "file", "closed", "missing")
    )
    daemon.config.write_text(f"{before}agents:\n{rows}")
    told = daemon.sayso("config", "check", *daemon.configs).stderr
    for line, name in enumerate(("file", "closed", "missing"), start=4):
        assert f"agents.{name}.workspace ({daemon.config}:{line}" in told
    assert "agents.good.workspace" not in told
