"""The operator's desk for modes of single sessions: stricter than what is configured, never milder."""

from __future__ import annotations

from typing import Any, Protocol

from core.errors import RequestError
from core.model.principal import Reviewer
from core.model.request import AuditEvent
from core.model.session import SessionKey
from core.model.session_modes import SessionModes
from core.ports import Clock
from core.store_ports import CredentialStore, SessionModesStore


class _Kept(SessionModesStore, CredentialStore, Protocol):
    """What this desk needs of the store."""


class SessionModesConsole:
    """Sets, lists and clears the modes of sessions; each change is in the record with who made it."""

    def __init__(self, store: _Kept, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def tighten(
        self, session: str, security: str | None, ask: str | None, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Set modes for a session and its subagents; what is not given stays as it was set before."""
        if security is None and ask is None:
            raise RequestError("give security, ask or both; or clear what was set", field="security")
        key = await self._known(session)
        modes = SessionModes(key, security, ask, self._clock.now())
        data = {"session": key, "security": security, "ask": ask}
        event = self._event("session.tightened", reviewer, data)
        kept = await self._store.tighten_session(modes, event)
        return {
            **_row(kept),
            "text": f"From now on {_words(kept)} for {key} and its subagents, at the least.",
        }

    async def clear(self, session: str, reviewer: Reviewer) -> dict[str, Any]:
        """Forget what was set for a session; from then on what is configured holds for it again."""
        key = str(_read(session))
        event = self._event("session.cleared", reviewer, {"session": key})
        if not await self._store.clear_session(key, event):
            raise RequestError(
                f"nothing is set for {key}; `sayso session tighten` lists what is", field="session"
            )
        return {"session": key, "text": f"Cleared: what is configured holds for {key} again."}

    async def tightened(self) -> list[dict[str, Any]]:
        """List what is set, by session."""
        return [_row(modes) for modes in await self._store.session_modes()]

    async def _known(self, session: str) -> str:
        key = _read(session)
        if key.agent not in {record.id for record in await self._store.agents()}:
            raise RequestError(
                f"session {key}: there is no agent {key.agent!r}; `sayso agent list` tells which there are",
                field="session",
            )
        return str(key)

    def _event(self, kind: str, reviewer: Reviewer, data: dict[str, Any]) -> AuditEvent:
        return AuditEvent(self._clock.now(), kind, f"person:{reviewer.channel}:{reviewer.id}", None, data)


def _read(session: str) -> SessionKey:
    try:
        return SessionKey.parse(session)
    except ValueError as error:
        raise RequestError(str(error), field="session") from None


def _row(modes: SessionModes) -> dict[str, Any]:
    return {"session": modes.session, "security": modes.security, "ask": modes.ask, "setAt": modes.set_at}


def _words(modes: SessionModes) -> str:
    stated = {"security": modes.security, "ask": modes.ask}
    return " and ".join(f"{name} is {value}" for name, value in stated.items() if value)
