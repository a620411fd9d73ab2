"""What is wrong about an answer: each case has a reply of its own, at the socket and in the CLI.

Nothing is changed by any of them. Socket, core and store are real; the clock is one that the test turns.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import pytest

from adapters.ingress.unix_socket import UnixSocketIngress
from core.approvals.entries import AllowlistEntries, Surroundings
from core.approvals.permissions import Permissions
from core.approvals.quorum import People
from core.approvals.rules import Rules
from core.model.request import Answer, Review, State
from tests.core_system import ALICE, CONFIG, exec_call
from tests.desks import some_desks

HOUR = 3_600_000
WINDOW = 120_000
TEN_MB = "x" * 10_000_000
TRACES = ("Traceback", "Error:", "pydantic", "Input should", "sqlite", "None")


@dataclass
class House:
    """A socket of a real core, with a question of each kind behind it."""

    site: Any  # the `Site` of this folder's fixtures, over the real desks
    system: Any
    clock: Any
    mine: str
    theirs: str
    ids: dict[str, str]

    async def state(self) -> tuple[Any, ...]:
        """Read all that an answer could change."""
        store = self.system.store
        async with aclosing(store.events()) as links:
            record = [link.hash async for link in links]
        requests = await store.in_states(*State)
        standing = (await store.permissions(self.clock.now()), await store.deny_rules())
        return requests, record, standing, await store.exec_approvals(), await store.locked()


@pytest.fixture
async def house(site, make_system, clock, short_home):
    """Put the real desks behind a socket of their own, and questions before them."""
    config = {**CONFIG, "agents": {"by_id": {**CONFIG["agents"]["by_id"], "strict": STRICT}}}
    system = make_system(config)
    tokens = {name: (await system.console.add_agent(name))["token"] for name in ("main", "other", "strict")}
    around = Surroundings(lambda: system.judge.config, lambda _path: None)
    desks = some_desks(
        console=system.console,
        permissions=Permissions(system.store, clock),
        allowlist=AllowlistEntries(system.store, clock, around),
    )
    place = short_home / "real"
    place.mkdir(mode=0o700)
    ingress = UnixSocketIngress(place / "sayso.sock", system.credentials, system.gate, desks)
    await ingress.open()
    real = replace(site, home=place, ingress=ingress, peers=[])
    made = House(real, system, clock, tokens["main"], tokens["other"], {})
    await furnish(made)
    yield made
    for peer in real.peers:
        peer.writer.transport.abort()
    await ingress.close()


STRICT = {"exec": {"ask": "always"}}


async def furnish(house):
    """Ask, answer, and let time pass, so that there is a request for each case."""
    system, ids = house.system, house.ids
    ids["expired"] = await put(system, "stat", "old")
    house.clock.advance(WINDOW + 1)
    await system.approvals.review(Review(ids["expired"], Answer.DENY, ALICE))
    ids["denied"] = await put(system, "stat", "no")
    await system.console.resolve(Review(ids["denied"], Answer.DENY, ALICE, "not today"))
    ids["allowed"] = await put(system, "stat", "yes")
    await system.console.resolve(Review(ids["allowed"], Answer.ALLOW_ONCE, ALICE))
    ids["open"] = await put(system, "ls", "-l")
    ids["once"] = await put(system, "ls", "-a", agent="strict")
    kept = await system.store.request(ids["open"])
    for name in ("abcdef01-first", "abcdef01-second"):
        binding = replace(kept.binding, digest=f"{name:0>64}")
        await system.approvals.ask(replace(kept, id=name, binding=binding, copies=()))
    system.rules = Rules(People.named({"Ann": ("cli:60001",), "Bea": ("web:operator",)}))
    system.required = lambda request: 2 if request.call.command.argv[0] == "du" else 1
    ids["quorum"] = await put(system, "du", "b")


async def put(system, *argv, agent="main"):
    session = replace(exec_call("x").session, agent=agent)
    asked = await system.gate.ask(exec_call(*argv, session=session), None)
    assert asked.request_id, asked
    return asked.request_id


def resolving(which, decision="allow-once", **more):
    """Make the parameters of an answer to one of the requests, or to an id that is written out."""
    return lambda house: {"id": house.ids.get(which, which), "decision": decision, **more}


RESOLVE = "exec.approval.resolve"
SOCKET = {
    "an id that nothing has": (
        RESOLVE,
        resolving("00000000-none"),
        -32003,
        "id",
        "no request has an id that begins",
    ),
    "an id of seven characters": (RESOLVE, resolving("abcdef0"), -32003, "id", "at least 8 characters"),
    "an id that two requests begin with": (
        RESOLVE,
        resolving("abcdef01"),
        -32003,
        "id",
        "abcdef01 is ambiguous: abcdef01-first, abcdef01-second",
    ),
    "an empty id": (RESOLVE, resolving(""), -32602, "id", "id: "),
    "an id that is a number": (RESOLVE, lambda _house: {"id": 7, "decision": "deny"}, -32602, "id", "id: "),
    "no id": (RESOLVE, lambda _house: {"decision": "deny"}, -32602, "id", "id: is missing"),
    "no decision": (
        RESOLVE,
        lambda house: {"id": house.ids["open"]},
        -32602,
        "decision",
        "decision: is missing",
    ),
    "a decision that does not exist": (
        RESOLVE,
        resolving("open", "perhaps"),
        -32602,
        "decision",
        "allow-always-any, deny or deny-always, not 'perhaps'",
    ),
    "a time without its length": (
        RESOLVE,
        resolving("open", "allow-for"),
        -32602,
        None,
        "forMs goes with allow-for",
    ),
    "a time that is too long": (
        RESOLVE,
        resolving("open", "allow-for", forMs=31 * 24 * HOUR),
        -32602,
        "forMs",
        "must be at most 2592000000",
    ),
    "a reason of ten thousand characters": (
        RESOLVE,
        resolving("open", "deny", reason="x" * 10_000),
        -32602,
        "reason",
        "at most 2000 characters, and has 10000",
    ),
    "a reason of 10 MB": (
        RESOLVE,
        resolving("open", "deny", reason=TEN_MB),
        -32005,
        None,
        "longer than 1048576 bytes",
    ),
    "a reason with a NUL": (RESOLVE, resolving("open", "deny", reason="a\0b"), -32602, "reason", "NUL"),
    "a parameter that does not exist": (
        RESOLVE,
        resolving("open", "deny", why="x"),
        -32602,
        "why",
        "is not a parameter",
    ),
    "a permission that nothing has": (
        "permission.revoke",
        lambda _house: {"id": "00000000"},
        -32003,
        "id",
        "sayso permissions list shows them",
    ),
    "an exec-approvals.json from before a change": (
        "exec.approvals.set",
        lambda _house: {"document": {"version": 1}, "baseHash": "0" * 64},
        -32602,
        "baseHash",
        "read it again",
    ),
    "an exec-approvals.json without the hash": (
        "exec.approvals.set",
        lambda _house: {"document": {"version": 1}},
        -32602,
        "baseHash",
        "baseHash: is missing",
    ),
}

TOLD = {
    "an answer after the time": ("expired", "allow-once", "Too late: Expired: nobody answered in time."),
    "a yes after a no": ("denied", "allow-always", "Too late: Denied by alice (cli:0): not today."),
    "the same no again": ("denied", "deny", "Too late: Denied by alice (cli:0): not today."),
    "a no after a yes": ("allowed", "deny-always", "Too late: Allowed once by alice (cli:0)."),
    "always, where a yes counts once": (
        "once",
        "allow-always",
        "Always is not offered here: every command is asked",
    ),
    "a yes of somebody who is not one of the people": ("quorum", "allow-once", "not under people"),
}


@pytest.mark.parametrize("case", SOCKET)
async def test_what_is_wrong_is_an_error_that_names_its_field_and_changes_nothing(house, case):
    method, params, code, field, words = SOCKET[case]
    before = await house.state()
    peer = await house.site.operator()
    call_id = peer.start(method, **params(house))
    answer = await peer.answer(None if "10 MB" in case else call_id)  # a line that is not read has no id
    error = answer["error"]
    assert (error["code"], error.get("data", {}).get("field")) == (code, field), error
    assert words in error["message"]
    assert len(error["message"]) < 400
    assert not any(trace in error["message"] for trace in TRACES), error["message"]
    assert await house.state() == before
    assert "result" in await peer.call("exec.approval.list"), "the connection lives on"


@pytest.mark.parametrize("case", TOLD)
async def test_an_answer_that_does_not_count_is_told_what_stands_and_changes_nothing(house, case):
    which, decision, words = TOLD[case]
    before = await house.state()
    answer = await (await house.site.operator()).call(RESOLVE, id=house.ids[which][:8], decision=decision)
    assert answer["result"]["accepted"] is False
    assert words in answer["result"]["text"]
    assert await house.state() == before


@pytest.mark.parametrize("case", TOLD)
async def test_the_command_line_says_the_same_and_its_status_tells_it_did_not_count(house, case):
    which, decision, words = TOLD[case]
    before = await house.state()
    how = {"allow-once": ["approve"], "allow-always": ["approve", "always"], "deny": ["deny"]}
    verb, *rest = how.get(decision, ["deny", "always"])
    status, out, err = await house.site.sayso(verb, house.ids[which][:8], *rest)
    assert (status, err) == (1, "")
    assert words in out.decode()
    assert await house.state() == before


CLI = {
    "an id that nothing has": (
        ["approve", "00000000"],
        64,
        "no request has an id that begins with '00000000'",
    ),
    "an id that two requests begin with": (["deny", "abcdef01"], 64, "abcdef01 is ambiguous"),
    "an id of seven characters": (["approve", "abcdef0"], 64, "at least 8 characters"),
    "a decision that does not exist": (["approve", "OPEN", "maybe"], 64, "once, always or for a time"),
    "a time that is no time": (["approve", "OPEN", "for", "soon"], 64, "soon"),
    "a reason of ten thousand characters": (
        ["deny", "OPEN", "--reason", "x" * 10_000],
        64,
        "2000 characters",
    ),
    "a reason in bytes that are no text": (["deny", "OPEN", "--reason", "\udcff"], 64, "UTF-8"),
    "no id": (["approve"], 64, "id"),
    "a permission that nothing has": (["permissions", "revoke", "00000000"], 64, "sayso permissions list"),
    "a token that is not the operator's": (["approve", "OPEN", "TOKEN"], 77, "not the operator's token"),
}


@pytest.mark.parametrize("case", CLI)
async def test_the_command_line_tells_in_one_line_what_is_wrong(house, case):
    words, expected, told = CLI[case]
    before = await house.state()
    env = {"SAYSO_OPERATOR_TOKEN": house.mine} if "TOKEN" in words else {}
    args = [house.ids["open"] if word == "OPEN" else word for word in words if word != "TOKEN"]
    status, out, err = await house.site.sayso(*args, **env)
    assert (status, out) == (expected, b""), err
    assert told in err
    assert len(err.strip().splitlines()) <= 2
    assert not any(trace in err for trace in TRACES), err
    assert await house.state() == before


@pytest.mark.parametrize("method", [RESOLVE, "exec.approvals.set", "permission.revoke", "lock.set"])
async def test_an_agents_credential_decides_nothing(house, method):
    before = await house.state()
    agent = await house.site.agent(house.mine)
    answer = await agent.call(method, id=house.ids["open"], decision="allow-once")
    assert answer["error"]["code"] == -32002
    assert answer["error"]["message"] == f"{method}: operator only"
    assert await house.state() == before


@pytest.mark.parametrize("method", ["exec.approval.withdraw", "exec.approval.waitDecision"])
@pytest.mark.parametrize("length", [8, None])
async def test_another_agents_credential_neither_withdraws_a_question_nor_learns_that_there_is_one(
    house, method, length
):
    before = await house.state()
    stranger = await house.site.agent(house.theirs)
    there = await stranger.call(method, id=house.ids["open"][:length])
    nowhere = await stranger.call(method, id="00000000-none")
    assert there["error"]["code"] == nowhere["error"]["code"] == -32003
    assert there["error"]["message"].startswith("no request of this agent has the id")
    assert there["error"]["data"] == {"field": "id"}
    assert await house.state() == before
    owner = await house.site.agent(house.mine)
    assert (await owner.call("exec.approval.withdraw", id=house.ids["open"]))["result"][
        "status"
    ] == "withdrawn"


async def test_an_asker_cannot_use_an_approval_of_another_agent(house):
    before = await house.state()
    stranger = await house.site.agent(house.theirs)
    answer = await stranger.call("exec.run", argv=["stat", "yes"], approvalId=house.ids["allowed"])
    assert answer["error"]["code"] == -32003
    assert await house.state() == before


def documents():
    entry = {"pattern": "/usr/bin/rg"}
    twin = {**entry, "id": "a" * 36}
    return {
        "another version": ({"version": 2}, "version"),
        "no version": ({}, "version"),
        "a list": ([], "document"),
        "an unknown key": ({"version": 1, "defualts": {}}, "defualts"),
        "a good entry before a bad one": (
            {"version": 1, "agents": {"main": {"allowlist": [entry, {"pattern": "bin/rg"}]}}},
            "agents.main.allowlist.1",
        ),
        "an entry without a pattern": (
            {"version": 1, "agents": {"main": {"allowlist": [{}]}}},
            "agents.main.allowlist.0",
        ),
        "a setting that does not exist": (
            {"version": 1, "defaults": {"security": "lax"}},
            "defaults.security",
        ),
        "an id twice": ({"version": 1, "agents": {"main": {"allowlist": [twin, twin]}}}, "a" * 36),
    }


@pytest.mark.parametrize("case", documents())
async def test_of_a_malformed_document_nothing_is_applied(house, tmp_path, case):
    document, named = documents()[case]
    operator = await house.site.operator()
    now = (await operator.call("exec.approvals.get"))["result"]["hash"]
    before = await house.state()
    answer = await operator.call("exec.approvals.set", document=document, baseHash=now)
    assert answer["error"]["code"] == -32602
    told = f"{answer['error'].get('data')} {answer['error']['message']}"
    assert named in told, told
    file = tmp_path / "exec-approvals.json"
    await asyncio.to_thread(file.write_text, json.dumps(document))
    status, out, err = await house.site.sayso("allowlist", "import", str(file))
    assert (status, out) == (64, b""), err
    assert "Traceback" not in err
    assert await house.state() == before


async def test_of_two_who_write_the_document_at_once_the_second_must_read_it_again(house):
    operator = await house.site.operator()
    read = (await operator.call("exec.approvals.get"))["result"]["hash"]
    document = {"version": 1, "agents": {"main": {"allowlist": [{"pattern": "/usr/bin/rg"}]}}}
    first = await operator.call("exec.approvals.set", document=document, baseHash=read)
    assert len(first["result"]["added"]) == 1
    before = await house.state()
    empty = {"version": 1}
    second = await operator.call("exec.approvals.set", document=empty, baseHash=read)
    assert second["error"]["data"] == {"field": "baseHash"}
    assert await house.state() == before
    again = await operator.call("exec.approvals.set", document=empty, baseHash=first["result"]["hash"])
    assert len(again["result"]["removed"]) == 1


async def test_another_answer_of_the_same_person_replaces_theirs_and_adds_none(house):
    house.system.rules = Rules(People.named({"Ann": (f"cli:{os.getuid()}",), "Bea": ("web:operator",)}))
    operator, question = await house.site.operator(), house.ids["quorum"]
    for decision in ("allow-always", "allow-once", "allow-once"):
        answer = (await operator.call(RESOLVE, id=question, decision=decision))["result"]
        assert (answer["accepted"], answer["state"]) == (True, "waiting")
        assert "1 of 2" in answer["text"]
    kept = await house.system.store.request(question)
    assert [given.answer.value for given in kept.reviews] == ["allow-always", "allow-once"]
    assert await house.system.store.learned("main") == ()


@pytest.mark.parametrize("decision", ["allow-once", "deny"])
async def test_a_clock_that_goes_back_an_hour_keeps_no_question_open_beyond_its_window(house, decision):
    question = await put(house.system, "stat", "back")
    house.clock.wall -= HOUR
    operator = await house.site.operator()
    waiting = (await operator.call("exec.approval.list"))["result"]
    assert question in [row["id"] for row in waiting]
    house.clock.advance(WINDOW - 1_000)
    _, out, _ = await house.site.sayso("pending")
    assert question[:8] in out.decode()
    house.clock.advance(1_001)
    answer = (await operator.call(RESOLVE, id=question, decision=decision))["result"]
    assert answer["accepted"] is False
    assert answer["text"] == "Too late: Expired: nobody answered in time."
    assert answer["state"] == "expired"


async def test_an_answer_given_within_the_window_counts_though_the_clock_went_back_an_hour(house):
    question = await put(house.system, "stat", "back")
    house.clock.wall -= HOUR
    operator = await house.site.operator()
    assert (await operator.call(RESOLVE, id=question, decision="allow-once"))["result"]["accepted"] is True
    assert (await house.system.console.audit_verify())["ok"]
