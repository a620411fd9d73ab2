"""A configuration that others could write or exchange is not taken for the operator's."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.runners.groups import is_alone_in, members_of
from tests.e2e.conftest import finish, wait_for
from tests.e2e.daemon_of_user import DaemonOfUser, nobody
from tests.users import User, needs_users

pytestmark = [pytest.mark.daemon, needs_users]

STRANGER = pwd.getpwnam("bin")
POLICY = "tools: {{exec: {{security: full, ask: 'off', host: gateway, deny: [{denied}]}}}}\n"


class Site:
    """All of a daemon of `nobody` below one directory of its own: its state and its configuration."""

    def __init__(self, root: Path) -> None:
        self.user = nobody()
        self.root = root
        self.top = root / "s"
        for directory in (self.top, self.conf):
            directory.mkdir(mode=0o755)
            self.own(directory)
        self.daemon = DaemonOfUser(root, self.user)
        self.daemon.live_in(self.top / "home")
        self.daemon.config = self.file
        self.save("uname")
        self.daemon.start()

    @property
    def conf(self) -> Path:
        return self.top / "conf"

    @property
    def file(self) -> Path:
        return self.conf / "overlay.yaml"

    def own(self, path: Path, uid: int | None = None) -> None:
        os.chown(path, self.user.uid if uid is None else uid, self.user.gid, follow_symlinks=False)

    def save(self, denied: str) -> None:
        """Save as an editor does: a new file, renamed."""
        new = self.file.with_name("overlay.yaml~")
        head = f"sandboxing: {{workspaceRoot: {self.root}/workspaces}}\n"
        new.write_text(head + POLICY.format(denied=denied))
        self.own(new)
        new.rename(self.file)

    def begin(self, script: str) -> subprocess.Popen[str]:
        """Begin a script on the host, which the policy admits, and nobody is asked."""
        file = self.root / "work.sh"
        file.write_text(script)
        return self.daemon.ask("--", "sh", str(file))

    def run(self, script: str) -> None:
        """Run a script to its end."""
        status, _, err = finish(self.begin(script))
        assert status == 0, err

    def as_stranger(self, script: str) -> int:
        """Run a script as another user of the machine."""
        stranger = User(STRANGER.pw_uid, STRANGER.pw_gid)
        return subprocess.run(["sh", "-ec", script], check=False, cwd="/", **stranger.identity).returncode

    def refusal(self) -> str:
        told = self.daemon.json("reload", status=78)
        assert (told["ok"], told["atOnce"]) == (False, [])
        assert self.denies("uname"), "what was in force stays"
        return "\n".join(told["problems"])

    def taken(self) -> bool:
        return bool(self.daemon.json("reload")["ok"])

    def denies(self, program: str) -> bool:
        return self.daemon.sayso("exec", "--", program, status=None).returncode == 77


@pytest.fixture
def site(reachable_tmp: Path) -> Iterator[Site]:
    made = Site(reachable_tmp)
    yield made
    made.daemon.end()


def exchange(site: Site) -> str:
    """Put another directory in the place of that of the configuration, with a policy that denies nothing."""
    evil = site.file.read_text().replace("uname", "none")
    return f"mv {site.conf} {site.conf}.x; mkdir {site.conf}; cat >{site.file} <<'EOF'\n{evil}EOF"


def test_a_stranger_whom_a_run_let_in_gets_no_configuration_taken(site: Site) -> None:
    assert site.as_stranger(exchange(site)) != 0, "the control: the directory above is closed to others"
    site.run(f"chmod 777 {site.top}")
    assert site.as_stranger(exchange(site)) == 0
    assert f"{site.file}: other users can change {site.top} (mode 0777)" in site.refusal()
    site.run(f"chmod 755 {site.top}")
    assert f"{site.conf} belongs to bin, who could put another file in its place" in site.refusal()


def test_what_the_run_itself_puts_there_once_the_stranger_made_room_is_not_taken(site: Site) -> None:
    making_room, _, putting = exchange(site).partition("; ")
    script = f"chmod 777 {site.top}; while test -e {site.conf}; do sleep 0.05; done\n{putting}\n"
    going_on = site.begin(f"{script}chmod 755 {site.top}")
    wait_for(lambda: site.as_stranger(making_room) == 0)
    assert finish(going_on)[0] == 0
    assert site.conf.stat().st_uid == site.user.uid
    assert "none" in site.file.read_text()
    assert f"the directory {site.conf} is another one than when Sayso last read this file" in site.refusal()


def test_a_state_directory_that_was_moved_is_told_at_a_reload(site: Site) -> None:
    site.run(f"chmod 777 {site.top}")
    home = site.daemon.home
    assert site.as_stranger(f"mv {home} {home}.x; mv {home}.x {home}") == 0
    site.run(f"chmod 755 {site.top}")
    assert site.taken(), "the near miss: it is the same one"
    shutil.copytree(home, f"{home}.new", ignore=lambda *_: ["sayso.sock"])
    home.rename(f"{home}.x")
    Path(f"{home}.new").rename(home)
    Path(f"{home}.x/sayso.sock").rename(home / "sayso.sock")
    for path in (home, *home.rglob("*")):
        site.own(path)
    assert f"SAYSO_HOME {home}: the directory {home} is another one than when Sayso started" in site.refusal()


def test_who_edits_by_renaming_is_taken_and_who_made_the_directory_anew_restarts(site: Site) -> None:
    site.save("date")
    assert site.taken()
    assert (site.denies("date"), site.denies("uname")) == (True, False)
    site.save("uname")
    assert site.taken()
    site.conf.rename(site.conf.with_name("before"))
    shutil.copytree(site.conf.with_name("before"), site.conf)
    for path in (site.conf, site.file):
        site.own(path)
    assert "if that was you, restart Sayso" in site.refusal()
    assert site.daemon.stop() == 0
    site.daemon.start()
    assert site.taken()


@dataclass
class Laid:
    """A configuration of a user in two directories of its own."""

    user: User
    file: Path

    @property
    def above(self) -> Path:
        return self.file.parent.parent

    def check(self) -> tuple[int, str]:
        words = ("config", "check", "--config", str(self.file))
        status, _, err = self.user.sayso(*words, env={"SAYSO_HOME": f"{self.above}/home"})
        return status, err


def alone() -> User:
    """Give a user of the machine who has its group for itself."""
    entry = next(each for each in pwd.getpwall() if each.pw_uid and is_alone_in(each.pw_gid, each.pw_uid))
    return User(entry.pw_uid, entry.pw_gid)


def in_company() -> User:
    """Give one whose group others are in as well."""
    entry = next(each for each in pwd.getpwall() if each.pw_uid and len(members_of(each.pw_gid) or ()) > 1)
    return User(entry.pw_uid, entry.pw_gid)


def lay(root: Path, user: User) -> Laid:
    file = root / "u" / "conf" / "sayso.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("tools: {profile: minimal}\n")
    for path in (root / "u", file.parent, file):
        os.chown(path, user.uid, user.gid)
    return Laid(user, file)


def nothing(_laid: Laid) -> None:
    pass


def for_the_group(laid: Laid) -> None:
    laid.file.chmod(0o664)
    laid.file.parent.chmod(0o775)
    laid.above.chmod(0o2775)


def of_root(laid: Laid) -> None:
    for path in (laid.above, laid.file.parent, laid.file):
        os.chown(path, 0, 0)


def shared_with_the_sticky_bit(laid: Laid) -> None:
    laid.above.chmod(0o1777)


def behind_a_link_of_its_own(laid: Laid) -> None:
    moved = laid.file.rename(laid.above / "real.yaml")
    laid.file.symlink_to(moved)
    os.chown(laid.file, laid.user.uid, laid.user.gid, follow_symlinks=False)


@pytest.mark.parametrize(
    "ordinary", [nothing, for_the_group, of_root, shared_with_the_sticky_bit, behind_a_link_of_its_own]
)
def test_what_is_ordinary_is_taken(reachable_tmp: Path, ordinary: Callable[[Laid], None]) -> None:
    laid = lay(reachable_tmp, alone())
    ordinary(laid)
    assert laid.check()[0] == 0, laid.check()


def a_file_for_all(laid: Laid) -> str:
    laid.file.chmod(0o666)
    return f"{laid.file} can be changed by other users (mode 0666), and so the policy; look at what it holds"


def a_directory_for_all(laid: Laid) -> str:
    laid.above.chmod(0o777)
    return (
        f"{laid.file}: other users can change {laid.above} (mode 0777), and so put another file in its "
        f"place; look at what it holds, then close it: chmod go-w {laid.above}"
    )


def a_file_of_a_stranger(laid: Laid) -> str:
    os.chown(laid.file, STRANGER.pw_uid, STRANGER.pw_gid)
    return (
        f"{laid.file} belongs to bin, who can change it, and so the policy; look at it, then as root: chown"
    )


def a_directory_of_a_stranger(laid: Laid) -> str:
    os.chown(laid.above, STRANGER.pw_uid, STRANGER.pw_gid)
    return f"{laid.file}: {laid.above} belongs to bin, who could put another file in its place; keep the file"


def a_link_of_a_stranger(laid: Laid) -> str:
    behind_a_link_of_its_own(laid)
    os.chown(laid.file, STRANGER.pw_uid, STRANGER.pw_gid, follow_symlinks=False)
    return f"{laid.file} is a link that belongs to bin, who could lead it elsewhere; name the file"


@pytest.mark.parametrize(
    "expose",
    [
        a_file_for_all,
        a_directory_for_all,
        a_file_of_a_stranger,
        a_directory_of_a_stranger,
        a_link_of_a_stranger,
    ],
)
def test_what_is_open_to_others_is_refused_with_what_to_do(
    reachable_tmp: Path, expose: Callable[[Laid], str]
) -> None:
    user = nobody() if STRANGER.pw_uid == alone().uid else alone()
    laid = lay(reachable_tmp, user)
    words = expose(laid)
    status, said = laid.check()
    assert status == 78
    assert words in said
    env = {"SAYSO_HOME": f"{laid.above}/home"}
    status, _, said = user.sayso("up", "--config", str(laid.file), env=env)
    assert (status, words in said) == (78, True), said
    assert not (laid.above / "home").exists()


def test_a_directory_for_a_group_of_several_is_refused(reachable_tmp: Path) -> None:
    laid = lay(reachable_tmp, in_company())
    laid.file.parent.chmod(0o775)
    status, said = laid.check()
    assert status == 78
    assert f"other users can change {laid.file.parent} (mode 0775)" in said
