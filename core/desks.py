"""What the core offers to ingresses: a desk for agents, a console for the operator, and who may use which."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from core.model.allowlist import AllowlistEntry
from core.model.call import ToolCall
from core.model.history import HistoryQuery
from core.model.outcome import Outcome
from core.model.principal import Claims, PeerCredentials, Reviewer
from core.model.request import Review
from core.model.session import SessionKey
from core.model.terminal import Seat
from core.ports import RunObserver


class AgentDesk(Protocol):
    """What an agent may ask for; `core.gate` answers it. Raises RequestError for what is not well-formed."""

    async def run(self, call: ToolCall, peer: PeerCredentials | None, observer: RunObserver) -> Outcome:
        """Decide, ask people where policy says so, run, and return the outcome.

        When cancelled (the asker hung up), a question stays open and a run goes on; `wait` joins again.
        """
        ...

    async def run_approved(self, call: ToolCall, request_id: str, observer: RunObserver) -> Outcome:
        """Run a call under the approval that `ask` got for it; it counts once, and the binding must match."""
        ...

    async def ask(self, call: ToolCall, peer: PeerCredentials | None) -> Outcome:
        """Decide without running: allowed, denied, or pending with the id to wait for."""
        ...

    async def wait(self, agent: str, request_id: str, observer: RunObserver) -> Outcome:
        """Wait for the decision on the agent's own request; where it is one to run, run it too."""
        ...

    async def withdraw(self, agent: str, request_id: str) -> Outcome:
        """Take back the agent's own waiting request."""
        ...

    async def describe(self, session: SessionKey, claims: Claims) -> Mapping[str, Any]:
        """Tell an agent what holds for its session: tools, exec mode, placement, workspace."""
        ...


