"""What is to be hidden or opened in a held run on the host, and is gone by the time that it is mounted."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.runners.accounts import Account
from adapters.runners.late_options import LateOptions
from core.errors import RunError
from core.model.plan import RunOrder
from tests.integration.runners.kit import Place, Recorder

NOBODY = pwd.getpwnam("nobody")
Happen = Callable[..., list[int]]


@pytest.fixture
def happen(monkeypatch: pytest.MonkeyPatch) -> Happen:
    """Have these things happen, one at each start, between the plan and its mounts; counts the starts."""

    def arrange(*things: Callable[[], object]) -> list[int]:
        give, starts, left = LateOptions.give, [], list(things)

        def late(options: LateOptions, given: list[str]) -> None:
            starts.append(len(given))
            if left:
                left.pop(0)()
            give(options, given)

        monkeypatch.setattr(LateOptions, "give", late)
        return starts

    return arrange


def order(place: Place, script: str, *, by_person: bool = False, **plan: object) -> RunOrder:
    made = place.shell(script, runner="host", plan=lambda base: replace(base, **plan))
    return replace(made, by_person=by_person)


def masked(place: Place, *names: str) -> tuple[str, ...]:
    """Make directories to be hidden where the account of the run can make none."""
    for name in names:
        (place.root / name).mkdir()
    return (*place.on_the_host.masked, *(str(place.root / name) for name in names))


@pytest.fixture
def work(place: Place) -> Path:
    """A directory of work beside a file to be hidden, in a directory that the account can change."""
    room = place.root / "room"
    (room / "work").mkdir(parents=True)
    (room / "config").touch()
    for path in (room, room / "work"):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    place.on_the_host = replace(place.on_the_host, masked=(str(room / "config"),))
    return room / "work"


async def test_a_directory_of_work_that_is_gone_is_not_missed(
    place: Place, work: Path, happen: Happen
) -> None:
    starts = happen(work.rmdir)
    heard = Recorder()
    result = await place.host.run(order(place, f"ls -d {work.parent}/*"), heard)
    assert result.stdout == f"{work.parent}/config\n"
    assert heard.text("stderr") == result.stderr == ""
    assert len(starts) == 1


@pytest.mark.parametrize("moved", [True, False])
async def test_a_directory_of_work_that_comes_back_is_closed_and_opens_nothing(
    place: Place,
    work: Path,
    happen: Happen,
    moved: bool,  # noqa: FBT001 - a table
) -> None:
    aside = place.root / "aside"

    class Returning(Recorder):
        def write(self, request_id: str, stream: str, data: bytes) -> None:
            super().write(request_id, stream, data)
            if moved and data == b"began\n":
                aside.rename(work)
                (place.workspace / "go").touch()

    happen(*([lambda: work.rename(aside)] if moved else []))
    if not moved:
        (place.workspace / "go").touch()
    wait = f"echo began; until test -e {place.workspace}/go; do sleep 0.01; done"
    tries = f"touch {work}/x && echo wrote; mv {work} {work}2 && echo renamed; echo x >{work.parent}/config"
    result = await place.host.run(order(place, f"{wait}; {tries}"), Returning())
    assert "renamed" not in result.stdout
    assert ("wrote" in result.stdout) is not moved
    assert (work.parent / "config").read_text() == ""


async def test_what_is_hidden_and_gone_is_left_out_by_a_second_start_that_nobody_notices(
    place: Place, happen: Happen
) -> None:
    hidden = masked(place, "secret")
    starts = happen((place.root / "secret").rmdir)
    heard = Recorder()
    result = await place.host.run(order(place, "echo ran >&2", masked=hidden), heard)
    assert (result.exit_code, result.stderr) == (0, "ran\n")
    assert heard.heard == [(heard.heard[0][0], "stderr", b"ran\n")]
    assert len(starts) == 2
    assert starts[1] < starts[0]


async def test_a_place_that_is_gone_again_starts_nothing_and_is_told_as_an_error_alone(
    place: Place, happen: Happen
) -> None:
    hidden = masked(place, "secret", "other")
    starts = happen((place.root / "secret").rmdir, (place.root / "other").rmdir)
    heard = Recorder()
    with pytest.raises(RunError, match="mount namespace of the run could not be set up: bwrap: "):
        await place.host.run(order(place, f"touch {place.workspace}/trace", masked=hidden), heard)
    assert heard.heard == []
    assert len(starts) == 2
    assert not (place.workspace / "trace").exists()


async def test_a_socket_that_the_operator_opens_may_go(place: Place, happen: Happen) -> None:
    path = place.root / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        starts = happen(path.unlink)
        asked = order(place, f"ls {path} || echo gone", by_person=True, sockets=(str(path),))
        result = await place.host.run(asked, Recorder())
    assert result.stdout == "gone\n"
    assert len(starts) == 2


async def test_a_directory_that_goes_while_the_plan_is_made_is_planned_anew(
    place: Place, work: Path, happen: Happen, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_change = Account.may_change

    def late(account: Account, directory: str) -> bool:
        if directory == str(work.parent):
            shutil.rmtree(work.parent, ignore_errors=True)
        return may_change(account, directory)

    monkeypatch.setattr(Account, "may_change", late)
    starts = happen()
    assert (await place.host.run(order(place, "echo ran"), Recorder())).stdout == "ran\n"
    assert len(starts) == 1


async def test_a_command_that_fails_by_itself_is_started_once(place: Place, happen: Happen) -> None:
    starts = happen()
    result = await place.host.run(order(place, "echo no >&2; exit 1"), Recorder())
    assert (result.exit_code, result.stderr) == (1, "no\n")
    missing = place.order(str(place.root / "none"), runner="host")
    with pytest.raises(RunError):
        await place.host.run(missing, Recorder())
    assert len(starts) == 1
