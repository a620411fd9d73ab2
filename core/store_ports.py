"""What the store keeps beside open requests: history, allowlist, credentials, people let in by a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.model.allowlist import AllowlistEdit, AllowlistEntry, EntryUse, ExecApprovals
from core.model.elevation import ChatBinding, Elevation
from core.model.history import Delivery, HistoryQuery
from core.model.pairing import PairedPerson
from core.model.request import AgentRecord, AuditEvent, Request, State
from core.model.session_modes import SessionModes


class HistoryStore(Protocol):
    """What was asked and decided, for as long as it is kept."""

    async def search(self, query: HistoryQuery) -> tuple[Request, ...]:
        """Return the requests that fit, newest first; what waits only where `states` names it."""
        ...

    async def count(self, *states: State) -> int:
        """Tell how many requests are in these states."""
        ...

    async def forget(self, before: int, limit: int) -> tuple[str, ...]:
        """Let requests go that ended before this time, at most so many; returns their ids.

        Their grants, copies and messages go with them. The record stays, and so does what answers left.
        """
        ...

    async def deliveries(self, request_id: str) -> tuple[Delivery, ...]:
        """Tell how each copy of a request fares."""
        ...


class AllowlistStore(Protocol):
    """What "always" left, what the operator added, and the settings of exec-approvals.json."""

    async def learned(self, agent: str) -> tuple[AllowlistEntry, ...]:
        """Return the learned entries that count for this agent, oldest first."""
        ...

    async def exec_approvals(self) -> ExecApprovals:
        """Return all entries, oldest first, and the settings, as of one moment."""
        ...

    async def edit_allowlist(self, revision: int, edit: AllowlistEdit, event: AuditEvent) -> bool:
        """Apply an edit in one durable transaction, or return False: the revision is another by now.

        False too where an entry that is to be kept is there already under another id.
        """
        ...

    async def record_uses(self, uses: Sequence[EntryUse], at: int) -> None:
        """Note when, and for which commands, entries last admitted something; a power cut may undo it."""
        ...


class CredentialStore(Protocol):
    """Tokens of agents and logins of the page, kept as digests."""

    async def put_agent(self, record: AgentRecord, event: AuditEvent) -> bool:
        """Keep a new or renewed agent; False where a live one has that id."""
        ...

    async def revoke_agent(self, agent: str, event: AuditEvent) -> bool:
        """End an agent's token; False where there is none alive."""
        ...

    async def agents(self) -> tuple[AgentRecord, ...]:
        """Return all agents, revoked ones too."""
        ...

    async def agent_by_token(self, token_sha256: str) -> AgentRecord | None:
        """Return the agent whose live token has this digest."""
        ...

    async def put_login(self, token_sha256: str, expires_at: int) -> None:
        """Keep a login of the page."""
        ...

    async def login_valid(self, token_sha256: str, now: int) -> bool:
        """Tell whether this login is alive."""
        ...

    async def end_login(self, token_sha256: str) -> None:
        """End a login."""
        ...


class ElevationStore(Protocol):
    """What people set for sessions, and the chats that sessions belong to. `lock` ends all elevations."""

    async def elevations(self) -> tuple[Elevation, ...]:
        """Return everything that was set and not ended, oldest first; its time may be over."""
        ...

    async def elevate(self, elevation: Elevation, event: AuditEvent) -> bool:
        """Keep what a person set, in place of what stood; False while everything is locked.

        The standing permissions of the session and of those below it end with it. A directive (`once`) only
        takes the place of one that waits, and ends no permissions.
        """
        ...

    async def use_directive(self, elevation_id: str, at: int) -> bool:
        """Use a directive up; False where it was used, is over or was taken back."""
        ...

    async def end_session(self, session: str, event: AuditEvent) -> bool:
        """End what was set for a session, its permissions and its chats; False where there was nothing."""
        ...

    async def bind_chat(self, binding: ChatBinding, agent: str, event: AuditEvent) -> None:
        """Keep which session of an agent a chat means, in place of what it meant before."""
        ...

    async def chat_bindings(self) -> tuple[ChatBinding, ...]:
        """Return all of them, oldest first."""
        ...


class PairingStore(Protocol):
    """People who were let in by a one-time code, as the operator confirmed them."""

    async def put_paired(self, person: PairedPerson, event: AuditEvent) -> None:
        """Keep a person; one who is kept for the same channel, id and route already is replaced."""
        ...

    async def paired(self) -> tuple[PairedPerson, ...]:
        """Return everybody, oldest first."""
        ...

    async def unpair(self, person: PairedPerson, event: AuditEvent) -> bool:
        """Forget a person for their route; False where there is none."""
        ...


class SessionModesStore(Protocol):
    """Modes of `exec` that the operator set for single sessions."""

    async def tighten_session(self, modes: SessionModes, event: AuditEvent) -> SessionModes:
        """Set what is given and keep the rest; returns what holds for the session now."""
        ...

    async def clear_session(self, session: str, event: AuditEvent) -> bool:
        """Forget what was set for a session; False where nothing was."""
        ...

    async def session_modes(self) -> tuple[SessionModes, ...]:
        """Return all, by session."""
        ...
