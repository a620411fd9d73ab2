"""What every HistoryStore promises: what filters find, how messages fare, which indexes are used."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest

from adapters.stores.history import find
from adapters.stores.opening import migrations
from adapters.stores.sqlite import open_store
from core.model.history import HistoryQuery
from core.model.principal import Reviewer
from core.model.request import Change, Copy, MessageKind, OutboxMessage, Resolution, State
from core.model.session import SessionKey

ANN = Reviewer("telegram", "7", "Ann")
BOB = Reviewer("web", "bob", "Bob B.")
TEN = 10


@pytest.fixture
async def kept(tmp_path):
    async with open_store(tmp_path / "sayso.db") as opened:
        yield opened


@pytest.fixture
def keep(kept, make_request):
    async def keep(name, at, command="/usr/bin/ls", session="agent:main:main", by=ANN, state=State.DENIED):
        made = make_request(name)
        request = replace(
            made,
            call=replace(made.call, session=SessionKey.parse(session)),
            canonical=command,
            created_at=at - 1,
            state=state,
            ended_at=at if state.final else None,
            resolution=Resolution("deny", at, by) if by else None,
        )
        assert await kept.commit(Change(request, insert=True))

    return keep


@pytest.fixture
async def three(keep):
    await keep("one", 100, "/usr/bin/git push 100%_done", "agent:main:telegram:group-5")
    await keep("two", 200, "/usr/bin/LS", "agent:other:main", by=BOB)
    await keep("three", 300, "/usr/bin/ls", by=None, state=State.RUNNING)
    await keep("four", 400, by=None, state=State.WAITING)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["three", "two", "one"]),
        ({"agent": "other"}, ["two"]),
        ({"agent": "oth"}, []),
        ({"session": "telegram:group"}, ["one"]),
        ({"person": "telegram:7"}, ["one"]),
        ({"person": "7"}, ["one"]),
        ({"person": "ann"}, ["one"]),
        ({"person": "bob b."}, ["two"]),
        ({"person": "web:7"}, []),
        ({"text": "ls"}, ["three", "two"]),
        ({"text": "0%_d"}, ["one"]),
        ({"text": "%"}, ["one"]),
        ({"text": "_"}, ["one"]),
        ({"text": "!"}, []),
        ({"since": 200}, ["three", "two"]),
        ({"until": 200}, ["one"]),
        ({"since": 100, "until": 200, "agent": "main", "text": "push"}, ["one"]),
        ({"states": (State.WAITING,)}, ["four"]),
        ({"states": (State.RUNNING, State.WAITING)}, ["four", "three"]),
        ({"limit": 1}, ["three"]),
        ({"limit": 0}, []),
    ],
)
@pytest.mark.usefixtures("three")
async def test_each_filter_finds_what_fits_newest_first(kept, asked, found):
    query = HistoryQuery(**{"limit": TEN, **asked})
    assert [request.id for request in await kept.search(query)] == found


@pytest.mark.usefixtures("three")
async def test_requests_in_a_state_are_counted(kept):
    assert await kept.count(State.DENIED) == 2
    assert await kept.count(State.DENIED, State.WAITING) == 3
    assert await kept.count() == 0


async def test_each_message_tells_how_it_fares(kept, make_request):
    places = ("posted", "updated", "failing", "given up", "queued")
    copies = tuple(Copy("telegram", place, f"nonce-{place}") for place in places)
    request = replace(make_request(), copies=copies)
    posts = tuple(OutboxMessage("telegram", MessageKind.POST, request.id, 1, place) for place in places)
    assert await kept.commit(Change(request, insert=True, messages=posts))
    assert {delivery.state for delivery in await kept.deliveries(request.id)} == {"queued"}
    due = {message.place: message for message in await kept.due("telegram", 5, TEN)}
    await kept.delivered(due["posted"], "r1")
    await kept.failed(due["updated"], 7, "busy")
    tried = {message.place: message for message in await kept.due("telegram", 9, TEN)}
    await kept.delivered(tried["updated"], "r2")
    await kept.post(OutboxMessage("telegram", MessageKind.UPDATE, request.id, 8, "updated"))
    (update,) = [m for m in await kept.due("telegram", 9, TEN) if m.kind is MessageKind.UPDATE]
    await kept.delivered(update, None)
    await kept.failed(due["failing"], 60, "no answer")
    await kept.dropped(due["given up"], "the bot was removed")
    told = {delivery.copy.place: delivery for delivery in await kept.deliveries(request.id)}
    assert {place: delivery.state for place, delivery in told.items()} == {place: place for place in places}
    assert [(told[p].tries, told[p].error, told[p].ref) for p in places] == [
        (1, None, "r1"),
        (3, None, "r2"),
        (1, "no answer", None),
        (1, "the bot was removed", None),
        (0, None, None),
    ]
    assert told["failing"].due_at == 60


MANY = 100_000


async def test_an_id_is_found_by_its_beginning_among_a_hundred_thousand(tmp_path, kept, keep):
    await keep("12345678-aaaa-4aaa-8aaa-000000000000", 1)
    path = tmp_path / "sayso.db"
    with closing(sqlite3.connect(path)) as connection:
        (body,) = connection.execute("SELECT body FROM requests").fetchone()
        values = [(f"{number:08x}-bbbb-4aaa-8aaa-{number:012x}", number, body) for number in range(MANY)]
        connection.executemany(
            "INSERT INTO requests (id, kind, state, agent, session, binding, created_at, deadline, ended_at, "
            "person_allowed, moment, command, body) "
            "VALUES (?1, 'run', 'denied', 'main', 'agent:main:main', 'b', "
            "?2, ?2, ?2, 0, ?2, '/usr/bin/ls', ?3)",
            values,
        )
        connection.commit()
        lookup = "SELECT id FROM requests WHERE id >= ? AND id < ? ORDER BY id LIMIT 10"
        (plan,) = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {lookup}", ("a", "b"))]
        times = []
        for number in range(0, MANY, 100):
            began = time.perf_counter()
            found = connection.execute(lookup, (f"{number:08x}", f"{number:08x}\x7f")).fetchall()
            times.append(time.perf_counter() - began)
            assert len(found) == 1
    assert "USING COVERING INDEX" in plan
    assert sorted(times)[len(times) // 2] < 100e-6
    (found,) = await kept.by_prefix("12345678-aaaa")
    assert found.id == "12345678-aaaa-4aaa-8aaa-000000000000"
    began = time.perf_counter()
    assert await kept.search(HistoryQuery(TEN, text="nothing has this", agent="main")) == ()
    assert time.perf_counter() - began < 2


def test_a_search_reads_no_bodies_to_find_its_rows(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        for script in migrations():
            connection.executescript(script)
        for asked in ({}, {"agent": "main"}, {"text": "x"}, {"session": "x", "states": (State.DENIED,)}):
            sql, values = find(HistoryQuery(TEN, since=1, until=2, **asked))
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
            assert "SEARCH requests USING COVERING INDEX requests_by_moment (moment>? AND moment<?)" in plan
