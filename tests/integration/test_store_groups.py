"""Writing that shares a transaction: each part has its own result, and none takes the others along."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest

from adapters.stores.opening import open_database
from adapters.stores.units import Unit, commit_together
from core.errors import StoreError


@pytest.fixture
async def database(tmp_path):
    async with open_database(tmp_path / "sayso.db") as opened:
        await opened.write(
            lambda connection: connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT")
        )
        yield opened


def put(number):
    return lambda connection: connection.execute("INSERT INTO t VALUES (?)", (number,)).rowcount == 1


def put_and(number, end):
    def work(connection):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        return end()

    return work


def fault():
    raise ValueError("a fault of ours")


async def kept(database):
    rows = await database.read(lambda connection: connection.execute("SELECT n FROM t ORDER BY n").fetchall())
    return [number for (number,) in rows]


async def together(database, *works):
    """Write while the writer is held up, so that all of it waits at the same time."""
    held, free = threading.Event(), threading.Event()

    def hold(_connection):
        held.set()
        free.wait(10)

    first = asyncio.create_task(database.write(hold))
    await asyncio.to_thread(held.wait, 10)
    tasks = [asyncio.create_task(database.write(work)) for work in works]
    await asyncio.sleep(0)
    free.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_each_of_many_has_its_own_result(database):
    commits = []
    await database.write(lambda connection: connection.set_trace_callback(commits.append))
    results = await together(database, put(1), put_and(2, lambda: False), put(3), put_and(4, fault), put(1))
    await database.write(lambda connection: connection.set_trace_callback(None))
    assert results[:3] == [True, False, True]
    assert isinstance(results[3], ValueError)
    assert isinstance(results[4], StoreError)
    assert "contradicts" in str(results[4])
    assert await kept(database) == [1, 3]
    assert commits.count("COMMIT") == 3  # of the one that held them up, of all five, and of the last


async def test_one_that_ends_the_transaction_takes_none_of_the_others_along(database):
    def lose(connection):
        connection.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
        return True

    results = await together(database, put(1), put(2), lose, put(3))
    assert [result is True for result in results] == [True, True, False, True]
    assert await kept(database) == [1, 2, 3]


async def test_where_the_commit_of_all_fails_each_is_tried_alone(database):
    await database.write(
        lambda connection: connection.executescript(
            "CREATE TABLE u (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED)"
        )
    )

    def refer(connection):
        connection.execute("INSERT INTO u VALUES (99)")
        return True

    results = await together(database, put(1), refer, put(2))
    assert (results[0], results[2]) == (True, True)
    assert isinstance(results[1], StoreError)
    assert await kept(database) == [1, 2]


async def test_a_caller_that_is_cancelled_leaves_the_others_and_no_half(database):
    tasks = [asyncio.create_task(database.write(put(number))) for number in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is True for result in results[1::2])
    assert set(range(1, 50, 2)) <= set(await kept(database))


async def test_a_thousand_at_once_are_all_kept_in_their_order(database):
    order = []

    def work(number):
        return lambda connection: (order.append(number), put(number)(connection))[1]

    assert all(await asyncio.gather(*(database.write(work(number)) for number in range(1_000))))
    assert order == list(range(1_000))
    assert len(await kept(database)) == 1_000


def test_a_unit_that_was_never_run_has_no_result():
    with pytest.raises(RuntimeError):
        Unit(put(1), durable=True).result()


def test_where_no_transaction_can_be_begun_each_is_told(tmp_path):
    first = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    first.execute("CREATE TABLE t (n INTEGER)")
    first.execute("BEGIN IMMEDIATE")
    second = sqlite3.connect(tmp_path / "x.db", isolation_level=None, timeout=0)
    units = [Unit(put(1), durable=True), Unit(put(2), durable=True)]
    commit_together(second, units)
    for unit in units:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            unit.result()
    first.close()
    second.close()
