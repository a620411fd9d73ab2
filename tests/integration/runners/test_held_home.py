"""What a held run on the host can change of its account's home, and around Sayso's own files."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners.accounts import Account
from adapters.runners.home import home_layout
from adapters.runners.mounts import Effect
from tests.integration.runners.homely import BY_OTHER_NAMES, NOBODY, Homely
from tests.integration.runners.kit import Place, Recorder

REPOSITORY = Path(__file__).parents[3]
WRITE = {
    "the top": "echo x >.zshrc",
    "a dot directory": "echo x >.config/x",
    "deep in one": "echo x >.local/share/x",
    "programs": "echo x >bin/x",
}


@pytest.fixture
def homely(place: Place) -> Homely:
    return Homely(place.root, place.on_the_host).furnish()


def own(homely: Homely, path: str, *, is_file: bool = False) -> str:
    """Make a place of Sayso's own in the home."""
    made = homely.home / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("secret") if is_file else made.mkdir()
    if not is_file:
        (made / "token").write_text("secret")
    homely.owned()
    return str(made)


@pytest.mark.parametrize("state", [".sayso", ".local/share/sayso", "sayso", "projects/deep/sayso"])
def test_a_state_in_the_home_stays_absent_and_opens_nothing_around_it(homely: Homely, state: str) -> None:
    masked = (own(homely, state),)
    assert homely.can(f"cat {state}/token")
    for by_person in (False, True):
        assert not homely.can(f"cat {state}/token", masked=masked, by_person=by_person)
        assert not homely.can(f"mv {state} projects/moved", masked=masked, by_person=by_person)
    assert [name for name, script in WRITE.items() if homely.can(script, masked=masked)] == []
    assert homely.can("echo x >projects/x", masked=masked)
    assert all(homely.can(script, masked=masked, by_person=True) for script in WRITE.values())


@pytest.mark.parametrize(
    "config", [".config/sayso.yaml", ".config/sayso/c.yaml", "go/c.yaml", "projects/c.yaml"]
)
def test_a_configuration_in_the_home_opens_nothing_around_it(homely: Homely, config: str) -> None:
    masked = (own(homely, config, is_file=True),)
    assert not homely.can(f"grep secret {config}", masked=masked)
    assert [name for name, script in WRITE.items() if homely.can(script, masked=masked)] == []
    assert not homely.can("echo x >.config/git/config", masked=masked)
    assert not homely.can("echo x >go/bin/x", masked=masked)
    assert homely.can("echo x >go/bin/x && echo x >.config/git/config", masked=masked, by_person=True)


def test_a_program_that_is_the_home_itself_stays_as_it_is(homely: Homely) -> None:
    assert homely.can("echo x >projects/x")
    assert not homely.can("echo x >projects/x", read_only=(str(homely.home),))


def test_a_workspace_in_a_dot_directory_can_be_written_and_a_link_there_leads_nowhere(homely: Homely) -> None:
    workspace = Path(own(homely, ".local/share/sayso/workspaces/main"))
    write = f"echo x >{workspace}/x"
    assert homely.can(write, workspace=str(workspace))
    assert not homely.can(f"echo x >{workspace.parent}/x", workspace=str(workspace))
    assert not homely.can(write)
    link = workspace.parent / "other"
    link.symlink_to(homely.home / ".config" / "git")
    assert not homely.can("echo x >.config/git/x", workspace=str(link))


def test_where_go_has_no_programs_nobody_makes_the_place_for_them(homely: Homely) -> None:
    (homely.home / "go" / "bin").rmdir()
    (homely.home / "go" / "pkg").mkdir()
    homely.owned()
    assert not homely.can("mkdir go/bin")
    assert homely.can("echo x >go/pkg/x")
    assert homely.can("mkdir go/bin", by_person=True)


def test_a_home_that_root_owns_is_closed_where_the_account_has_something_in_it(homely: Homely) -> None:
    os.chown(homely.home, 0, 0)
    assert not homely.can("echo x >.ssh/rc")
    assert homely.can("echo x >projects/x")
    assert homely.can("echo x >.ssh/rc", by_person=True)


