"""What the core needs from the world; adapters implement these, tests run one suite over each of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, Self

from core.model.card import Card
from core.model.chat import Press, Reply, Typed
from core.model.command import Directory, Executable, FileIdentity, Placement, RealPath
from core.model.notice import Notice
from core.model.plan import RunOrder, RunResult, SandboxPlan
from core.model.request import (
    AuditEvent,
    ChainedEvent,
    Change,
    Copy,
    KeptCopy,
    OutboxMessage,
    Request,
    Review,
    State,
)
from core.model.session import KnownSession
from core.model.standing import DenyRule, Remembered, StandingPermission
from core.store_ports import (
    AllowlistStore,
    CredentialStore,
    ElevationStore,
    HistoryStore,
    PairingStore,
    RevisionStore,
    SessionModesStore,
)


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> int:
        """Return the wall clock, in epoch milliseconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...


class Resolver(Protocol):
    """Looks at files, so that deciding need not."""

    def for_one_command(self) -> Self:
        """Return one that reads no more, and no longer, than a single command is worth."""
        ...

    def find(self, name: str, *, path: Sequence[str], cwd: str) -> Executable | None:
        """Find a program as execvp would: a bare name on `path`, a name with a slash relative to `cwd`."""
        ...

    def file(self, path: str) -> FileIdentity | None:
        """Tell a regular file from every other, by its content too where others can write it.

        NOT_LOOKED_AT once there is no time left for it, and for a pipe, a device, what a link of /proc leads
        to, and what lies behind a directory that is closed to us. One that cannot be read is UNHASHED.
        """
        ...

    def beginning(self, path: str, identity: FileIdentity) -> bytes | None:
        """Give the first 256 bytes of a file as it was when it was looked at; None where nobody knows them.

        Of what is no script, fewer may be given.
        """
        ...

    def real_directory(self, path: str) -> str | None:
        """Return the real path of an existing directory, or None."""
        ...

    def directory(self, path: str) -> Directory | None:
        """Tell which directory is at an absolute path now, or None."""
        ...

    def real_path(self, path: str) -> RealPath | None:
        """Follow an absolute path through every link as far as it exists; None where that cannot be told."""
        ...


class NameResolver(Protocol):
    """Looks up host names, so that deciding need not."""

    def addresses(self, host: str) -> tuple[str, ...]:
        """Return every address of a name, IPv4 and IPv6, canonical; empty where there is none in time."""
        ...


class OutputSink(Protocol):
    """Receives output while a command runs."""

    def write(self, request_id: str, stream: str, data: bytes) -> None:
        """Take a piece of `stdout` or `stderr`; must not block."""
        ...


class Runner(Protocol):
    """Runs bound commands in one kind of place."""

    placement: Placement
    name: str

    async def run(self, order: RunOrder, sink: OutputSink) -> RunResult:
        """Check the binding a last time, run, stream, and return when no process of the run is left.

        Raises BindingMismatch where something changed, RunError where the place cannot be set up. When
        cancelled it kills the whole run before it lets the cancellation through.
        """
        ...

    def make_workspace(self, plan: SandboxPlan) -> bool:
        """Make the workspace where that is Sayso's to make and is not there; tell whether it was made now.

        Raises RunError where it cannot be made.
        """
        ...


