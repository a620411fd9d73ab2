"""Where the agents' socket lies, and which directories are good enough for it."""

from __future__ import annotations

import grp
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import agent_socket
from bot.agent_socket import Group, Place, default_path, place_of, prepare
from core.config import SocketSettings
from core.errors import StartError

OWN = grp.getgrgid(os.getgid())
GROUP = Group(OWN.gr_name, OWN.gr_gid)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.fixture
def root() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sayso-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def home(root: Path) -> Path:
    (root / "home").mkdir(mode=0o700)
    return root / "home"


def made(path: Path, mode: int = 0o700) -> Path:
    path.mkdir()
    path.chmod(mode)
    return path


def configured(path: Path, group: Group | None = None) -> Place:
    place = place_of(SocketSettings(path=str(path), group=group.name if group else None), {})
    assert place is not None
    return place


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("group", "mode"), [(None, 0o700), (GROUP, 0o710)])
def test_a_directory_that_is_missing_is_made_for_those_let_in(root, home, group, mode):
    prepare(configured(root / "run" / "s", group), home)
    assert mode_of(root / "run") == mode


@pytest.mark.parametrize("mode", [0o755, 0o711, 0o710, 0o750])
def test_a_directory_that_the_group_can_pass_stays_as_it_is(root, home, mode):
    prepare(configured(made(root / "run", mode) / "s", GROUP), home)
    assert mode_of(root / "run") == mode


def test_a_closed_directory_with_nothing_but_the_socket_is_opened_to_the_group(root, home):
    (made(root / "run") / "s").touch()
    prepare(configured(root / "run" / "s", GROUP), home)
    assert mode_of(root / "run") == 0o710


def test_a_closed_directory_with_other_things_is_not_opened_but_named(root, home):
    (made(root / "run") / "letters").touch()
    with pytest.raises(StartError, match=rf"cannot pass {root}/run \(mode 0700\).*alone, e\.g\."):
        prepare(configured(root / "run" / "s", GROUP), home)
    assert mode_of(root / "run") == 0o700
    prepare(configured(root / "run" / "s"), home)  # for its own user it is as good as any


def test_a_closed_directory_above_is_named(root, home):
    made(root / "above")
    made(root / "above" / "run", 0o755)
    with pytest.raises(StartError, match=f"cannot pass {root}/above "):
        prepare(configured(root / "above" / "run" / "s", GROUP), home)


@pytest.mark.parametrize(
    ("mode", "mend"),
    [
        *((mode, "chmod go-w {}") for mode in (0o777, 0o770, 0o775, 0o702)),
        (0o1777, "choose a directory that is Sayso's alone"),
    ],
)
def test_a_directory_that_others_can_change_is_refused(root, home, mode, mend):
    made(root / "run", mode)
    with pytest.raises(StartError, match=f"others can change {root}/run .*{mend.format(root / 'run')}"):
        prepare(configured(root / "run" / "s"), home)
    assert mode_of(root / "run") == mode


@needs_root
@pytest.mark.parametrize("group", [None, GROUP])
def test_a_directory_of_somebody_else_is_refused_and_left_alone(root, home, group):
    os.chown(made(root / "run"), 12345, 12345)
    with pytest.raises(StartError, match=r"belongs to uid 12345.*choose a directory that is Sayso's alone"):
        prepare(configured(root / "run" / "s", group), home)
    assert (mode_of(root / "run"), (root / "run").stat().st_gid) == (0o700, 12345)


_HARMFUL = re.compile("chmod|chown|chgrp|install -d")


@needs_root
@pytest.mark.parametrize(
    ("directory", "uid"),
    [("/tmp", 0), *((path, 12345) for path in ("/tmp", "/etc", "/usr/share", "/var/tmp"))],
)
def test_no_command_is_named_that_would_change_a_directory_of_the_system(directory, uid):
    place = Place(Path(directory) / "x.sock", None, configured=True)
    os.seteuid(uid)
    try:
        with pytest.raises(StartError, match="choose a directory that is Sayso's alone") as refused:
            prepare(place, Path("/nonexistent"))
    finally:
        os.seteuid(0)
    assert not _HARMFUL.search(str(refused.value))


