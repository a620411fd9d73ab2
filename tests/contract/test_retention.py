"""What leaves after `approvals.retention`, and what stays."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from adapters.runners.spool import open_spool, remove_spools, spooled
from adapters.stores.sqlite import open_store
from core.approvals.retention import BATCH, Retention
from core.audit import verify
from core.config import ApprovalSettings
from core.model.allowlist import AllowlistEntry, AlwaysOffer
from core.model.principal import Reviewer
from core.model.request import AuditEvent, Change, Copy, Grant, MessageKind, OutboxMessage, Resolution, State
from core.model.standing import DenyRule, StandingPermission

DAY = 86_400_000
ANN = Reviewer("telegram", "7", "Ann")


@pytest.fixture
async def kept(tmp_path):
    async with open_store(tmp_path / "sayso.db") as opened:
        yield opened


def rows(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def old_change(make_request, name, ended_at, state=State.FINISHED, **fields):
    request = replace(
        make_request(name),
        state=state,
        created_at=ended_at - 5,
        ended_at=ended_at,
        resolution=Resolution("allow-once", ended_at - 1, ANN),
        copies=(Copy("telegram", "user:7", f"nonce{name}"),),
    )
    return Change(
        request,
        insert=True,
        events=(AuditEvent(ended_at, "request.created", "agent:main", name),),
        messages=(OutboxMessage("telegram", MessageKind.UPDATE, name, 1, "user:7"),),
        **fields,
    )


def retention(store, clock, gone=lambda _ids: None):
    return Retention(store, clock, lambda: 30 * DAY, gone)


async def test_what_ended_before_the_retention_leaves_with_all_that_belongs_to_it(
    kept, make_request, clock, tmp_path
):
    now = clock.now()
    old, young = "aaaaaaaa-old", "bbbbbbbb-young"
    grant = Grant(old, make_request().binding.digest, 1, 2)
    assert await kept.commit(old_change(make_request, old, now - 30 * DAY - 1, issue_grant=grant))
    assert await kept.commit(old_change(make_request, young, now - 30 * DAY))
    gone = []
    assert await retention(kept, clock, gone.extend).round() == 1
    assert gone == [old]
    assert await kept.request(old) is None
    assert (await kept.request(young)).id == young
    for table in ("grants", "copies", "outbox", "answerers"):
        left = rows(tmp_path / "sayso.db", f"SELECT request_id FROM {table}")  # noqa: S608 - our names
        assert left == ([] if table == "grants" else [(young,)])
    assert rows(tmp_path / "sayso.db", "PRAGMA foreign_key_check") == []


async def test_what_waits_is_approved_or_runs_never_leaves(kept, make_request, clock):
    for number, state in enumerate((State.WAITING, State.APPROVED, State.RUNNING)):
        request = replace(make_request(f"{number:08}"), state=state, created_at=1)
        assert await kept.commit(Change(request, insert=True))
    assert await retention(kept, clock).round() == 0
    assert await kept.count(State.WAITING, State.APPROVED, State.RUNNING) == 3


async def test_what_answers_left_standing_outlives_their_requests(kept, make_request, clock):
    long_ago, later = clock.now() - 31 * DAY, clock.now() + DAY
    entry = AllowlistEntry("/usr/bin/rg", real_path="/usr/bin/rg", agent="main")
    permission = StandingPermission("p1", "main", "agent:main:main", "b", "ls", (ANN,), 1, later, None)
    rule = DenyRule("d1", "main", "rm -rf /", ANN, 1, "no")
    for name, left in (
        ("p1", {"permit": permission}),
        ("d1", {"forbid": rule}),
        ("a1", {"learn": AlwaysOffer((entry,))}),
    ):
        assert await kept.commit(old_change(make_request, name, long_ago, **left))
    assert await retention(kept, clock).round() == 3
    assert [standing.id for standing in await kept.permissions(clock.now())] == ["p1"]
    assert [standing.id for standing in await kept.deny_rules()] == ["d1"]
    assert await kept.learned("main") == (entry,)


async def test_the_record_stays_whole_and_tells_how_much_left(kept, make_request, clock):
    for number in range(BATCH * 2 + 7):
        assert await kept.commit(old_change(make_request, f"{number:08}", clock.now() - 40 * DAY))
    assert await retention(kept, clock).round() == BATCH * 2 + 7
    found = await verify(kept)
    assert (found.ok, found.events) == (True, BATCH * 2 + 7 + 3)
    *_, first, second, last = [link.event async for link in kept.events()]
    assert {event.kind for event in (first, second, last)} == {"requests.forgotten"}
    assert [event.data["requests"] for event in (first, second, last)] == [BATCH, BATCH, 7]
    assert len(await kept.events_about("00000001")) == 1
    assert await retention(kept, clock).round() == 0
    assert (await kept.head())[0] == found.events


def keep_output(directory, name, stream):
    spool = open_spool(directory, name, stream, 10)
    spool.write(b"said")
    spool.close()


def test_the_output_of_a_run_goes_with_its_request(tmp_path):
    for name in ("one", "two"):
        for stream in ("stdout", "stderr"):
            keep_output(tmp_path, name, stream)
    remove_spools(tmp_path, ("one", "never-ran"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two.stderr", "two.stdout"]


@pytest.mark.parametrize(("text", "ms"), [("30d", 30 * DAY), ("1h", 3_600_000)])
def test_the_retention_is_a_number_of_days_or_hours(text, ms):
    assert ApprovalSettings(retention=text).retention_ms == ms


@pytest.mark.parametrize("text", ["0d", "30", "d", "30 d", "-1d", "30D"])
def test_any_other_retention_is_refused(text):
    with pytest.raises(ValueError, match="retention"):
        ApprovalSettings(retention=text)


# A round that is cut off.


async def test_a_round_that_is_cut_off_has_recorded_what_left_so_far(kept, make_request, clock):
    for number in range(BATCH + 5):
        assert await kept.commit(old_change(make_request, f"{number:08}", clock.now() - 40 * DAY))
    task = asyncio.create_task(retention(kept, clock).run())
    async with asyncio.timeout(5):
        while await kept.count(State.FINISHED) == BATCH + 5:  # noqa: ASYNC110 - a test's patience
            await asyncio.sleep(0.002)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    left = BATCH + 5 - await kept.count(State.FINISHED)
    told = [
        link.event.data["requests"] async for link in kept.events() if link.event.kind.endswith("forgotten")
    ]
    assert sum(told) == left > 0


async def test_what_a_failed_or_cut_off_round_left_lying_goes_with_a_later_one(
    kept, make_request, clock, tmp_path
):
    spools = tmp_path / "output"
    young = make_request("bbbbbbbb-young")
    assert await kept.commit(Change(young, insert=True))
    assert await kept.commit(old_change(make_request, "aaaaaaaa-old", clock.now() - 40 * DAY))
    for name in ("aaaaaaaa-old", "bbbbbbbb-young"):
        keep_output(spools, name, "stdout")
    (spools / "notes.txt").touch()
    broken = [True]

    def gone(ids):
        if broken[0]:
            raise OSError(5, "the disk reported an error")
        remove_spools(spools, ids)

    def made():
        return Retention(kept, clock, lambda: 30 * DAY, gone, lambda: spooled(spools))

    first = made()
    assert await first.round() == 1
    assert len(list(spools.iterdir())) == 3
    broken[0] = False
    await made().round()  # the next daemon
    assert sorted(path.name for path in spools.iterdir()) == ["bbbbbbbb-young.stdout", "notes.txt"]
    keep_output(spools, "aaaaaaaa-old", "stderr")
    await first.round()  # this daemon, the next time
    assert sorted(path.name for path in spools.iterdir()) == ["bbbbbbbb-young.stdout", "notes.txt"]


async def test_the_missing_are_those_that_are_not_kept(kept, make_request):
    assert await kept.commit(Change(make_request("bbbbbbbb-young"), insert=True))
    assert await kept.missing(["bbbbbbbb-young", "aaaaaaaa-old", "'"]) == ("aaaaaaaa-old", "'")
    assert await kept.missing([]) == ()