@pytest.mark.parametrize("home", ["", "/", "/tmp", "/var/tmp", "/nonexistent", "/usr/sbin", "/root"])
def test_what_is_no_home_of_the_account_is_left_alone(home: str) -> None:
    account = Account("nobody", NOBODY.pw_uid, NOBODY.pw_gid, drop=True, home=home)
    assert home_layout(account, "/var/tmp/w") == {}


def test_links_out_of_closed_places_close_nothing_that_others_need(homely: Homely) -> None:
    for name, target in {
        "null": "/dev/null",
        "top": "/",
        "up": "..",
        "tmp": "/var/tmp",
        "self": "/proc/self",
    }.items():
        (homely.home / f".{name}").symlink_to(target)
        (homely.home / ".config" / name).symlink_to(target)
    (homely.home / ".gone").symlink_to("nowhere")
    homely.owned()
    assert homely.can(
        "echo x >/dev/null && touch /var/tmp/sayso-x && rm /var/tmp/sayso-x && echo x >projects/x"
    )
    closed = {path for path, effect in home_layout(homely.account, "/").items() if effect is Effect.SHOW}
    assert closed == {str(homely.home / path) for path in ("", "go/bin", "dotfiles/vimrc")}


def test_a_second_name_of_the_home_opens_nothing(homely: Homely) -> None:
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m"]
    command += ["tests.integration.runners.homely", str(homely.home.parent)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [way for way, done in found["rule"].items() if done] == ["work by the whole", "work by a part"]
    assert found["person"] == dict.fromkeys(BY_OTHER_NAMES, True)


class Watched:
    """A configuration that is replaced while a run is under way, in a directory of the account's."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.config = place.root / "conf" / "config.yaml"
        (self.config.parent / "beside").mkdir(parents=True)
        self.config.write_text("first")
        for path in (self.config.parent, self.config.parent / "beside", self.config):
            os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
        place.on_the_host = replace(place.on_the_host, masked=(str(self.config),))

    async def run(self, script: str, runner: str, *, by_person: bool, cwd: str | None = None) -> str:
        """Run what waits for the second configuration, and then a script; gives what it said."""
        seen = f"for i in $(seq 200); do grep -q second {self.config} && break; sleep 0.05; done"
        order = self.place.shell(
            f"printf '%s up\\n' \"$(cat {self.config})\"; {seen}; cat {self.config}; {script}",
            runner=runner,
            cwd=cwd,
        )
        heard = Recorder()
        task = asyncio.create_task(self.place.host.run(replace(order, by_person=by_person), heard))
        await asyncio.wait_for(heard.first.wait(), 10)
        self._replace()
        return (await task).stdout

    def _replace(self) -> None:
        """Save as an editor does."""
        new = self.config.with_suffix(".new")
        new.write_text("second")
        os.chown(new, NOBODY.pw_uid, NOBODY.pw_gid)
        new.rename(self.config)


@pytest.mark.parametrize(
    ("runner", "by_person", "said"),
    [
        ("host", False, " up\nsecond"),
        ("host", True, " up\nsecond"),
        ("unheld", True, "first up\nsecondwritten\nremoved\nmade\n"),
    ],
)
async def test_a_configuration_replaced_during_a_run_can_be_seen_and_not_written(
    place: Place,
    runner: str,
    by_person: bool,  # noqa: FBT001 - a table
    said: str,
) -> None:
    watched = Watched(place)
    room = watched.config.parent
    script = (
        f"echo evil >{watched.config} && echo written; rm -f {watched.config} && echo removed; "
        f"echo evil >{room}/included.yaml && echo made; mv {room} {room}2; echo x >{room}/beside/x"
    )
    assert await watched.run(script, runner, by_person=by_person) == said
    if runner == "host":
        assert watched.config.read_text() == "second"
        assert (room / "beside" / "x").read_text() == "x\n"


@pytest.mark.parametrize("by_person", [True, False])
async def test_a_cwd_is_closed_for_a_configuration_only_where_no_person_allowed_the_run(
    place: Place,
    by_person: bool,  # noqa: FBT001 - a table
) -> None:
    watched = Watched(place)
    room = str(watched.config.parent)
    said = await watched.run("echo x >made && echo made", "host", by_person=by_person, cwd=room)
    assert said == (" up\nsecondmade\n" if by_person else " up\nsecond")
