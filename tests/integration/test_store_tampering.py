"""Any change of the record in the file is found: by `verify`, or because the store refuses to open."""

from __future__ import annotations

import random
import shutil
import sqlite3

import pytest

from adapters.stores.sqlite import open_store
from core.audit import chain, verify
from core.errors import StartError
from core.model.request import AuditEvent

EVENTS = 30
CHANCE = random.SystemRandom()


@pytest.fixture
async def database(tmp_path):
    """A closed database with a record of 30 events, every second one about a request."""
    path = tmp_path / "sayso.db"
    async with open_store(path) as store:
        for number in range(EVENTS):
            about = f"{number:032x}" if number % 2 else None
            data = {"line": f"echo {number}", "env": ["A", 1, None]}
            await store.append(AuditEvent(1_000 + number, "request.created", "main", about, data))
    return path


async def problem_of(path):
    """Say what verify finds, or how the store refuses; None where all is well."""
    try:
        async with open_store(path) as store:
            found = await verify(store)
    except StartError as error:
        return f"refused: {error}"
    assert found.ok is (found.problem is None)
    return found.problem


def edit(path, *statements):
    connection = sqlite3.connect(path)
    connection.executescript("DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_shortened;")
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()


def audit_positions(path):
    """Positions in the file of every byte of the audit rows' columns, with the number of their event."""
    content = path.read_bytes()
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT seq, request_id, body, previous, hash FROM audit").fetchall()
    connection.close()
    positions = {}
    for seq, request_id, *columns in rows:
        stored = (request_id or b"") + b"".join(columns)
        assert content.count(stored) == 1
        begin = content.index(stored)
        positions |= dict.fromkeys(range(begin, begin + len(stored)), seq)
    return positions


async def test_an_untouched_record_is_whole(database):
    assert await problem_of(database) is None


async def test_any_single_changed_byte_of_the_record_is_found(database, tmp_path):
    positions = audit_positions(database)
    original = database.read_bytes()
    assert len(positions) > EVENTS * 200
    copy = tmp_path / "copy.db"
    for position in CHANCE.sample(sorted(positions), 120):
        changed = bytearray(original)
        changed[position] ^= CHANCE.randrange(1, 256)
        copy.write_bytes(changed)
        found = await problem_of(copy)
        where = f"byte {position} of event {positions[position]}"
        assert found, where
        assert found.startswith("refused") or f"event {positions[position]} " in found, f"{where}: {found}"


async def test_any_changed_byte_of_the_pages_that_hold_the_record_is_found_or_harmless(database, tmp_path):
    pages = {position // 4096 for position in audit_positions(database)}
    original = database.read_bytes()
    async with open_store(database) as store:
        whole = [link async for link in store.events()]
    copy = tmp_path / "copy.db"
    for _ in range(120):
        position = CHANCE.choice(sorted(pages)) * 4096 + CHANCE.randrange(4096)
        changed = bytearray(original)
        changed[position] ^= CHANCE.randrange(1, 256)
        copy.write_bytes(changed)
        if await problem_of(copy) is None:
            async with open_store(copy) as store:
                assert [link async for link in store.events()] == whole


async def test_the_record_cannot_be_changed_or_shortened_by_accident(database):
    connection = sqlite3.connect(database)
    for statement in ("UPDATE audit SET body = x'00' WHERE seq = 3", "DELETE FROM audit WHERE seq = 30"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()
    assert await problem_of(database) is None


async def test_a_deleted_last_event_is_found(database):
    edit(database, ("DELETE FROM audit WHERE seq = 30",))
    assert await problem_of(database) == "events after 29 are missing: the head notes 30"


async def test_a_deleted_event_is_found(database):
    edit(database, ("DELETE FROM audit WHERE seq = 13",))
    assert await problem_of(database) == "event 13 is missing"


async def test_an_emptied_record_is_found(database):
    edit(database, ("DELETE FROM audit",))
    assert await problem_of(database) == "events after 0 are missing: the head notes 30"


async def test_two_swapped_events_are_found(database):
    edit(
        database,
        ("UPDATE audit SET seq = 999 WHERE seq = 5",),
        ("UPDATE audit SET seq = 5 WHERE seq = 9",),
        ("UPDATE audit SET seq = 9 WHERE seq = 999",),
    )
    assert await problem_of(database) == "event 5 was changed"


async def test_swapped_contents_are_found(database):
    connection = sqlite3.connect(database)
    rows = dict(connection.execute("SELECT seq, body FROM audit WHERE seq IN (5, 9)"))
    connection.close()
    change = "UPDATE audit SET body = ? WHERE seq = ?"
    edit(database, (change, rows[5], 9), (change, rows[9], 5))
    assert await problem_of(database) == "event 5 was changed"


async def test_a_well_formed_event_put_behind_the_head_is_found(database):
    async with open_store(database) as store:
        _, head = await store.head()
    forged = chain(31, head, AuditEvent(1, "request.approved", "Ada"))
    body = b'{"actor":"Ada","at":1,"data":null,"kind":"request.approved","request_id":null,"seq":31}'
    row = ("INSERT INTO audit VALUES (31, NULL, ?, ?, ?)", body, head.encode(), forged.hash.encode())
    edit(database, row)
    assert await problem_of(database) == "event 31 was added without the head, which notes 30"
    edit_head = ("UPDATE meta SET audit_seq = 31, audit_hash = ?", forged.hash)
    connection = sqlite3.connect(database)
    connection.execute(*edit_head[:1], edit_head[1:])
    connection.commit()
    connection.close()
    assert await problem_of(database) is None  # a forger of the whole chain and its head is not found by it


async def test_an_event_put_in_between_is_found(database):
    edit(
        database,
        ("UPDATE audit SET seq = -seq WHERE seq > 10",),
        ("UPDATE audit SET seq = 1 - seq WHERE seq < 0",),
        ("INSERT INTO audit SELECT 11, request_id, body, previous, hash FROM audit WHERE seq = 10",),
    )
    assert await problem_of(database) == "event 11 was changed"


@pytest.mark.parametrize(
    ("column", "value"),
    [("audit_seq", 29), ("audit_seq", 31), ("audit_hash", "0" * 64), ("audit_hash", "")],
)
async def test_a_changed_head_is_found(database, column, value):
    connection = sqlite3.connect(database)
    connection.execute(f"UPDATE meta SET {column} = ?", (value,))  # noqa: S608 - a column's name, from above
    connection.commit()
    connection.close()
    assert await problem_of(database)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"0" * 32])
async def test_a_changed_look_up_column_is_found(database, value):
    edit(database, ("UPDATE audit SET request_id = ? WHERE seq = 8", value))
    assert await problem_of(database) == "event 8 was changed"


async def test_an_older_copy_of_the_file_is_whole_by_itself(database, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copyfile(database, copy)
    async with open_store(database) as store:
        await store.append(AuditEvent(1, "a.b", "main"))
    assert await problem_of(copy) is None
