"""A pin ties an entry to a text only where none can exchange that text until it runs: where a line begins."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.model.allowlist import AllowlistEntry
from core.model.call import CommandText
from core.model.command import CommandFacts, Placement
from core.model.decision import Effect
from core.model.request import Answer, Review
from core.shell.inspect import inspect
from core.shell.scripts import with_scripts
from tests.core_system import ALICE, CONFIG, exec_call
from tests.shell_world import effect, judge

MiB = 1024 * 1024
BEGINS = ["{}", "cd . && {}", "echo x; {}", "{} | head", "{} && wc f", "timeout 5 {}"]
LATER = ["wc; {}", "cat f | wc && {}", "sleep 1; {}", "ls || {}", "tail -f f & {}", "bash -c 'wc; {}'"]
PINNED = ["./x.sh", "./x.sh a b", "python3 x.sh", "tar -cf /dev/null x.sh"]


@pytest.fixture
def work(tmp_path) -> Path:
    (tmp_path / "x.sh").write_text("#!/bin/sh\necho reviewed\n")
    (tmp_path / "x.sh").chmod(0o755)
    (tmp_path / "f").write_text("text\n")
    return tmp_path


def facts(line: str, work: Path, resolver: FilesystemResolver | None = None) -> CommandFacts:
    limited = (resolver or FilesystemResolver()).for_one_command()
    found = inspect(CommandText(line=line), cwd=str(work), path=("/usr/bin",), resolver=limited)
    return with_scripts(found, limited, ("/usr/bin",))


def learned(work: Path, *lines: str) -> list[AllowlistEntry]:
    offers = [judge(facts(line, work)).always for line in lines]
    assert all(offer.entries or "admitted already" in (offer.why or "") for offer in offers), offers
    return [entry for offer in offers for entry in offer.entries]


OTHERS = ("wc", "wc f", "ls", "sleep 1", "head", "cat f", "tail -f f")


@pytest.mark.parametrize("pinned", PINNED)
@pytest.mark.parametrize("line", BEGINS)
def test_what_a_line_begins_with_is_admitted_by_its_pin(work, pinned, line):
    entries = learned(work, pinned, *OTHERS)
    assert effect(facts(line.format(pinned), work), *entries, ask="off") == "allow"


@pytest.mark.parametrize("pinned", PINNED)
@pytest.mark.parametrize("line", LATER)
def test_what_runs_later_is_admitted_by_no_pin_and_none_is_offered(work, pinned, line):
    entries = learned(work, pinned, *OTHERS)
    later = facts(line.format(pinned), work)
    assert effect(later, *entries, ask="off") == "deny"
    judged = judge(later, *entries)
    assert (judged.decision.effect, judged.decision.rule) == (Effect.ASK, "exec.changeable")
    assert "could be replaced while the commands before it run" in judged.decision.reason
    assert judged.always.entries == ()


@pytest.mark.parametrize("line", LATER)
def test_without_a_pin_the_place_in_the_line_says_nothing(work, line):
    nothing = "python3 -c 1"
    entries = learned(work, nothing, *OTHERS)
    assert effect(facts(line.format(nothing), work), *entries, ask="off") == "allow"


@pytest.mark.parametrize("line", LATER)
def test_an_operator_may_trust_a_program_whatever_it_says(work, line):
    entries = [*learned(work, *OTHERS), f"{work}/x.sh"]
    assert effect(facts(line.format("./x.sh"), work), *entries, ask="off") == "allow"
    pinned = AllowlistEntry(f"{work}/x.sh", source="test", sha256=learned(work, "./x.sh")[0].sha256)
    entries = [*learned(work, *OTHERS), pinned]
    assert effect(facts("./x.sh", work), *entries, ask="off") == "allow"
    assert effect(facts(line.format("./x.sh"), work), *entries, ask="off") == "deny"


def test_the_question_says_it_where_nothing_is_remembered_yet(work):
    reason = judge(facts("sleep 1; ./x.sh", work)).decision.reason
    assert "`./x.sh` could be replaced while the commands before it run" in reason
    assert "could be replaced" not in judge(facts("./x.sh; sleep 1", work)).decision.reason


async def test_a_run_that_a_pin_admits_carries_what_is_pinned_and_one_that_a_person_allowed_does_not(
    make_system, work
):
    system = make_system({**CONFIG, "agents": {"by_id": {"main": {"workspace": str(work)}}}})
    call = exec_call(line="tar -c --file=/dev/null ./x.sh")
    running, observer = system.asking(call)
    await asyncio.wait_for(observer.asked.wait(), 5)
    request = observer.seen[0][1]
    await system.console.resolve(Review(request, Answer.ALLOW_ALWAYS, ALICE))
    await asyncio.wait_for(running, 5)
    running, _ = system.asking(call)
    await asyncio.wait_for(running, 5)
    asked, admitted = system.orders
    assert (asked.by_person, asked.pinned) == (True, ())
    assert (admitted.by_person, admitted.pinned) == (False, (f"{work}/./x.sh",))
    assert f"{work}/./x.sh" in admitted.held_still.words
    assert admitted.bound.placement is Placement.SANDBOX


LARGE = ["python3 {}", "bash -x {}", "node -r ./f {}", "timeout 5 bash {}", "wc; bash {}", "cat f | bash {}"]


@pytest.mark.parametrize("line", LARGE)
def test_a_script_too_large_to_be_read_is_not_run(work, line):
    with (work / "x.sh").open("ab") as file:
        file.truncate(64 * MiB)
    assert effect(facts(line.format("x.sh"), work)) == "ask"
    with (work / "x.sh").open("ab") as file:
        file.truncate(64 * MiB + 1)
    judged = judge(facts(line.format("x.sh"), work))
    if "-r" in line:
        assert "x.sh may change before it runs" in judged.decision.reason, "it may be an argument"
        return
    assert (judged.decision.effect, judged.decision.rule) == (Effect.DENY, "exec.unread")
    assert "x.sh would run, and its text cannot be tied to a yes" in judged.decision.reason
    assert judged.always.entries == ()


@pytest.mark.parametrize("beginning", [b"\x7fELF", b"PK\x03\x04"])
def test_a_large_program_or_archive_is_asked_about_as_before(work, beginning):
    with (work / "x.sh").open("r+b") as file:
        file.write(beginning)
        file.truncate(64 * MiB + 1)
    for line in ("java -jar x.sh", "bash x.sh"):
        judged = judge(facts(line, work))
        assert (judged.decision.effect, judged.always.entries) == (Effect.ASK, ())
        assert "x.sh may change before it runs" in judged.decision.reason


def test_a_script_of_a_large_interpreter_runs_after_a_yes(work):
    with (work / "node").open("wb") as file:
        file.write(b"\x7fELF")
        file.truncate(64 * MiB + 1)
    (work / "node").chmod(0o755)
    (work / "x.sh").write_text(f"#!{work}/node\n")
    assert effect(facts("./x.sh", work)) == "ask"


@pytest.mark.parametrize(
    "line", ["tar -cf /dev/null x.sh", "python3 f x.sh", "python3 -c 1 x.sh", "cat x.sh"]
)
def test_large_data_hinders_nothing(work, line):
    with (work / "x.sh").open("ab") as file:
        file.truncate(64 * MiB + 1)
    assert effect(facts(line, work)) == "ask"


def test_an_operator_may_admit_a_large_script(work):
    with (work / "x.sh").open("ab") as file:
        file.truncate(64 * MiB + 1)
    listed = AllowlistEntry("/usr/bin/bash", ("x.sh",), source="test")
    assert effect(facts("bash x.sh", work), listed) == "allow"