class Console(Protocol):
    """What the operator may see and do; `core.console` answers it. All results are plain JSON values.

    Ids may be given by a unique prefix of at least 8 characters; UnknownRequest says what is wrong with one.
    """

    async def pending(self) -> list[dict[str, Any]]:
        """List what waits, oldest first."""
        ...

    async def history(self, query: HistoryQuery) -> list[dict[str, Any]]:
        """List what was decided and fits, newest first."""
        ...

    async def show(self, request_id: str) -> dict[str, Any]:
        """Tell everything about one request, its audit events and messages too."""
        ...

    async def resolve(self, review: Review) -> dict[str, Any]:
        """Decide as the operator, also by a prefix of the id; returns {accepted, text, id, state}."""
        ...

    async def cancel(self, request_id: str, reviewer: Reviewer) -> dict[str, Any]:
        """End a run; returns {accepted, text}."""
        ...

    async def agents(self) -> list[dict[str, Any]]:
        """List agents: {id, createdAt, revokedAt}."""
        ...

    async def add_agent(self, agent: str) -> dict[str, Any]:
        """Mint a token; returns {id, token}, the only time it is told."""
        ...

    async def revoke_agent(self, agent: str) -> dict[str, Any]:
        """End an agent's token at once, and with it its runs and its open questions."""
        ...

    async def explain(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one input row of `explain` against the configuration and allowlist in force."""
        ...

    async def tools(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one input row of `tools` likewise."""
        ...

    async def audit_tail(self, limit: int) -> list[dict[str, Any]]:
        """Return the newest audit events, oldest first: {seq, at, kind, actor, request, data, hash}."""
        ...

    async def audit_page(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Return the links after an event, in order: {…as in audit_tail, previous}; empty at the end."""
        ...

    async def audit_verify(self) -> dict[str, Any]:
        """Recompute the chain; returns {ok, events, head, brokenAt, problem}."""
        ...

    async def set_locked(self, *, locked: bool, reviewer: Reviewer) -> dict[str, Any]:
        """Pull or release the kill switch; returns {locked, text}."""
        ...

    async def test_channels(self, channel: str | None) -> dict[str, Any]:
        """Put a question that cannot run anything to the chats, or one channel; {id, deadline, places}."""
        ...

    async def web_link(self) -> dict[str, Any]:
        """Make a one-time login link; returns {url, expiresAt}."""
        ...

    async def reload(self, reviewer: Reviewer) -> dict[str, Any]:
        """Read the configuration again; a bad one changes nothing.

        {ok, atOnce: [{key, where}…], atRestart: [{key, where, whyLater}…], warnings, problems}
        """
        ...

    async def status(self) -> dict[str, Any]:
        """Tell how the daemon is: version, pid, uptime, channels, health, counts, locked."""
        ...

    def subscribe(self) -> AsyncIterator[dict[str, Any]]:
        """Yield {method, params} for each event from now on (`exec.approval.requested` and its kin)."""
        ...


class PermissionDesk(Protocol):
    """What answers left standing, to see and to end; `core.approvals.permissions` answers."""

    async def standing(self) -> list[dict[str, Any]]:
        """List permissions and deny rules that count, oldest first.

        {id, effect (allow or deny), agent, session, command, by, givenAt, expiresAt, maxUses, uses, reason}
        """
        ...

    async def revoke(self, answer_id: str, reviewer: Reviewer) -> dict[str, Any]:
        """End one, by a unique prefix of its id of at least 8 characters; returns {id, text}."""
        ...


class AllowlistDesk(Protocol):
    """The allowlist, to see and to change; `core.approvals.entries` answers.

    All that is malformed raises RequestError that names the field, and changes nothing.
    """

    async def entries(self, agent: str | None = None) -> dict[str, Any]:
        """List what is written in the configuration, then what is kept; {entries, settings}.

        An entry is {id, pattern, args, argPattern, words, placement, realPath, sha256, agent, source, where,
        by, at, request, lastUsedAt, lastUsedCommand, lastResolvedPath}; written ones have no id.
        """
        ...

    async def add(self, entry: AllowlistEntry, reviewer: Reviewer) -> dict[str, Any]:
        """Keep an entry of the operator's; returns {id, entry, notes}."""
        ...

    async def remove(self, entry_id: str, reviewer: Reviewer) -> dict[str, Any]:
        """Forget a kept entry, by a unique prefix of its id of at least 8 characters; returns {id, text}."""
        ...

    async def document(self) -> dict[str, Any]:
        """Give exec-approvals.json, without any token, and its hash; returns {document, hash}."""
        ...

    async def replace_document(
        self, document: Mapping[str, Any], base: str | None, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Put a document in place of the one whose hash is `base` (None: of whichever is there).

        Returns {added, removed, unchanged, notes, hash}.
        """
        ...

    async def bring(self, document: Mapping[str, Any], reviewer: Reviewer) -> dict[str, Any]:
        """Add what a document holds to what is kept; returns the same."""
        ...


class PairingDesk(Protocol):
    """Lets people in through a chat; `core.approvals.pairing` answers."""

    async def invite(self, channel: str, route: str | None) -> dict[str, Any]:
        """Make a one-time code; returns {id, code, expiresAt}. Raises RequestError for what is no route."""
        ...

    async def invitation(self, invitation_id: str) -> dict[str, Any]:
        """Tell how an invitation stands: {id, state, expiresAt, person: {channel, id, name, username}|None}.

        `state` is open, claimed, confirmed, refused, expired, or void (others know the code).
        """
        ...

    async def confirm(self, invitation_id: str, reviewer: Reviewer, *, accepted: bool) -> dict[str, Any]:
        """Let in or turn away who sent the code, or withdraw it unsent; returns {accepted, text}."""
        ...

    async def people(self) -> list[dict[str, Any]]:
        """List who was let in: {channel, id, name, route, pairedAt}."""
        ...

    async def unpair(self, channel: str, person: str, route: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take a person's right back at once; returns {text}."""
        ...


class SessionDesk(Protocol):
    """Sessions and what is set for them; `core.session_console` answers."""

    async def sessions(self) -> list[dict[str, Any]]:
        """List the sessions that were seen or that something is set for, those that asked last first.

        {session, agent, depth, elevated, source, setBy, setAt, until, reason, breakGlass, chats:
        [[channel, place]…], firstSeen, lastRequest}
        """
        ...

    def elevated(self) -> list[dict[str, Any]]:
        """List the sessions for which somebody has set more than off, as above; from memory alone.

        Their chats and times of asking are left out.
        """
        ...

    async def elevate(
        self, session: str, level: str, for_ms: int | None, reason: str | None, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Set a session's level; returns {session, level, until, breakGlass, text}.

        Raises RequestError where that may not be, and then nothing has changed.
        """
        ...

    async def bind(self, session: str, channel: str, to: str, reviewer: Reviewer) -> dict[str, Any]:
        """Tell which session a chat means; returns {session, channel, place, text}."""
        ...

    async def end(self, session: str, reviewer: Reviewer) -> dict[str, Any]:
        """End a session: its level, permissions, chats and open questions; returns {session, text}."""
        ...


class ToolDesk(Protocol):
    """Registers the tools of plugins while the daemon runs; `core.registrar` answers."""

    async def register(self, plugin: str, tools: Sequence[str], reviewer: Reviewer) -> dict[str, Any]:
        """Register a plugin's tools, in place of those it had; returns {plugin, tools, until}.

        Raises RequestError for names that cannot be registered, and then nothing has changed.
        """
        ...

    async def unregister(self, plugin: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take a plugin out; returns {plugin, text}. Raises RequestError where it was not registered so."""
        ...

    async def registered(self) -> list[dict[str, Any]]:
        """List all plugins: {plugin, tools, source}; the source is a configuration path, or `run time`."""
        ...


class SessionModesDesk(Protocol):
    """Modes of `exec` for single sessions, to see and to set; `core.session_modes` answers."""

    async def tighten(
        self, session: str, security: str | None, ask: str | None, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Set modes for a session and its subagents; returns {session, security, ask, setAt, text}.

        They only make stricter what is configured. What is not given stays as it was set before.
        """
        ...

    async def clear(self, session: str, reviewer: Reviewer) -> dict[str, Any]:
        """Forget what was set for a session; returns {session, text}. RequestError where nothing was."""
        ...

    async def tightened(self) -> list[dict[str, Any]]:
        """List what is set: {session, security, ask, setAt}, by session."""
        ...


class PassphraseDesk(Protocol):
    """What the operator must prove beside the token; `core.passphrase.guard` answers."""

    @property
    def asks(self) -> bool:
        """Tell whether a passphrase is needed at all."""
        ...

    def standing(self, seat: Seat) -> dict[str, Any]:
        """Tell a seat what it still needs; returns {passphrase, rememberedUntil}, or nothing.

        `passphrase` is needed, remembered, once (for this connection), or no-terminal.
        """
        ...

    def admits(self, seat: Seat) -> bool:
        """Tell whether this seat is the operator's now."""
        ...

    def require(self, seat: Seat) -> None:
        """Raise PassphraseNeeded, or NotPermitted where no passphrase would help, for a seat that is not."""
        ...

    async def unlock(self, seat: Seat, passphrase: str, reviewer: Reviewer) -> dict[str, Any]:
        """Take the passphrase; returns what `standing` does. NotPermitted says how long a guess must wait."""
        ...

    async def change(
        self, seat: Seat, old: str | None, passphrase: str, reviewer: Reviewer
    ) -> dict[str, Any]:
        """Set the passphrase, given the one before where one is set; returns {text}."""
        ...

    async def forget(self, reviewer: Reviewer) -> dict[str, Any]:
        """Forget every terminal at once; returns {forgotten, text}."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorDesks:
    """All that the operator may use."""

    console: Console
    permissions: PermissionDesk
    pairing: PairingDesk
    tools: ToolDesk
    allowlist: AllowlistDesk
    sessions: SessionDesk
    session_modes: SessionModesDesk
    passphrase: PassphraseDesk


class Gatekeeper(Protocol):
    """Tells who holds a token."""

    async def agent(self, token: str) -> str | None:
        """Return the agent id this live token belongs to."""
        ...

    def operator(self, token: str) -> bool:
        """Tell whether this is the operator's token; raises NotPermitted where none counts."""
        ...