class RequestStore(Protocol):
    """Requests, their grants and their record."""

    async def commit(self, change: Change) -> bool:
        """Apply the change in one durable transaction, or return False where its state was not met.

        While everything is locked, or the agent is revoked, False too for all that leaves a request open:
        nothing is asked, approved or started then, whatever was decided a moment ago.
        """
        ...

    async def commit_all(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """Apply many changes in one durable transaction; tells of each what `commit` would.

        Where one raises, none is applied.
        """
        ...

    async def request(self, request_id: str) -> Request | None:
        """Return the request with this full id."""
        ...

    async def by_prefix(self, prefix: str, limit: int = 10) -> tuple[Request, ...]:
        """Return requests whose id begins so."""
        ...

    async def in_states(self, *states: State) -> tuple[Request, ...]:
        """Return all requests in these states, oldest first."""
        ...

    async def recent(self, limit: int) -> tuple[Request, ...]:
        """Return the newest requests in final states, newest first."""
        ...


class StandingStore(Protocol):
    """What answers left standing: permissions for a time, and deny rules. `lock` ends all permissions."""

    async def remembered(
        self,
        agent: str,
        binding: str,
        now: int,
        sessions: Sequence[str] = (),
        counted: str | None = None,
    ) -> Remembered:
        """Return, as of one moment, all that earlier answers mean for a call with this binding.

        `sessions` are the one it was made in and those that it descends from: what is set for them counts.
        `counted` is a permission of which a use was taken for this very call: it may be used up by that.
        """
        ...

    async def permissions(self, now: int) -> tuple[StandingPermission, ...]:
        """Return the permissions that still count, oldest first."""
        ...

    async def end_permission(self, permission_id: str, event: AuditEvent) -> bool:
        """End a permission; False where none with this full id counts."""
        ...

    async def deny_rules(self) -> tuple[DenyRule, ...]:
        """Return the deny rules that count, oldest first."""
        ...

    async def revoke_deny_rule(self, rule_id: str, event: AuditEvent) -> bool:
        """Revoke a deny rule; False where none with this full id counts."""
        ...


class SessionStore(Protocol):
    """What is remembered of sessions."""

    async def deepest(self, session: str, depth: int, at: int) -> int:
        """Note a spawn depth that a session claims; returns the deepest that it ever claimed."""
        ...

    async def sessions(self, limit: int) -> tuple[KnownSession, ...]:
        """Return the sessions that were seen, those that asked last first."""
        ...

    async def sessions_on(self, channel: str) -> tuple[str, ...]:
        """Return the keys of the sessions that name this channel, and are no subagent's."""
        ...


class OutboxStore(Protocol):
    """Messages to channels that must not be lost, and the copies of requests that they make."""

    async def post(self, *messages: OutboxMessage) -> None:
        """Keep messages that belong to no request's change."""
        ...

    async def due(self, channel: str, now: int, limit: int) -> tuple[OutboxMessage, ...]:
        """Return what is due for this channel, in order, at most one per copy; notices wait for nothing."""
        ...

    async def next_due(self, channel: str) -> int | None:
        """Return when the next message of this channel is due."""
        ...

    async def delivered(self, message: OutboxMessage, ref: str | None) -> None:
        """Forget a message that arrived; keep `ref`, by which its copy can be updated."""
        ...

    async def failed(self, message: OutboxMessage, due_at: int, error: str) -> None:
        """Keep a message for another try at `due_at`."""
        ...

    async def dropped(self, message: OutboxMessage, error: str) -> None:
        """Give a message up for good, and record that."""
        ...

    async def copies(self, request_id: str) -> tuple[KeptCopy, ...]:
        """Return every copy of a request, posted or not yet."""
        ...

    async def copy_by_nonce(self, nonce: str) -> KeptCopy | None:
        """Return the copy whose buttons carry this nonce."""
        ...

    async def note_ref(self, copy: Copy, ref: str) -> None:
        """Keep the ref of a copy whose delivery had remained unclear, once the platform has told it."""
        ...


class AuditStore(Protocol):
    """The record, append-only."""

    async def append(self, *events: AuditEvent) -> None:
        """Add events that belong to no request's change."""
        ...

    def events(self, after: int = 0) -> AsyncGenerator[ChainedEvent, None]:
        """Yield the chain in order."""
        ...

    async def events_about(self, request_id: str) -> tuple[ChainedEvent, ...]:
        """Return the events of one request, oldest first."""
        ...

    async def head(self) -> tuple[int, str]:
        """Return (seq, hash) of the last event, as noted beside the chain."""
        ...


class LockStore(Protocol):
    """The kill switch."""

    async def locked(self) -> bool:
        """Tell whether everything is stopped."""
        ...

    async def set_locked(self, *, locked: bool, event: AuditEvent) -> None:
        """Stop everything, or resume."""
        ...


class Store(
    RequestStore,
    HistoryStore,
    StandingStore,
    SessionStore,
    ElevationStore,
    SessionModesStore,
    AllowlistStore,
    RevisionStore,
    CredentialStore,
    PairingStore,
    OutboxStore,
    AuditStore,
    LockStore,
    Protocol,
):
    """All that survives a restart."""


class ReviewAnswer(Protocol):
    """What became of a review, in words for the one who gave it."""

    @property
    def accepted(self) -> bool:
        """Whether this answer is the one that counts."""
        ...

    @property
    def text(self) -> str:
        """What to tell the one who gave it."""
        ...

    @property
    def card(self) -> Card | None:
        """The card as it stands now."""
        ...


class ReviewDesk(Protocol):
    """What a channel may ask of the core."""

    async def review(self, review: Review) -> ReviewAnswer:
        """Take a person's answer; the first valid one wins, later ones are told what stands."""
        ...

    async def card(self, request_id: str, at: tuple[str, str] | None = None) -> Card | None:
        """Return the card of a kept request, with what may be answered at this (channel, place).

        Without a place: what may be answered by whoever a login has proven to be the operator.
        """
        ...

    async def waiting(self) -> tuple[Card, ...]:
        """Return all cards that wait, oldest first."""
        ...

    async def decided(self, limit: int) -> tuple[Card, ...]:
        """Return the newest cards that no longer wait, newest first."""
        ...


class ChatDesk(ReviewDesk, Protocol):
    """What a chat may ask of the core besides; it passes the replies on."""

    async def press(self, press: Press) -> Reply:
        """Take a pressed button; who pressed, and where, is checked here."""
        ...

    async def typed(self, typed: Typed) -> Reply | None:
        """Take a typed message; None where it is none of our commands."""
        ...


class Channel(Protocol):
    """A place where people review.

    `name` is its key in the configuration. `keeps_copies` is true where messages outlive the daemon; the
    others are told again of everything that waits when the daemon starts. Deliveries raise DeliveryError,
    DeliveryUnclear or DeliveryRefused where they do not arrive.
    """

    name: str
    keeps_copies: bool

    async def open(self, desk: ChatDesk) -> None:
        """Connect; raises StartError where it cannot."""
        ...

    async def post(self, card: Card, place: str, nonce: str) -> str:
        """Show a card whose buttons carry the nonce; returns a reference by which its copy can be updated."""
        ...

    async def update(self, card: Card, place: str, ref: str, nonce: str) -> None:
        """Show in an earlier copy what the card says now; buttons that it still has carry the nonce."""
        ...

    async def remove(self, place: str, ref: str) -> None:
        """Delete an earlier copy; one that is gone already is no fault."""
        ...

    async def notify(self, notice: Notice, place: str) -> None:
        """Tell something that asks nothing."""
        ...

    async def close(self) -> None:
        """Disconnect and stop every task; safe to call twice."""
        ...


class RunObserver(OutputSink, Protocol):
    """Told what happens between a call and its outcome; none of these may block."""

    def requested(self, card: Card) -> None:
        """People are being asked, as on this card."""
        ...

    def running(self, request_id: str) -> None:
        """Learn that the run has started."""
        ...
