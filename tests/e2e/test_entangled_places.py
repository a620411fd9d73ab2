"""What a command could exchange is refused by `config check`, by the start and by a reload."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.daemon


def entangled(daemon) -> dict[str, str]:
    work = daemon.root / "work"
    (work / "sub").mkdir(parents=True, exist_ok=True)
    root = f"workspaceRoot: {daemon.root}/workspaces"
    return {
        "agents.helper.workspace": f"sandboxing: {{{root}}}\n"
        f"agents: {{main: {{workspace: {work}}}, helper: {{workspace: {work}/sub}}}}\n",
        "sandboxing.masked[0]": f"sandboxing: {{{root}, masked: [{work}/conf]}}\n"
        f"agents: {{main: {{workspace: {work}}}}}\n",
        "daemon.socket.path": f"sandboxing: {{{root}}}\n"
        f"daemon: {{socket: {{path: {work}/sub/agent.sock}}}}\nagents: {{main: {{workspace: {work}}}}}\n",
    }


KEYS = ["agents.helper.workspace", "sandboxing.masked[0]", "daemon.socket.path"]


@pytest.mark.parametrize("key", KEYS)
def test_entangled_places_stop_the_check_and_the_start(make_daemon, key):
    daemon = make_daemon()
    files = ("--config", str(daemon.example), "--config", str(daemon.config))
    assert daemon.sayso("config", "check", *files).stdout.endswith("valid\n")
    daemon.config.write_text(entangled(daemon)[key])
    for command in (("config", "check"), ("up",)):
        done = daemon.sayso(*command, *files, status=78)
        assert key in done.stderr
        assert "agents.main.workspace" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("key", KEYS[:2])
def test_entangled_places_change_nothing_by_a_reload(daemon, key):
    daemon.config.write_text(entangled(daemon)[key])
    told = daemon.json("reload", status=None)
    assert not told["ok"]
    assert key in told["problems"][0]
    assert daemon.sayso("exec", "--", "git", "--version").returncode == 0


def test_a_workspace_around_the_agents_socket_changes_nothing_by_a_reload(make_daemon):
    daemon = make_daemon()
    whole = entangled(daemon)["daemon.socket.path"]
    before, around, after = whole.rpartition("agents:")
    daemon.config.write_text(before)
    daemon.start()
    assert daemon.json("reload")["ok"]
    daemon.config.write_text(f"{before}{around}{after}")
    told = daemon.json("reload", status=None)
    assert not told["ok"]
    assert "daemon.socket.path" in told["problems"][0]
    assert "agents.main.workspace" in told["problems"][0]


def test_the_default_place_of_the_agents_socket_is_refused_in_a_workspace_and_taken_beside_it(make_daemon):
    daemon = make_daemon()
    login = daemon.root / "login"
    login.mkdir(mode=0o700)
    files = ("--config", str(daemon.example), "--config", str(daemon.config))
    env = {"RUNTIME_DIRECTORY": f"{login}/sayso"}
    assert daemon.sayso("config", "check", *files, env=env).stdout.endswith("valid\n")
    config = daemon.config.read_text()
    daemon.config.write_text(f"{config}agents: {{main: {{workspace: {login}}}}}\n")
    done = daemon.sayso("config", "check", *files, status=78, env=env)
    assert "daemon.socket.path, its default" in done.stderr
    assert f"agents.main.workspace ({login})" in done.stderr


@pytest.mark.parametrize("way", ["sub/s.sock", "link/s.sock", "../beside/s.sock"])
def test_the_operators_socket_is_refused_where_commands_write_and_taken_beside_it(make_daemon, way):
    daemon = make_daemon()
    work, beside = daemon.root / "work", daemon.root / "beside"
    for directory in (work / "sub", beside):
        directory.mkdir(parents=True, mode=0o700)
    (work / "link").symlink_to(beside)
    daemon.config.write_text(f"{daemon.config.read_text()}agents: {{main: {{workspace: {work}}}}}\n")
    if way.startswith(".."):
        daemon.start("--socket", str(work / way))
        assert daemon.stop() == 0
        return
    done = daemon.sayso("up", *daemon.configs, "--port", "0", "--socket", str(work / way), status=78)
    assert f"--socket ({work / way}" in done.stderr
    assert f"lies in agents.main.workspace ({work})" in done.stderr
    assert not daemon.home.exists()


@pytest.mark.parametrize("given", [True, False])
def test_a_workspace_around_the_operators_socket_changes_nothing_by_a_reload(make_daemon, given):
    daemon = make_daemon()
    work = daemon.root / "work"
    work.mkdir(mode=0o700)
    named = work / "s.sock"
    daemon.start(*(("--socket", str(named)) if given else ()))
    daemon.config.write_text(f"{daemon.config.read_text()}agents: {{main: {{workspace: {work}}}}}\n")
    done = daemon.sayso("reload", *(("--socket", str(named)) if given else ()), status=None)
    assert (f"--socket ({named}) lies in agents.main.workspace" in done.stderr) is given, done.stderr
    assert (done.returncode == 0) is not given


def test_a_configuration_in_a_workspace_is_refused(make_daemon):
    daemon = make_daemon()
    apart = daemon.root.parent
    daemon.config.write_text(
        f"sandboxing: {{workspaceRoot: {apart}/workspaces}}\nagents: {{main: {{workspace: {daemon.root}}}}}\n"
    )
    files = ("--config", str(daemon.example), "--config", str(daemon.config))
    done = daemon.sayso("config", "check", *files, status=78, env={"SAYSO_HOME": f"{apart}/state"})
    assert f"configured by ({daemon.config}) lies in agents.main.workspace ({daemon.root})" in done.stderr
