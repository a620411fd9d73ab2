"""The record as JSON lines: exported from a store, and proved whole without one."""

from __future__ import annotations

import json

import pytest

from adapters.stores.sqlite import open_store
from bot.cli.exits import UsageError
from bot.cli.moments import times
from bot.cli.record import _between, verify_file
from core.audit import to_row
from core.model.request import AuditEvent

EVENTS = 12


@pytest.fixture
async def rows(tmp_path):
    async with open_store(tmp_path / "sayso.db") as store:
        for number in range(EVENTS):
            await store.append(
                AuditEvent(100 + number, "thing.done", "agent:main", None, {"n": number, "é": "\ud800"})
            )
        return [to_row(link) async for link in store.events()]


@pytest.fixture
def checked(tmp_path, capsys):
    def check(rows, *, as_json=True):
        path = tmp_path / "record.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" if isinstance(row, dict) else row for row in rows))
        status = verify_file(str(path), as_json=as_json)
        text = capsys.readouterr().out
        return status, json.loads(text) if text.startswith("{") else text

    return check


async def test_a_whole_export_is_whole(rows, checked):
    assert checked(rows) == (
        0,
        {
            "ok": True,
            "events": EVENTS,
            "head": rows[-1]["hash"],
            "brokenAt": None,
            "problem": None,
            "first": 1,
        },
    )


async def test_a_part_is_whole_in_itself_and_says_where_it_begins(rows, checked):
    part = list(_between(iter(rows), 103, 108))
    assert [row["at"] for row in part] == [103, 104, 105, 106, 107]
    status, told = checked(part, as_json=False)
    assert status == 0
    assert "events 4 to 8, what was before event 4 is not in it" in told


async def test_a_clock_put_back_leaves_no_gap_in_a_part(rows):
    rows[5]["at"] = 50
    assert [row["seq"] for row in _between(iter(rows), 103, 110)] == [4, 5, 6, 7, 8, 9, 10]


def forge(name, value):
    def change(rows):
        rows[4] = {**rows[4], name: value}

    return change


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (forge("data", {"n": 99}), "event 5 was changed"),
        (forge("actor", "agent:other"), "event 5 was changed"),
        (forge("at", 1), "event 5 was changed"),
        (forge("hash", "0" * 64), "event 5 was changed"),
        (forge("request", "x"), "event 5 was changed"),
        (lambda rows: rows.pop(4), "event 5 is missing"),
        (lambda rows: rows.insert(4, rows[4]), "event 5 is there twice or out of order"),
        (lambda rows: rows.reverse(), "event 11 is there twice or out of order"),
    ],
)
async def test_each_change_is_named(rows, checked, damage, told):
    damage(rows)
    status, found = checked(rows)
    assert status == 1
    assert not found["ok"]
    assert found["problem"] == told


@pytest.mark.parametrize(
    "line", ["nonsense\n", "{}\n", "[]\n", "\n", '{"seq": "1"}\n', "[" * 100_000 + "\n", "NaN\n"]
)
async def test_a_line_that_is_no_event_is_named(rows, checked, line):
    status, told = checked([*rows[:3], line, *rows[3:]])
    assert status == 1
    assert "line 4: it is no event of a record" in told


def test_a_file_of_bytes_is_told_as_no_text(tmp_path, capsys):
    file = tmp_path / "noise"
    file.write_bytes(b"\x86\xff" * 50)
    assert verify_file(str(file), as_json=False) == 1
    assert capsys.readouterr().out == f"{file} is no text, and so no record; sayso audit export writes one\n"


def test_a_file_that_cannot_be_read_is_a_slip(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        verify_file(str(tmp_path / "nothing"), as_json=False)


def test_an_empty_file_is_told_as_such(checked):
    assert checked([], as_json=False) == (0, "the file holds no events\n")


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "3", "5w", "-2h", "0d", "99999-01-01"])
def test_what_is_no_time_is_a_slip_that_shows_the_forms(text):
    with pytest.raises(UsageError, match="is no time; give 2h or 3d"):
        times({"since": text, "until": None}, "history")


def test_times_are_ages_days_or_moments():
    found = times({"since": "2026-11-20T10:00+00:00", "until": "2026-11-20T10:00:01+00:00"}, "history")
    assert found == {"since": 1_795_168_800_000, "until": 1_795_168_801_000}
    with pytest.raises(UsageError, match="nothing could fit"):
        times({"since": "1h", "until": "2h"}, "history")
