"""Who could put something else where the configuration is read from, and which runs that puts in doubt."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners.accounts import Account, host_account
from bot.apart import places_on
from bot.config.marks import Mark, mark_of
from bot.witness import Witness
from core.model.plan import SandboxPlan
from tests.integration.runners.kit import Place, Recorder

NOBODY = pwd.getpwnam("nobody")
TRIES = """
cd /
echo theirs 2>/dev/null >"$1" || mv "$1" "$1~" 2>/dev/null || mv "${1%/*}" "${1%/*}~" 2>/dev/null
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


def own(path: Path) -> None:
    os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)


def nothing(_file: Path) -> None:
    pass


def a_file_of_theirs(file: Path) -> None:
    own(file)
    file.chmod(0o444)


def a_file_for_all(file: Path) -> None:
    file.chmod(0o666)


def a_directory_of_theirs(file: Path) -> None:
    own(file.parent)


def a_directory_above_of_theirs(file: Path) -> None:
    own(file.parent.parent)


def a_directory_for_all(file: Path) -> None:
    file.parent.chmod(0o777)


def a_shared_directory(file: Path) -> None:
    file.parent.chmod(0o1777)


def a_shared_directory_with_their_file(file: Path) -> None:
    file.parent.chmod(0o1777)
    own(file)


def a_closed_way_to_a_file_for_all(file: Path) -> None:
    file.chmod(0o666)
    file.parent.chmod(0o700)


def a_link_of_theirs(file: Path) -> None:
    moved = file.parent.parent / "moved"
    moved.mkdir(mode=0o755)
    file.rename(moved / "config.yaml")
    file.symlink_to(moved / "config.yaml")
    own(file.parent)


@pytest.mark.parametrize(
    ("lay", "may"),
    [
        (nothing, False),
        (a_shared_directory, False),
        (a_closed_way_to_a_file_for_all, False),
        (a_file_of_theirs, True),
        (a_file_for_all, True),
        (a_directory_of_theirs, True),
        (a_directory_above_of_theirs, True),
        (a_directory_for_all, True),
        (a_shared_directory_with_their_file, True),
        (a_link_of_theirs, True),
    ],
)
def test_who_may_put_something_else_there_is_known_as_the_kernel_knows_it(
    place: Place, lay: Callable[[Path], None], *, may: bool
) -> None:
    file = place.root / "above" / "conf" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("the policy")
    lay(file)
    account = Account("nobody", NOBODY.pw_uid, NOBODY.pw_gid, drop=True)
    known = any(map(account.may_put, places_on(str(file))))
    if lay is a_file_of_theirs:
        file.chmod(0o644)  # as its owner can
    subprocess.run(["/bin/sh", "-c", TRIES, "sh", str(file)], check=False, **account.identity)
    done = not file.exists() or file.read_text() != "the policy"
    assert (known, done) == (may, may)


def test_root_may_put_anything_anywhere(place: Place) -> None:
    place.root.chmod(0o1700)
    assert host_account(None).may_put(str(place.root / "config.yaml"))


