"""A full disk: what does not fit is refused whole, and the store works on when there is room again."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from contextlib import asynccontextmanager

import pytest

from adapters.stores.sqlite import open_store
from core.audit import verify
from core.errors import StartError, StoreError
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.plan import Binding
from core.model.request import AuditEvent, Change, Request, RequestKind, State
from core.model.session import SessionKey


def change_of(number, filler=0):
    name = f"{number:032x}"
    request = Request(
        id=name,
        kind=RequestKind.RUN,
        state=State.WAITING,
        call=ToolCall("exec", SessionKey.main("main")),
        canonical="x" * filler,
        cwd="/",
        placement=Placement.SANDBOX,
        sandbox=None,
        verdict={},
        binding=Binding("b", ()),
        created_at=number,
        deadline=2,
    )
    return Change(request, insert=True, events=(AuditEvent(number, "request.created", "main", name),))


async def fill(store, first=0):
    """Commit until nothing more fits; return the changes that were kept and the error."""
    kept = []
    for number in range(first, 5_000):
        change = change_of(number, filler=8_000)
        try:
            assert await store.commit(change)
        except StoreError as error:
            return kept, str(error)
        kept.append(change)
    raise AssertionError("the disk never got full")


async def check_only(store, kept):
    assert await store.in_states(State.WAITING) == tuple(change.request for change in kept)
    found = await verify(store)
    assert (found.ok, found.events) == (True, len(kept))


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted here; the limit on pages is tested instead")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@asynccontextmanager
async def full(folder):
    """Take all the room that is left in a folder."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()


async def test_a_full_disk_refuses_a_change_whole_and_room_mends_it(small_disk):
    async with open_store(small_disk / "sayso.db") as store:
        kept = [change_of(number) for number in range(5)]
        for change in kept:
            await store.commit(change)
        async with full(small_disk):
            more, words = await fill(store, first=5)
            kept += more
            assert "the disk is full; make room there and ask again" in words
            await check_only(store, kept)
            with pytest.raises(StoreError, match="full"):
                await store.commit(change_of(9_001, filler=500_000))
            await check_only(store, kept)
        last = change_of(9_000, filler=100_000)
        assert await store.commit(last)
        await check_only(store, [*kept, last])
    async with open_store(small_disk / "sayso.db") as store:
        await check_only(store, [*kept, last])


async def test_a_store_that_fills_its_disk_by_itself_keeps_what_it_promised(small_disk):
    async with open_store(small_disk / "sayso.db") as store:
        kept, words = await fill(store)
        assert "the disk is full" in words
        await check_only(store, kept)
    assert kept
    async with open_store(small_disk / "sayso.db") as store:
        await check_only(store, kept)


async def test_a_full_disk_at_start_is_a_start_error(small_disk):
    async with full(small_disk):
        with pytest.raises(StartError, match="the disk is full"):
            async with open_store(small_disk / "sayso.db"):
                pass
    async with open_store(small_disk / "sayso.db") as store:
        await store.commit(change_of(1))


async def test_a_database_at_its_limit_refuses_whole_and_works_on_with_a_higher_one(tmp_path):
    def limit(pages):
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    async with open_store(tmp_path / "sayso.db") as store:
        await store._database._writer.run(limit(60))
        kept, words = await fill(store)
        assert "the disk is full" in words
        await check_only(store, kept)
        await store._database._writer.run(limit(10_000))
        last = change_of(9_000, filler=100_000)
        assert await store.commit(last)
        await check_only(store, [*kept, last])


async def test_a_database_that_another_program_locks_is_an_error_that_says_so(tmp_path):
    async with open_store(tmp_path / "sayso.db") as store:
        await store._database._writer.run(lambda connection: connection.execute("PRAGMA busy_timeout = 50"))
        other = sqlite3.connect(tmp_path / "sayso.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another program holds it locked"):
            await store.commit(change_of(1))
        other.execute("ROLLBACK")
        other.close()
        assert await store.commit(change_of(1))


async def test_reading_goes_on_while_a_change_is_written(tmp_path):
    async with open_store(tmp_path / "sayso.db") as store:
        await store.commit(change_of(1))
        writing = asyncio.gather(*(store.commit(change_of(number)) for number in range(2, 200)))
        reads = 0
        while not writing.done():
            assert await store.request(f"{1:032x}")
            reads += 1
        assert all(await writing)
        assert reads > 1
