"""A held run on the host: what it keeps, what a person opens to it, what it leaves, and what it is told."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import bot
from adapters.runners import bubblewrap, host_trial, leftovers, threaded
from adapters.runners.host_trial import why_not_held
from adapters.runners.leftovers import Since, kill_leftovers, marked
from core.errors import RunError
from core.model.plan import RunResult, SandboxPlan
from tests.integration.runners.kit import Place, Recorder, processes_with

NOBODY = pwd.getpwnam("nobody")


HEADLESS = """env -i setsid /usr/bin/python3 -c '
import ctypes, os, platform, threading, time
open("pid", "w").write(str(os.getpid()))
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
' & while ! grep -qs Z /proc/$(cat pid)/stat; do sleep 0.05; done; echo ended"""


async def run(place: Place, script: str, *, by_person: bool = False, **options: object) -> RunResult:
    order = place.shell(script, runner="host", **options)
    return await place.host.run(replace(order, by_person=by_person), Recorder())


async def test_the_rest_of_the_machine_is_there_as_it_is(place: Place) -> None:
    (place.root / "notes").write_text("found")
    (place.root / "notes").chmod(0o644)
    script = (
        f"cat {place.root}/notes; ls -d /proc/{os.getpid()}; touch /var/tmp/sayso-x && rm /var/tmp/sayso-x"
    )
    result = await run(place, script, by_person=True)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"found/proc/{os.getpid()}\n"


async def test_only_what_a_person_allowed_sees_the_processes_of_its_user(place: Place) -> None:
    script = f"kill -0 {os.getpid()}; ls -d /proc/{os.getpid()}; echo $$; ls -d /proc/[0-9]* | wc -l"
    seen = (await run(place, script)).stdout.split()
    assert seen[:-1] == ["2"]
    assert int(seen[-1]) < 6


SOCKETS = "perl -MSocket -e 'socket({0}) or die $!; print \"made\"'"


@pytest.mark.parametrize(
    ("asked", "by_person", "made"),
    [
        ("my $s, AF_UNIX, SOCK_STREAM, 0", False, False),
        ("my $s, AF_UNIX, SOCK_DGRAM, 0", False, False),
        ("my $s, AF_UNIX, SOCK_STREAM, 0", True, False),
        ("my $s, AF_INET, SOCK_STREAM, 0", False, True),
        ("my $s, AF_INET6, SOCK_DGRAM, 0", False, True),
    ],
)
async def test_unix_sockets_alone_are_not_there(
    place: Place,
    asked: str,
    by_person: bool,  # noqa: FBT001 - a table
    made: bool,  # noqa: FBT001 - as above
) -> None:
    result = await run(place, SOCKETS.format(asked), by_person=by_person)
    assert (result.stdout == "made") is made, result.stderr


async def test_what_programs_need_instead_of_sockets_is_there(place: Place) -> None:
    pair = "socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die"
    script = f"perl -MSocket -e '{pair}; print getpwnam(\"root\") + 0'"
    assert (await run(place, script)).stdout == "0"
    result = await run(place, "perl -e 'print syscall(425, 1, 0)'")
    assert result.stdout == "-1"
    assert result.held == ("state", "programs", "sockets", "terminals", "privileges")


async def test_terminals_of_its_own_can_be_made(place: Place) -> None:
    result = await run(place, "exec 7<>/dev/ptmx && ls /dev/pts")
    assert result.stdout.split() == ["0", "ptmx"]


@pytest.fixture
def service(place: Place) -> Iterator[Path]:
    """A socket that the account may connect to, in a directory beside other files."""
    directory = place.root / "service"
    directory.mkdir()
    (directory / "notes").touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "s"))
        listening.listen()
        (directory / "s").chmod(0o666)
        yield directory / "s"


CONNECT = (
    "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); "
    "connect($s, pack_sockaddr_un($ARGV[0])) or die $!' "
)


