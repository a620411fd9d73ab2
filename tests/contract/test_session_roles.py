"""A session that once was a subagent stays one, whatever it claims later, also after a restart."""

from __future__ import annotations

from core.model.call import ToolCall
from core.model.outcome import Status
from core.model.principal import Claims
from core.model.session import SessionKey
from core.sessions import MOST_REMEMBERED, Sessions

CODING = {"tools": {"profile": "coding"}}
SESSION = SessionKey.parse("agent:main:telegram:5")


def sending(depth):
    return ToolCall("memory_search", SESSION, Claims(depth=depth), args={"query": "x"})


async def status(system, depth):
    return (await system.gate.ask(sending(depth), None)).status


async def test_a_claim_cannot_undo_what_a_session_was(make_system):
    system = make_system(CODING)
    assert await status(system, 0) is Status.ALLOWED
    assert await status(system, 1) is Status.DENIED
    assert await status(system, 0) is Status.DENIED
    assert await status(make_system(CODING), 0) is Status.DENIED


async def test_other_sessions_of_the_agent_are_not_meant(make_system):
    system = make_system(CODING)
    await status(system, 1)
    own = ToolCall("memory_search", SessionKey.main("main"), args={"query": "x"})
    assert (await system.gate.ask(own, None)).status is Status.ALLOWED


async def test_what_an_agent_is_told_of_its_session_follows(make_system):
    system = make_system(CODING)
    before = await system.gate.describe(SESSION, Claims())
    await status(system, 1)
    after = await system.gate.describe(SESSION, Claims())
    assert "memory_search" in before["tools"]
    assert "memory_search" not in after["tools"]


async def test_many_sessions_are_forgotten_by_memory_and_not_by_the_store(kept, clock):
    sessions = Sessions(kept, clock)
    await sessions.settled(SESSION, Claims(depth=2))
    for number in range(MOST_REMEMBERED // 100):
        await sessions.settled(SessionKey.parse(f"agent:main:telegram:{number + 10}"), Claims())
    fresh = Sessions(kept, clock)
    assert (await fresh.settled(SESSION, Claims())).depth == 2