class Watched:
    """Two files of a configuration, which `nobody` may write, and a witness of them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.files = [place.root / "a.yaml", place.root / "b.yaml"]
        for file in self.files:
            file.write_text("the policy")
            own(file)
        self.known = [str(self.files[0])]
        self.witness = Witness(lambda: self.known)

    def run(self, program: str) -> AbstractContextManager[None]:
        return self.witness.watching(self.place.order(program, runner="host"))

    def read(self) -> dict[str, Mark]:
        return {str(file): mark for file in self.files if (mark := mark_of(str(file)))}

    def doubts(self) -> list[str]:
        return list(map(str, self.witness.doubts(self.read())))

    def tell(self) -> list[str]:
        doubts = self.witness.doubts(self.read())
        self.witness.told(doubts)
        return list(map(str, doubts))


@pytest.fixture
def watched(place: Place) -> Watched:
    return Watched(place)


def test_every_run_that_goes_on_is_named_and_none_that_began_later(watched: Watched) -> None:
    watched.files.pop()
    with watched.run("/bin/one"), watched.run("/bin/two"):
        assert watched.doubts() == []
        watched.files[0].write_text("another")
        with watched.run("/bin/three"):
            (said,) = watched.doubts()
        assert "/bin/one" in said
        assert "/bin/two" in said
        assert "/bin/three" not in said


def test_a_file_that_a_run_was_not_kept_from_when_it_began_is_in_doubt(watched: Watched) -> None:
    with watched.run("/bin/one"):
        (said,) = watched.doubts()
        assert f"{watched.files[1]}: was first named while" in said
    watched.known = [str(file) for file in watched.files]
    watched.tell()
    with watched.run("/bin/two"):
        assert watched.doubts() == []


def test_what_was_told_while_the_run_went_on_is_told_again_only_where_it_changed_since(
    watched: Watched,
) -> None:
    watched.files.pop()
    with watched.run("/bin/one"):
        watched.files[0].write_text("another")
        assert len(watched.tell()) == len(watched.tell()) == 1
    assert watched.tell() == []
    with watched.run("/bin/one"):
        watched.files[0].write_text("yet another")
        watched.tell()
        watched.files[0].write_text("and one more")
    assert len(watched.doubts()) == len(watched.tell()) == 1
    assert watched.tell() == []


def test_a_file_that_was_away_when_a_run_ended_is_in_doubt(watched: Watched) -> None:
    watched.files.pop()
    own(watched.place.root)
    with watched.run("/bin/one"):
        shutil.move(watched.files[0], watched.place.root / "aside")
    watched.files[0].write_text("another")
    assert len(watched.tell()) == 1
    assert watched.tell() == []


def _make_pipe(path: Path) -> None:
    os.mkfifo(path)
    path.chmod(0o666)


def _reads(file: Path) -> str:
    return file.read_text()


def _replace(file: Path) -> None:
    new = file.with_suffix(".new")
    new.write_text("another policy")
    own(new)
    new.replace(file)


async def _replaced_while_it_runs(
    place: Place, file: Path, *, runner: str, by_person: bool
) -> tuple[bool, bool]:
    """Replace a file by renaming while a run tries to write it; tells whether it wrote, and is doubted."""
    witness = Witness(lambda: [str(file)])

    def masked(plan: SandboxPlan) -> SandboxPlan:
        return plan if plan.unheld else replace(plan, masked=(*plan.masked, str(file)))

    script = f"echo began; read _ <go; echo theirs >{file}; echo theirs >{file}~ && mv {file}~ {file}; true"
    _make_pipe(place.workspace / "go")
    order = replace(place.shell(script, runner=runner, plan=masked), by_person=by_person)
    heard = Recorder()
    with witness.watching(order):
        running = asyncio.create_task(place.host.run(order, heard))
        await heard.first.wait()
        _replace(file)
        await asyncio.to_thread((place.workspace / "go").write_text, "go\n")
        await running
        mark = mark_of(str(file))
        assert mark is not None
        return _reads(file) == "theirs\n", bool(witness.doubts({str(file): mark}))


@pytest.mark.parametrize("by_person", [True, False])
@pytest.mark.parametrize(
    ("runner", "where", "theirs", "expected"),
    [
        ("host", "conf", True, (False, False)),  # closed to held runs: the operator need not wait
        ("unheld", "conf", True, (True, True)),
        ("host", "conf", False, (True, True)),  # the file alone is theirs: its directory is not closed
        ("host", ".", True, (True, True)),  # the workspace itself stays open
    ],
)
async def test_a_file_replaced_meanwhile_is_in_doubt_exactly_where_the_run_can_write_it(
    place: Place, runner: str, where: str, *, theirs: bool, by_person: bool, expected: tuple[bool, bool]
) -> None:
    directory = place.root / where if where != "." else place.workspace
    directory.mkdir(exist_ok=True)
    if theirs:
        own(directory)
    (directory / "config.yaml").write_text("the policy")
    own(directory / "config.yaml")
    found = await _replaced_while_it_runs(
        place, directory / "config.yaml", runner=runner, by_person=by_person
    )
    assert found == expected
