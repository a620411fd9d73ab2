"""The operator's desk for sessions over a real store, for the places that show it."""

from __future__ import annotations

import pytest

from core.elevator import Elevator, Wish
from core.model.elevation import ChatBinding, Level
from core.model.principal import Sender
from core.model.request import AuditEvent
from core.model.session import SessionKey
from core.session_console import SessionConsole

ANN = Sender("telegram", "1", "Ann", "ann")
MAIN, BUILDER = SessionKey.main("main"), SessionKey("builder", "telegram", "-100")


class Sessions:
    """A desk, and what stands behind it: `allow_from` may be changed while it serves."""

    def __init__(self, system, clock):
        self.store, self.clock, self.news, self.system = system.store, clock, [], system
        self.elevations = system.elevations
        self.elevator = Elevator(
            self.elevations, self.store, clock, lambda: system.judge.config, self.news.append
        )
        self.desk = SessionConsole(self.elevator, self.elevations, self.store, clock, lambda _channel, to: to)

    async def seen(self, *sessions):
        """Let sessions have asked."""
        for session in sessions:
            await self.store.deepest(str(session), session.depth, self.clock.now())

    async def set(self, session, level, for_ms=None, reason=None, by=ANN, *, break_glass=False):
        """Set a level as a chat would, or the machine's operator."""
        await self.elevator.set(Wish(session, level, for_ms, reason), by, break_glass=break_glass)

    async def bind(self, session, channel, place):
        event = AuditEvent(self.clock.now(), "session.bound", "person:telegram:1")
        await self.store.bind_chat(
            ChatBinding(channel, place, str(session), ANN, self.clock.now()), session.agent, event
        )

    def level(self, session):
        kept = self.elevations.standing_of(str(session))
        return kept.level if kept else Level.OFF


@pytest.fixture
def allow_from():
    return ["telegram:1", "web:operator"]


@pytest.fixture
async def sessions(make_system, clock, allow_from):
    config = {
        "tools": {
            "profile": "coding",
            "exec": {"security": "allowlist"},
            "elevated": {"enabled": True, "allowFrom": allow_from},
        }
    }
    system = make_system(config)
    for agent in ("main", "builder"):
        await system.credentials.mint(agent, "operator")
    return Sessions(system, clock)
