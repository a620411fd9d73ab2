"""What Always left before it noted directory and arguments admits nothing, and every list says so."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import replace

import pytest
from msgspec import structs

from adapters.stores.codec import request_row
from adapters.stores.sqlite import open_store
from bot.check import Status as Judged
from bot.doctor_allowlist import judged
from core.approvals.card import card_of
from core.approvals.entries import AllowlistEntries, Surroundings
from core.model.decision import Effect
from core.model.outcome import Status
from core.model.plan import Binding
from core.model.request import Answer, Review, State
from tests.core_system import ALICE, CONFIG, Noting, System, exec_call

LS, RM, GIT = (
    json.dumps(
        {
            "agent": "main",
            "arg_pattern": None,
            "args": args,
            "pattern": f"/usr/bin/{name}",
            "placement": "sandbox",
            "real_path": f"/usr/bin/{name}",
            "sha256": None,
            "source": "learned",
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    for name, args in (("ls", None), ("rm", None), ("git", ["push"]))
)
OPERATORS = LS.replace('"real_path":"/usr/bin/ls"', '"real_path":null').replace("learned", "added")
KEEP = "INSERT INTO allowlist (id, entry, agent, given_at) VALUES (?, ?, 'main', 7)"


@pytest.fixture
def system(make_system, tmp_path):
    return make_system({**CONFIG, "agents": {"by_id": {"main": {"workspace": str(tmp_path)}}}})


@pytest.fixture
def desk(system):
    around = Surroundings(lambda: system.judge.config, lambda _path: "c.yaml:1", "/run/s.sock")
    return AllowlistEntries(system.store, system.clock, around)


def write(path, *texts):
    """Write rows as an earlier version did."""
    with sqlite3.connect(path) as connection:
        for number, text in enumerate(texts):
            connection.execute(KEEP, (f"{number}" * 32, text))
    connection.close()


async def effect(system, *command):
    return (await system.gate.consider(exec_call(*command)))[1].effect


async def test_what_was_learned_before_admits_nothing_and_is_listed_so(system, desk, tmp_path):
    commands = (("ls", "-l"), ("ls",), ("rm", "x"), ("git", "push"))
    before = [await effect(system, *command) for command in commands]
    write(tmp_path / "sayso.db", LS, RM, GIT)
    assert [await effect(system, *command) for command in commands] == before == [Effect.ASK] * 4
    rows = [row for row in (await desk.entries())["entries"] if row["id"]]
    assert len(rows) == 3
    assert all("admits nothing" in row["admitsNothing"] for row in rows)
    (check,) = judged(rows)
    assert check.status is Judged.WARN
    assert check.detail.startswith("3 learned entries admit nothing (00000000, 11111111, 22222222)")


async def test_what_an_operator_wrote_before_still_counts(system, desk, tmp_path):
    write(tmp_path / "sayso.db", OPERATORS)
    assert await effect(system, "ls", "-l") is Effect.ALLOW
    (row,) = [row for row in (await desk.entries())["entries"] if row["id"]]
    assert row["admitsNothing"] is None
    assert list(judged([row])) == []


async def test_the_database_keeps_them_over_a_restart_until_they_are_removed(tmp_path, clock):
    path = tmp_path / "own.db"
    async with open_store(path):
        pass
    write(path, LS, GIT)
    async with open_store(path) as store:
        entries = await store.learned("main")
        assert [(entry.directory, entry.any_arguments) for entry in entries] == [(None, False)] * 2
        system = System(store, clock, tmp_path, CONFIG, ("web",), None)
        kept = AllowlistEntries(store, clock, Surroundings(lambda: system.judge.config, str))
        await kept.remove("0" * 32, ALICE)
        assert [entry.pattern for entry in await store.learned("main")] == ["/usr/bin/git"]


async def asked_by_an_older_version(system, tmp_path, *command):
    """Ask, and bring what is kept of the question into the form that an earlier version gave it."""
    asked = await system.gate.ask(exec_call(*command), None)
    request = await system.store.request(asked.request_id)
    (entry,) = request.always.entries
    plain = structs.replace(entry, args=None if command[0] == "rm" else entry.args, directory=None)
    always = structs.replace(request.always, entries=(plain,), wider=(), wider_words=())
    parts = tuple(part for part in request.binding.parts if part[0] != "cwd.directories")
    old = Binding(request.binding.digest, parts)
    row = request_row(replace(request, always=always, binding=old))
    body = json.loads(row["body"])
    for kept in body["always"]["entries"]:
        del kept["directory"], kept["any_arguments"]
    del body["always"]["wider"], body["always"]["wider_words"]
    with sqlite3.connect(tmp_path / "sayso.db") as connection:
        connection.execute("UPDATE requests SET body = ? WHERE id = ?", (json.dumps(body), request.id))
    connection.close()
    return await system.store.request(request.id)


@pytest.mark.parametrize("command", [("rm", "x"), ("git", "push")])
async def test_a_question_of_an_older_version_offers_no_always_and_once_still_counts(
    system, tmp_path, command
):
    request = await asked_by_an_older_version(system, tmp_path, *command)
    card = card_of(request)
    assert not card.offers_always
    assert card.always_why == "it was asked by an older Sayso; allow it once, and Always the next time"
    (listed,) = await system.console.pending()
    assert (listed["always"], listed["alwaysAny"]) == ([], [])
    assert (await system.console.show(request.id))["always"] == {"words": [], "why": card.always_why}
    for answer in (Answer.ALLOW_ALWAYS, Answer.ALLOW_ALWAYS_ANY):
        told = await system.console.resolve(Review(request.id, answer, ALICE))
        assert not told["accepted"]
        assert "asked by an older Sayso" in told["text"]
    assert (await system.store.request(request.id)).state is State.WAITING
    told = await system.console.resolve(Review(request.id, Answer.ALLOW_ONCE, ALICE))
    assert told["accepted"]
    ran = await asyncio.wait_for(system.gate.run_approved(exec_call(*command), request.id, Noting()), 5)
    assert ran.status is Status.FINISHED, ran.reason


OLD_EXPORT = {
    "version": 1,
    "agents": {
        "main": {
            "allowlist": [
                {"pattern": "/usr/bin/rm", "realPath": "/usr/bin/rm"},
                {"pattern": "/usr/bin/git", "realPath": "/usr/bin/git", "args": ["push"]},
            ]
        }
    },
}


async def test_an_export_of_an_older_version_is_taken_with_a_note_and_admits_nothing(system, desk):
    told = await desk.bring(OLD_EXPORT, ALICE)
    assert len(told["added"]) == 2
    assert [note.partition(": it admits nothing")[0] for note in told["notes"][:1]] == ["`/usr/bin/rm`"]
    assert any(note.startswith("`/usr/bin/git`: it admits nothing") for note in told["notes"])
    assert await effect(system, "rm", "x") is Effect.ASK
    assert await effect(system, "git", "push") is Effect.ASK
    operators = {"pattern": "/usr/bin/git", "args": ["push"]}
    told = await desk.bring({"version": 1, "agents": {"main": {"allowlist": [operators]}}}, ALICE)
    assert told["notes"] == []
    assert await effect(system, "git", "push") is Effect.ALLOW


async def test_two_people_who_save_the_same_entry_at_once_leave_one(system):
    sessions = [exec_call("git", "push", env=(("LC_ALL", each),)) for each in ("C", "POSIX")]
    asked = [await system.gate.ask(call, None) for call in sessions]
    assert len({one.request_id for one in asked}) == 2
    reviews = [Review(one.request_id, Answer.ALLOW_ALWAYS, ALICE) for one in asked]
    told = await asyncio.gather(*map(system.console.resolve, reviews))
    assert all(one["accepted"] for one in told)
    (kept,) = await system.store.learned("main")
    assert (kept.pattern, kept.args) == ("/usr/bin/git", ("push",))
    assert await effect(system, "git", "push") is Effect.ALLOW