@pytest.mark.parametrize(
    ("opened", "by_person", "reached"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
async def test_a_socket_is_open_only_where_the_operator_opens_it_and_a_person_allowed_the_run(
    place: Place,
    service: Path,
    opened: bool,  # noqa: FBT001 - a table
    by_person: bool,  # noqa: FBT001 - as above
    reached: bool,  # noqa: FBT001 - as above
) -> None:
    place.on_the_host = replace(place.on_the_host, sockets=(str(service),) if opened else ())
    result = await run(place, CONNECT + str(service), by_person=by_person)
    assert (result.exit_code == 0) is reached, result.stderr


ASK = "import sys; from bot.cli import main; sys.exit(main())"


@pytest.mark.parametrize("token", ["", "SAYSO_TOKEN=t "])
@pytest.mark.parametrize(
    ("by_person", "within", "told"),
    [
        (
            False,
            "",
            "has no Unix sockets, so it cannot ask Sayso: let what started it ask",
        ),
        (False, "env -u SAYSO_RUN -u SAYSO_SESSION ", "no Unix socket can be made here: Permission denied"),
        (True, "", "has no Unix sockets"),
    ],
)
async def test_who_asks_within_a_run_is_told_where_it_has_no_sockets(
    place: Place,
    by_person: bool,  # noqa: FBT001 - as above
    within: str,
    told: str,
    token: str,
) -> None:
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("there is no python3 of the system, which every account can run")
    program = place.root / "program"
    shutil.copytree(Path(bot.__file__).parent, program / "bot")
    settings = f"{token}PYTHONPATH={program} SAYSO_HOME={place.root}/none"
    result = await run(place, f"{settings} {within}{python} -c '{ASK}' exec -- id", by_person=by_person)
    assert (result.exit_code, result.stdout) == (69, "")
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


async def test_what_is_shown_is_there_though_it_lies_where_all_is_hidden(place: Place) -> None:
    shown = Path("/run") / f"sayso-test-{os.getpid()}"
    shown.mkdir()
    try:
        (shown / "agent.sock").touch()
        place.on_the_host = replace(place.on_the_host, readable=(str(shown),))
        result = await run(place, f"ls {shown}; touch {shown}/x || ls -A /run")
    finally:
        shutil.rmtree(shown)
    assert result.stdout.split("\n")[0] == "agent.sock"
    assert "dbus" not in result.stdout


@pytest.mark.parametrize(
    "leave",
    [
        "setsid sleep {tag} & ",
        "env -i setsid sleep {tag} & ",
        "(env -i setsid sh -c 'sleep {tag} & sleep {tag}' &) ; ",
        'perl -e \'fork and exit; fork and exit; %ENV = (); exec "sleep", "{tag}"\'; ',
        "env -i setsid sleep {tag} & sleep 0.2; ",
    ],
)
@pytest.mark.parametrize("by_person", [False, True])
async def test_nothing_outlives_it_however_it_hides(
    place: Place,
    leave: str,
    by_person: bool,  # noqa: FBT001 - a table
) -> None:
    tag = f"77.{os.getpid()}"
    result = await run(place, leave.format(tag=tag) + "echo ended", by_person=by_person)
    assert result.stdout == "ended\n"
    assert processes_with(tag) == []


@pytest.mark.parametrize("looks_at_threads", [True, False])
async def test_a_process_whose_first_thread_has_ended_is_found_by_its_others(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    looks_at_threads: bool,  # noqa: FBT001 - as above
) -> None:
    if not looks_at_threads:
        monkeypatch.setattr(leftovers, "_living", lambda pid: iter([f"/proc/{pid}"]))
    result = await run(place, HEADLESS, by_person=True)
    assert result.stdout == "ended\n"
    pid = int((place.workspace / "pid").read_text())
    assert bool(living(pid)) is not looks_at_threads
    if living(pid):
        os.kill(pid, signal.SIGKILL)


def living(pid: int) -> list[str]:
    """List the threads of a process that have not ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [task.name for task in tasks if ") Z " not in (task / "stat").read_text()]
    except FileNotFoundError:
        return []


async def test_what_it_left_is_found_by_the_next_daemon_too(place: Place) -> None:
    tag = f"78.{os.getpid()}"
    order = place.shell(f"env -i setsid sleep {tag} & echo up; exec sleep {tag}", runner="host")
    heard = Recorder()
    task = asyncio.create_task(place.host.run(order, heard))
    await heard.first.wait()
    assert len(marked(order.request_id)) >= 2
    assert kill_leftovers(f"{order.request_id}0") == 0
    assert kill_leftovers(order.request_id) >= 1
    await task
    assert processes_with(tag) == []


async def test_what_it_left_is_found_where_process_ids_began_anew_meanwhile(place: Place) -> None:
    tag = f"79.{os.getpid()}"
    order = replace(place.shell(f"echo up; exec sleep {tag}", runner="host"), by_person=True)
    heard = Recorder()
    task = asyncio.create_task(place.host.run(order, heard))
    await heard.first.wait()
    later = await asyncio.create_subprocess_exec("/bin/true")
    await later.wait()
    assert marked(order.request_id, Since(later.pid, seconds=0)) == ()
    assert marked(order.request_id, Since(later.pid, seconds=3600)) != ()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(tag) == []


async def test_who_needs_rights_is_told_how_to_ask_for_them(place: Place) -> None:
    result = await run(place, "echo 'sudo: The \"no new privileges\" flag is set' >&2; exit 1")
    assert "--new-privileges" in " ".join(result.notes)
    assert (await run(place, "echo all well; exit 1")).notes == ()


async def test_who_may_not_write_is_told_that_a_person_could_allow_it(place: Place) -> None:
    script = "echo 'sh: cannot create .bashrc: Read-only file system' >&2; exit "
    assert "--ask always" in " ".join((await run(place, f"{script} 2")).notes)
    assert (await run(place, f"{script} 0")).notes == ()
    assert (await run(place, f"{script} 2", by_person=True)).notes == ()


def held(place: Place, **changes: object) -> SandboxPlan:
    return replace(place.on_the_host, **changes)


def test_where_all_is_well_the_trial_says_nothing(place: Place) -> None:
    assert why_not_held(held(place)) is None


def test_root_is_held_by_nothing(place: Place) -> None:
    assert "run as root" in str(why_not_held(held(place, user=None)))
    with pytest.raises(RunError, match=r"hostUser: root is whom nothing holds"):
        why_not_held(held(place, user="root"))
    with pytest.raises(RunError, match=r"hostUser: there is no account 'nosuch'"):
        why_not_held(held(place, user="nosuch"))


def test_a_state_behind_a_link_that_the_account_could_exchange_is_not_held(place: Place) -> None:
    mine = place.root / "mine"
    mine.mkdir()
    os.chown(mine, NOBODY.pw_uid, NOBODY.pw_gid)
    (mine / "link").symlink_to(place.state)
    assert "is a link" in str(why_not_held(held(place, masked=(str(mine / "link"),))))
    (place.root / "link").symlink_to(place.state)
    assert why_not_held(held(place, masked=(str(place.root / "link"),))) is None


def test_a_configuration_with_a_second_name_is_not_held(place: Place) -> None:
    config = place.root / "config.yaml"
    config.write_text("x")
    assert why_not_held(held(place, masked=(str(config),))) is None
    os.link(config, place.root / "second")
    assert "2 names (hard links)" in str(why_not_held(held(place, masked=(str(config),))))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("echo bubblewrap 0.5.0", "0.7 or newer is needed"),
        (
            "echo bubblewrap 0.8.0; echo 'setting up uid map: Permission denied' >&2; exit 1",
            "setting up uid map",
        ),
        (
            '[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit; shift 5; exec "$@"',
            "no user namespace of its own",
        ),
    ],
)
def test_a_bubblewrap_that_cannot_hold_is_found_out(
    place: Place, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    stub = place.root / "bwrap"
    stub.write_text(f"#!/bin/sh\n{program}\n")
    stub.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_PLACES", (str(stub),))
    assert said in str(why_not_held(held(place)))


def test_without_bubblewrap_nothing_is_held(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_PLACES", ())
    assert "bubblewrap is not installed" in str(why_not_held(held(place)))


def test_a_kernel_that_cannot_close_abstract_sockets_holds_only_where_there_are_none(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_trial, "scopes_abstract_sockets", lambda: False)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0sayso-test-{os.getpid()}")
        listening.listen()
        assert "abstract socket" in str(why_not_held(held(place)))
        monkeypatch.setattr(host_trial, "scopes_abstract_sockets", threaded.scopes_abstract_sockets)
        assert why_not_held(held(place)) is None


def access_list(uid: int) -> bytes:
    """Write what `setfacl -m u:UID:rwx` does."""
    anybody = 0xFFFFFFFF
    rows = ((1, 7, anybody), (2, 7, uid), (4, 5, anybody), (16, 7, anybody), (32, 0, anybody))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


async def test_a_directory_that_an_access_list_opens_is_no_barrier(place: Place) -> None:
    closed = place.root / "closed"
    closed.mkdir(mode=0o750)
    (closed / "config.yaml").write_text("the policy")
    (closed / "config.yaml").chmod(0o666)
    place.on_the_host = replace(place.on_the_host, masked=(str(closed / "config.yaml"),))
    os.setxattr(closed, "system.posix_acl_access", access_list(NOBODY.pw_uid))
    script = f"cat {closed}/config.yaml; mv {closed}/config.yaml {closed}/x; rm -f {closed}/config.yaml"
    assert (await run(place, script)).stdout == ""
    assert (closed / "config.yaml").read_text() == "the policy"
    place.unheld = replace(place.unheld, user="nobody")
    order = place.shell(f"cat {closed}/config.yaml; rm -f {closed}/config.yaml", runner="unheld")
    assert (await place.host.run(order, Recorder())).stdout == "the policy"