@needs_root
def test_below_a_directory_of_somebody_else_it_is_refused(root, home):
    os.chown(made(root / "theirs", 0o755), 12345, -1)
    with pytest.raises(StartError, match=f"others can change {root}/theirs"):
        prepare(configured(root / "theirs" / "run" / "s"), home)
    assert not (root / "theirs" / "run").exists()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_below_a_directory_that_others_can_change_it_is_refused(root, home, mode):
    made(root / "above", mode)
    with pytest.raises(StartError, match=f"others can change {root}/above"):
        prepare(configured(root / "above" / "run" / "s"), home)


def test_a_link_is_followed_once_and_what_it_led_to_is_bound(root, home):
    made(root / "run", 0o755)
    (root / "link").symlink_to(root / "run")
    place = configured(root / "link" / "s")
    prepare(place, home)
    assert place.path == root / "run" / "s"


def test_a_file_in_the_place_of_the_directory_is_named(root, home):
    (root / "run").touch()
    with pytest.raises(StartError, match=f"{root}/run is no directory"):
        prepare(configured(root / "run" / "s"), home)


def test_more_than_one_missing_directory_is_not_made(root, home):
    with pytest.raises(
        StartError, match=rf"{root}/a/b cannot hold a socket: No such file.*make it: install -d"
    ):
        prepare(configured(root / "a" / "b" / "s"), home)


@pytest.mark.parametrize("below", ["s", "agents/s", "../link/s"])
def test_in_the_state_directory_it_is_refused_by_whatever_name(root, home, below):
    (root / "link").symlink_to(home)
    with pytest.raises(StartError, match="lies in SAYSO_HOME"):
        prepare(configured(home / below), home)


def test_beside_the_state_directory_with_a_like_name_it_is_fine(root, home):
    prepare(configured(root / "home-run" / "s"), home)


def test_a_path_too_long_for_a_socket_is_named_and_nothing_is_made(root, home):
    with pytest.raises(StartError, match="may have 107"):
        prepare(configured(root / ("x" * 100) / "s"), home)
    assert os.listdir(root) == ["home"]  # noqa: PTH208 - names


def test_a_group_that_does_not_exist_is_named(root):
    with pytest.raises(
        StartError, match=r"daemon\.socket\.group: there is no group 'nobodys-group'.*groupadd"
    ):
        place_of(SocketSettings(path=str(root / "s"), group="nobodys-group"), {})


def test_a_group_that_mode_0600_shuts_out_is_not_let_in(root):
    settings = SocketSettings(path=str(root / "s"), group="nobodys-group", mode="0600")
    assert place_of(settings, {}) == Place(root / "s", None, configured=True)


@pytest.fixture
def service(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(agent_socket, "SERVICE_SOCKET", str(root / "service" / "agent.sock"))
    return root / "service"


def test_systemd_names_the_directory_of_a_service(service):
    env = {"RUNTIME_DIRECTORY": "/run/other:/run/sayso", "XDG_RUNTIME_DIR": str(service.parent)}
    assert default_path(env) == Path("/run/sayso/agent.sock")


@pytest.mark.parametrize("named", ["", "/run/another-service", "sayso", "/run/sayso-not"])
@pytest.mark.usefixtures("service")
def test_the_directory_of_another_service_is_none(named):
    assert default_path({"RUNTIME_DIRECTORY": named}) is None


def test_a_directory_made_for_the_service_comes_before_that_of_a_login(root, service):
    env = {"XDG_RUNTIME_DIR": str(made(root / "login"))}
    assert default_path(env) == root / "login" / "sayso" / "agent.sock"
    made(service, 0o750)
    assert default_path(env) == service / "agent.sock"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_default_directories_that_others_can_change_are_none(root, service, mode):
    made(service, mode)
    assert default_path({"XDG_RUNTIME_DIR": str(made(root / "login", mode))}) is None


@needs_root
def test_default_directories_of_somebody_else_are_none(root, service):
    for path in (service, root / "login"):
        os.chown(made(path), 12345, -1)
    assert default_path({"XDG_RUNTIME_DIR": str(root / "login")}) is None


@pytest.mark.parametrize("login", ["", "login", "/nonexistent/login"])
@pytest.mark.usefixtures("service")
def test_a_login_without_a_directory_has_no_place(login):
    assert default_path({"XDG_RUNTIME_DIR": login}) is None


def test_a_link_in_the_place_of_the_service_s_directory_is_none(root, service):
    service.symlink_to(made(root / "elsewhere"))
    assert default_path({}) is None
