"""Attempts that no honest agent makes are refused, recorded as security events, and told once."""

from __future__ import annotations

import pytest

from core.approvals.notices import notices_for
from core.config import NoticeSettings
from core.model.call import ToolCall
from core.model.notice import NoticeKind
from core.model.outcome import Status
from core.model.request import Answer, Review
from tests.core_system import ALICE, MAIN, Noting, exec_call


async def security(system):
    return [link.event async for link in system.store.events() if link.event.kind.startswith("security.")]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (ToolCall("cron", MAIN, args={"at": "noon"}), "security.owner-only"),
        (exec_call("sayso", "approve", "1a2b3c4d"), "security.operator-verb"),
        (exec_call(line="true && sayso unlock"), "security.operator-verb"),
    ],
    ids=["owner-only", "verb", "verb-in-a-line"],
)
async def test_an_alarming_call_is_refused_and_recorded(system, call, kind):
    outcome = await system.gate.ask(call, None)
    assert outcome.status is Status.DENIED
    (event,) = await security(system)
    assert (event.kind, event.actor, event.request_id) == (kind, "agent:main", outcome.request_id)


async def test_sayso_own_state_is_alarming_too(system, tmp_path):
    outcome = await system.gate.run(
        exec_call("cat", str(tmp_path / "state" / "operator.token")), None, Noting()
    )
    assert outcome.status is Status.DENIED
    assert [event.kind for event in await security(system)] == ["security.own-state"]


async def test_an_ordinary_denial_is_no_alarm(make_system):
    system = make_system({"tools": {"profile": "minimal"}})
    outcome = await system.gate.ask(exec_call("ls"), None)
    assert outcome.status is Status.DENIED
    assert await security(system) == []


async def test_an_alarm_takes_the_place_of_the_denial_notice_and_names_the_command(system):
    changes = []
    system.ledger.on_commit.append(changes.append)
    await system.gate.ask(exec_call("sayso", "unlock"), None)
    (change,) = changes
    (notice,) = notices_for(change, NoticeSettings())
    assert notice.kind is NoticeKind.SECURITY
    assert "sayso unlock" in notice.text
    (plain,) = notices_for(change, NoticeSettings(security=False))
    assert plain.kind is NoticeKind.DENIED


async def test_an_owners_tool_is_refused_again_when_it_would_run(make_system):
    owner = {
        "tools": {"profile": "coding", "ask": {"tools": ["cron"]}},
        "agents": {"byId": {"main": {"owner": True}}},
    }
    call = ToolCall("cron", MAIN, args={"at": "noon"})
    before = make_system(owner)
    asked = await before.gate.ask(call, None)
    assert asked.status is Status.PENDING
    await before.console.resolve(Review(asked.request_id, Answer.ALLOW_ONCE, ALICE))
    after = make_system({**owner, "agents": {"byId": {"main": {"owner": False}}}})
    outcome = await after.gate.run_approved(call, asked.request_id, Noting())
    assert outcome.status is Status.DENIED
    assert [event.kind for event in await security(after)] == ["security.owner-only"]
