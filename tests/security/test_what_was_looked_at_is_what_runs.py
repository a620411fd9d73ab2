"""A script, a program or a link on the way to it that is exchanged just when a run starts: it does not run.

Each way is tried first without what holds it, where it must work: the run waits a moment before it reads the
script, as a busy machine would make it wait.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from adapters.runners.held_still import HeldStill
from adapters.runners.host import HostRunner
from core.approvals.binding import bind
from core.errors import BindingMismatch, RunError
from core.model.call import CommandText
from core.model.command import CommandFacts
from core.model.plan import Beginning, RunOrder, RunResult
from core.shell.inspect import inspect
from core.shell.scripts import begins_with, pinned_files, with_scripts
from tests.integration.runners.kit import Place, Recorder, place_on_disk

PLACEMENTS = ("host", "bubblewrap", "unheld")
KILLED = 137


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place


@pytest.fixture
def scripts(place) -> Path:
    """Lay out `way/good.sh`, reached by a link as well, and an evil one beside it."""
    work = place.workspace
    for name, said in (("way", "reviewed"), ("other", "exchanged")):
        (work / name).mkdir()
        (work / name / "good.sh").write_text(f"echo {said}\n")
    (work / "link").symlink_to("way")
    (work / "way" / "short.sh").symlink_to("good.sh")
    if os.geteuid() == 0:
        for path in (work, *work.rglob("*")):
            shutil.chown(path, "nobody")
    return work


def exchange_file(work: Path) -> None:
    (work / "other" / "good.sh").replace(work / "way" / "good.sh")


def exchange_directory(work: Path) -> None:
    (work / "way").rename(work / "gone")
    (work / "other").rename(work / "way")


def exchange_link(work: Path) -> None:
    (work / "new").symlink_to("other")
    (work / "new").rename(work / "link")


def exchange_last_link(work: Path) -> None:
    (work / "way" / "new").symlink_to("../other/good.sh")
    (work / "way" / "new").rename(work / "way" / "short.sh")


def remove_and_make(work: Path) -> None:
    (work / "way" / "good.sh").unlink()
    (work / "way" / "good.sh").write_text("echo exchanged\n")


WAYS = [
    ("way/good.sh", exchange_file),
    ("way/good.sh", exchange_directory),
    ("way/good.sh", remove_and_make),
    ("link/good.sh", exchange_link),
    ("link/good.sh", exchange_file),
    ("link/../way/good.sh", exchange_file),
    ("way/short.sh", exchange_last_link),
    ("way/short.sh", exchange_file),
]
NAMES = [f"{name}-{way.__name__}" for name, way in WAYS]


def slow(place: Place, script: Path, runner: str, *, held: bool) -> RunOrder:
    order = place.shell(f"echo ready; sleep 0.6; . {script}", runner=runner)
    begins_with = Beginning(("/bin/sh", str(script))) if held else Beginning()
    return replace(order, bound=replace(order.bound, begins_with=begins_with))


async def run_while(place: Place, order: RunOrder, runner: str, change: Callable[[], None]) -> RunResult:
    heard = Recorder()
    running = asyncio.create_task(place.runner(runner).run(order, heard))
    await asyncio.wait({running, asyncio.create_task(heard.first.wait())}, return_when="FIRST_COMPLETED")
    if not running.done():
        await asyncio.to_thread(change)
    return await running


@pytest.mark.parametrize("runner", PLACEMENTS)
@pytest.mark.parametrize(("name", "way"), WAYS, ids=NAMES)
async def test_without_being_held_another_text_runs(place, scripts, name, way, runner):
    order = slow(place, scripts / name, runner, held=False)
    result = await run_while(place, order, runner, lambda: way(scripts))
    assert result.stdout == "ready\nexchanged\n"


@pytest.mark.parametrize("runner", PLACEMENTS)
@pytest.mark.parametrize(("name", "way"), WAYS, ids=NAMES)
async def test_what_is_exchanged_at_the_start_kills_the_run(place, scripts, name, way, runner):
    order = slow(place, scripts / name, runner, held=True)
    result = await run_while(place, order, runner, lambda: way(scripts))
    assert (result.stdout, result.exit_code) == ("ready\n", KILLED)
    assert f"{scripts / name} was exchanged just when it started" in result.notes[0]


@pytest.mark.parametrize(("name", "way"), WAYS, ids=NAMES)
def test_what_is_exchanged_before_the_start_is_refused(scripts, name, way):
    with HeldStill.holding(Beginning((str(scripts / name),))) as still:
        still.check()
        way(scripts)
        with pytest.raises(BindingMismatch, match=str(scripts / name)):
            still.check()


@pytest.mark.parametrize("runner", PLACEMENTS)
async def test_what_is_gone_with_its_directory_is_refused_in_the_same_words(place, scripts, runner):
    order = slow(place, scripts / "way" / "good.sh", runner, held=True)
    (scripts / "way").rename(scripts / "gone")
    with pytest.raises(BindingMismatch, match=r"good\.sh changed since it was decided"):
        await place.runner(runner).run(order, Recorder())


def write_in_place(work: Path) -> None:
    (work / "way" / "good.sh").write_text("echo exchanged\n")


@pytest.mark.parametrize("runner", PLACEMENTS)
async def test_without_being_held_it_can_be_written_in_place(place, scripts, runner):
    order = slow(place, scripts / "way" / "good.sh", runner, held=False)
    result = await run_while(place, order, runner, lambda: write_in_place(scripts))
    assert result.stdout == "ready\nexchanged\n"


@pytest.mark.parametrize("runner", PLACEMENTS)
async def test_whoever_writes_it_in_place_waits_until_it_has_begun(place, scripts, runner):
    order = slow(place, scripts / "way" / "good.sh", runner, held=True)
    result = await run_while(place, order, runner, lambda: write_in_place(scripts))
    assert (result.stdout, result.exit_code, result.notes) == ("ready\nreviewed\n", 0, ())
    assert (scripts / "way" / "good.sh").read_text() == "echo exchanged\n", (
        "the write came through afterwards"
    )


async def test_a_file_that_is_open_for_writing_is_not_started(place, scripts):
    script = scripts / "way" / "good.sh"
    order = slow(place, script, "host", held=True)
    with script.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        file.close()  # the mapping writes without the file
        with pytest.raises(RunError, match="is open for writing in another process"):
            await place.host.run(order, Recorder())
    assert (await place.host.run(order, Recorder())).stdout == "ready\nreviewed\n"


async def test_what_happens_beside_it_ends_nothing(place, scripts):
    def beside() -> None:
        (scripts / "way" / "output").write_text("x")
        (scripts / "other").rename(scripts / "another")
        (scripts / "way" / "good.sh").chmod(0o700)
        (scripts / "way" / "good.sh").read_text()

    order = slow(place, scripts / "way" / "good.sh", "host", held=True)
    result = await run_while(place, order, "host", beside)
    assert (result.stdout, result.exit_code, result.notes) == ("ready\nreviewed\n", 0, ())


async def test_a_run_that_goes_on_may_exchange_its_own_script(place, scripts):
    script = scripts / "way" / "good.sh"
    script.write_text(f"sleep 2.5; cd {scripts}; mv other/good.sh way/good.sh; echo updated\n")
    order = place.order("/bin/sh", str(script), runner="host")
    order = replace(order, bound=replace(order.bound, begins_with=Beginning(("/bin/sh", str(script)))))
    result = await place.host.run(order, Recorder())
    assert (result.stdout, result.exit_code, result.notes) == ("updated\n", 0, ())


def test_what_only_root_can_change_needs_no_watch():
    before = len(list(Path("/proc/self/fd").iterdir()))
    with HeldStill.holding(Beginning(("/bin/sh", "/usr/bin/env"))):
        assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_a_link_that_is_turned_all_the_time_never_shows_another_text(place, scripts):
    """Sixty starts while somebody turns the link: each is refused, killed, or runs what was looked at."""
    stop = asyncio.Event()

    def turn() -> None:
        targets = ("other", "way")
        for count in range(10_000_000):
            if stop.is_set():
                return
            (scripts / f"new{count}").symlink_to(targets[count % 2])
            (scripts / f"new{count}").rename(scripts / "link")
            time.sleep(0.002)

    said = await asyncio.gather(_sixty(place, scripts, stop), asyncio.to_thread(turn))
    assert "exchanged" not in said[0]
    assert len(said[0]) == 60


async def _sixty(place: Place, scripts: Path, stop: asyncio.Event) -> list[str]:
    resolver = FilesystemResolver()
    runner = HostRunner(resolver, place.output, str(place.root / "workspaces"))
    seen = resolver.file(str(scripts / "way" / "good.sh"))
    assert seen is not None
    order = place.order("/bin/sh", str(scripts / "link" / "good.sh"), runner="host")
    bound = replace(order.bound, begins_with=Beginning((order.argv[1],)), scripts=((order.argv[1], seen),))
    said: list[str] = []
    try:
        for count in range(60):
            once = replace(order, request_id=f"{order.request_id}-{count}", bound=bound, expected=bind(bound))
            try:
                result = await runner.run(once, Recorder())
            except BindingMismatch as error:
                said.append(str(error))
            else:
                said.append(result.stdout.strip() or result.notes[0])
    finally:
        stop.set()
    return said


BEGINS = [
    ("python3 good.py data.json", ["/usr/bin/python3", "good.py"]),
    ("python3 -u good.py", ["/usr/bin/python3", "good.py"]),
    ("bash -x run.sh", ["/usr/bin/bash", "run.sh"]),
    ("./run.sh data.json", ["run.sh"]),
    ("./own.sh", ["own.sh", "interp"]),
    ("bash own.sh", ["/usr/bin/bash", "own.sh", "interp"]),
    ("python3 -m good", ["/usr/bin/python3", "good.py"]),
    ("nice -n 5 python3 good.py", ["/usr/bin/nice", "/usr/bin/python3", "good.py"]),
    ("cd . && python3 good.py", ["/usr/bin/python3", "good.py"]),
    ("python3 good.py | head -5", ["/usr/bin/python3", "/usr/bin/head", "good.py"]),
    ("cat data.json | python3 good.py; rm good.py", ["/usr/bin/cat", "/usr/bin/python3", "good.py"]),
    # What the line itself may write first, or what is only worked on, is not held.
    ("sed -i s/a/b/ run.sh", ["/usr/bin/sed"]),
    ("cp good.py run.sh", ["/usr/bin/cp"]),
    ("chmod +x run.sh && ./run.sh", ["/usr/bin/chmod"]),
    ("git pull; ./run.sh", ["/usr/bin/git"]),
    ("sleep 1; setsid ./run.sh", ["/usr/bin/sleep"]),
    # What runs its words, or is told by an option or a variable what it runs.
    ("setsid -w ./run.sh", ["/usr/bin/setsid", "run.sh"]),
    ("setsid -w ./own.sh data.json", ["/usr/bin/setsid", "own.sh", "interp", "data.json"]),
    ("xargs -I rm ./run.sh", ["/usr/bin/xargs", "run.sh"]),
    ("setsid -w python3 good.py data.json", ["/usr/bin/setsid", "good.py"]),
    ("setsid bash run.sh", ["/usr/bin/setsid", "run.sh"]),
    ("setsid sh -c 'cat data.json; ./run.sh -x'", ["/usr/bin/setsid", "run.sh"]),
    ("setsid sh -c 'cat `./run.sh`'", ["/usr/bin/setsid", "run.sh"]),
    ("find . -name run.sh -exec ./run.sh ';'", ["/usr/bin/find", "run.sh"]),
    ("find good.py -exec cat data.json ';' -exec ./run.sh ';'", ["/usr/bin/find", "run.sh"]),
    ("sort --compress-program=./run.sh data.json", ["/usr/bin/sort", "run.sh"]),
    ("sort --compress-program ./run.sh data.json", ["/usr/bin/sort", "run.sh"]),
    ("GREP=./run.sh zgrep a data.json", ["/usr/bin/zgrep", "run.sh"]),
    ("A='sh ./run.sh' python3 -c 1 good.py", ["/usr/bin/python3", "run.sh"]),
    ("A=./run.sh; setsid true", ["/usr/bin/setsid", "run.sh"]),
    ("source ./run.sh", ["run.sh"]),
    ("cd . && eval 'bash run.sh'", ["run.sh"]),
    # What a program of the system works on, whoever starts it, may be rewritten or removed by it.
    ("xargs -0 sed -i s/a/b/ run.sh", ["/usr/bin/xargs"]),
    ("setsid -w rm run.sh", ["/usr/bin/setsid"]),
    ("setsid sh -c 'rm run.sh'", ["/usr/bin/setsid"]),
    ("find . -exec sed -i s/a/b/ run.sh ';'", ["/usr/bin/find"]),
    ("python3 -c 1 --init=run.sh", ["/usr/bin/python3"]),
]


@pytest.mark.parametrize(("line", "files"), BEGINS, ids=[line for line, _ in BEGINS])
def test_a_line_begins_with_its_programs_and_the_scripts_that_they_are_given(tmp_path, line, files):
    for name in ("good.py", "run.sh", "data.json", "interp"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "own.sh").write_text(f"#!{tmp_path}/interp\n")
    (tmp_path / "own.sh").chmod(0o755)
    found = begins_with(facts(line, tmp_path))
    there = sorted({os.path.normpath(file) for file in (*found.first, *found.later, *found.words)})
    assert there == sorted(str(tmp_path / file) for file in files)


LATER = [
    ("python3 good.py run.sh", []),
    ("cd . && echo x && ./run.sh", []),
    ("printf %999999999s x; ./run.sh", ["run.sh"]),
    ("printf %999999999s x; python3 good.py", ["/usr/bin/python3", "good.py"]),
    ("node -r ./run.sh ./good.py", ["good.py"]),
]


@pytest.mark.parametrize(("line", "files"), LATER, ids=[line for line, _ in LATER])
def test_what_runs_behind_other_code_is_held_in_its_place_too(tmp_path, line, files):
    for name in ("good.py", "run.sh"):
        (tmp_path / name).write_text("x\n")
        (tmp_path / name).chmod(0o755)
    later = begins_with(facts(line, tmp_path)).later
    assert sorted(map(os.path.normpath, later)) == sorted(str(tmp_path / file) for file in files)


PINNED = [
    ("python3 -c 1 --init=run.sh", ["run.sh"]),
    ("python3 -c 1 -init ./run.sh | head", ["run.sh"]),
    ("cd . && tar -cf /dev/null run.sh", ["run.sh"]),
    ("cat run.sh; tar -cf /dev/null run.sh", []),
    ("cat run.sh", []),
]


@pytest.mark.parametrize(("line", "files"), PINNED, ids=[line for line, _ in PINNED])
def test_what_a_pin_admits_holds_all_that_is_pinned(tmp_path, line, files):
    (tmp_path / "run.sh").write_text("echo\n")
    found = facts(line, tmp_path)
    every = [True] * len(found.segments)
    assert [os.path.normpath(file) for file in pinned_files(found, every)] == [
        str(tmp_path / file) for file in files
    ]
    assert pinned_files(found, [not each for each in every]) == ()


SLOW = "echo ready; sleep 0.6; . ./good.sh"
READS_VARIABLE = (
    "import os,time; print('ready', flush=True); time.sleep(.6); os.execl('/bin/sh', 'sh', os.environ['X'])"
)
INDIRECT = [
    f"setsid -w sh -c '{SLOW}'",
    f"find . -maxdepth 0 -exec sh -c '{SLOW}' ';'",
    f'X=./good.sh python3 -c "{READS_VARIABLE}"',
]


def as_asked(place: Place, scripts: Path, line: str, *, held: bool) -> RunOrder:
    """Order a line in `way`, and hold what it begins with as found by looking at it."""
    way = scripts / "way"
    order = place.order("/bin/sh", "-c", line, runner="host", cwd=str(way))
    first = begins_with(facts(line, way)) if held else Beginning()
    return replace(order, bound=replace(order.bound, begins_with=first))


@pytest.mark.parametrize("line", INDIRECT, ids=["carrier", "option", "variable"])
async def test_what_runs_by_way_of_a_word_an_option_or_a_variable_is_held(place, scripts, line):
    order = as_asked(place, scripts, line, held=False)
    result = await run_while(place, order, "host", lambda: exchange_file(scripts))
    assert result.stdout == "ready\nexchanged\n", result
    (scripts / "other" / "good.sh").write_text("echo exchanged\n")
    order = as_asked(place, scripts, line, held=True)
    result = await run_while(place, order, "host", lambda: exchange_file(scripts))
    assert (result.stdout, result.exit_code) == ("ready\n", KILLED)


@pytest.mark.parametrize("runner", PLACEMENTS)
async def test_what_an_entry_is_tied_to_is_held_where_a_rule_admits_the_run(place, scripts, runner):
    order = slow(place, scripts / "way" / "good.sh", runner, held=False)
    order = replace(order, pinned=(str(scripts / "way" / "good.sh"),))
    result = await run_while(place, order, runner, lambda: exchange_file(scripts))
    assert (result.stdout, result.exit_code) == ("ready\n", KILLED)


async def test_what_a_person_allowed_may_rewrite_what_it_is_given(place, scripts):
    """Such a program exchanges its own operand at once, which no yes is to forbid."""
    way = scripts / "way"
    for line in ("setsid -w sed -i s/reviewed/formatted/ good.sh", "perl -pi -e s/form/reform/ good.sh"):
        order = as_asked(place, scripts, line, held=True)
        result = await place.host.run(replace(order, by_person=True), Recorder())
        assert (result.exit_code, result.notes) == (0, ()), result
    assert (way / "good.sh").read_text() == "echo reformatted\n"


def facts(line: str, work: Path) -> CommandFacts:
    resolver = FilesystemResolver().for_one_command()
    found = inspect(CommandText(line=line), cwd=str(work), path=("/usr/bin",), resolver=resolver)
    return with_scripts(found, resolver, ("/usr/bin",))
