"""A request: one call that reached the gate, from its admission to its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.model.allowlist import AlwaysOffer
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.decision import Obligation
from core.model.notice import Notice
from core.model.plan import Binding
from core.model.principal import PeerCredentials, Reviewer, Sender, named
from core.model.standing import DenyRule, StandingPermission

MIN_PREFIX = 8  # of an id, as people give it


class RequestKind(StrEnum):
    """`RUN` runs here after a yes; `ASK` only answers, its asker runs the call itself or later by id."""

    RUN = "run"
    ASK = "ask"


class State(StrEnum):
    """Where a request stands; docs/approvals.md has the table of transitions."""

    WAITING = "waiting"
    APPROVED = "approved"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    INTERRUPTED = "interrupted"
    USED = "used"

    @property
    def final(self) -> bool:
        """Whether nothing more can happen to the request."""
        return self not in (State.WAITING, State.APPROVED, State.RUNNING)


class Answer(StrEnum):
    """What a person can answer."""

    ALLOW_ONCE = "allow-once"
    ALLOW_FOR = "allow-for"
    ALLOW_ALWAYS = "allow-always"
    ALLOW_ALWAYS_ANY = "allow-always-any"
    DENY = "deny"
    DENY_ALWAYS = "deny-always"

    @property
    def allows(self) -> bool:
        """Whether this answer is a yes."""
        return self not in (Answer.DENY, Answer.DENY_ALWAYS)

    @property
    def lasts(self) -> bool:
        """Whether this answer leaves entries."""
        return self in (Answer.ALLOW_ALWAYS, Answer.ALLOW_ALWAYS_ANY)


@dataclass(frozen=True, slots=True)
class Review:
    """One person's answer to one request, identified by its full id.

    `for_ms` goes with `ALLOW_FOR`, and `max_uses` may go with it. `places` are those of the reviewer's
    channel whose terms hold for it, the narrowest of them; none where a login or the command line gave it.
    `sender` is all that a chat says of the reviewer, None where only the id is known.
    """

    request_id: str
    answer: Answer
    reviewer: Reviewer
    reason: str | None = None
    for_ms: int | None = None
    max_uses: int | None = None
    places: tuple[str, ...] = ()
    sender: Sender | None = None

    def given(self, at: int) -> GivenReview:
        """Give it in the form in which it is kept with its request."""
        left = (self.reason, self.for_ms, self.max_uses, self.sender)
        return GivenReview(self.answer, self.reviewer, at, *left)


@dataclass(frozen=True, slots=True)
class GivenReview:
    """An answer as kept with its request, whether or not it settled it; `at` is in epoch ms.

    `sender` is all that a chat said of the reviewer then: by it one finds out whether they may still decide.
    """

    answer: Answer
    reviewer: Reviewer
    at: int
    reason: str | None = None
    for_ms: int | None = None
    max_uses: int | None = None
    sender: Sender | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a question ended: by whom (None: by time or by policy), when (epoch ms), with what reason.

    `until` (epoch ms) is set where it was allowed for a time. `agreed` are all whose yes counted, in order,
    where several people had to say it; `by` is the last of them then.
    """

    decision: str
    at: int
    by: Reviewer | None = None
    reason: str | None = None
    until: int | None = None
    agreed: tuple[Reviewer, ...] = ()

    @property
    def people(self) -> tuple[Reviewer, ...]:
        """Everybody whose answer this is."""
        return self.agreed or ((self.by,) if self.by else ())

    def to_json(self, request_id: str) -> dict[str, Any]:
        """Give the `approval` of an outcome."""
        return {
            "id": request_id,
            "decision": self.decision,
            "by": named(self.people) or None,
            "at": self.at,
            "reason": self.reason,
            **({"until": self.until} if self.until is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class Copy:
    """One message that shows a request: `place` within its channel, and a secret that its buttons carry.

    A place is empty where a channel has only one. The nonce is 16 random bytes in base64url: whoever sends
    it back has seen the message, and guesses find nothing.
    """

    channel: str
    place: str = ""
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A copy as kept: `ref` is the platform's name of the message, None before it was delivered."""

    request_id: str
    copy: Copy
    ref: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """One kept request; times are epoch milliseconds.

    `verdict` is `Verdict.to_json()` as decided at admission. `cwd` is where it runs. `deadline` ends the
    window for answers, and for an approved request the window in which its asker must come for it.
    `outcome` holds what a run left (`Outcome` keys), or why it failed. `permission` is the id of the standing
    permission under which it was allowed, `elevation` that of what was set for its session, where its
    placement rests on that. `reviews` are all answers that were taken, in order; so many different people as
    `required` must say yes.
    """

    id: str
    kind: RequestKind
    state: State
    call: ToolCall
    canonical: str
    cwd: str
    placement: Placement
    sandbox: str | None
    verdict: dict[str, Any]
    binding: Binding
    created_at: int
    deadline: int
    always: AlwaysOffer = AlwaysOffer()
    obligations: frozenset[Obligation] = frozenset()
    resolution: Resolution | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: dict[str, Any] | None = None
    peer: PeerCredentials | None = None
    copies: tuple[Copy, ...] = ()
    permission: str | None = None
    elevation: str | None = None
    required: int = 1
    reviews: tuple[GivenReview, ...] = ()

    @property
    def short_id(self) -> str:
        """The first eight characters, enough for people."""
        return self.id[:8]

    @property
    def counts_once(self) -> bool:
        """Whether a yes counts for this one time only, whatever the one who says it wishes."""
        return Obligation.NEVER_REMEMBER in self.obligations


@dataclass(frozen=True, slots=True)
class Grant:
    """Single-use authority to run one bound command until `expires_at`."""

    request_id: str
    binding: str
    issued_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A fact for the record: `kind` is `subject.verb`, `actor` who made it so, `data` plain JSON."""

    at: int
    kind: str
    actor: str
    request_id: str | None = None
    data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChainedEvent:
    """An audit event in its place in the chain; `hash` covers the event and `previous`."""

    seq: int
    event: AuditEvent
    previous: str
    hash: str


class MessageKind(StrEnum):
    """What an outbox message does in its channel."""

    POST = "post"
    UPDATE = "update"
    REMOVE = "remove"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """Something a channel must be told, kept until it was; `id` is given by the store, 0 before.

    A notice carries its own text; the others are about the copy of `request_id` in this place.
    """

    channel: str
    kind: MessageKind
    request_id: str
    due_at: int
    place: str = ""
    notice: Notice | None = None
    attempts: int = 0
    id: int = 0


@dataclass(frozen=True, slots=True)
class Basis:
    """What a decision rests on, noted before anything was looked up for it.

    `revision` is the store's; `credential` the digest of the token with which the call came in, if any.
    """

    revision: int
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One unit of work on one request; the store applies all of it or nothing.

    `insert` adds a request. `expect` lists the states in which `request` may be replaced; the change is
    refused (not an error) when the kept state is none of them. `consume_grant` refuses likewise when the
    grant is gone, used, or expired at that time (epoch ms), and an inserted request with a `permission` when
    that has ended or is used up; otherwise it is used once. `review` is the last of the request's reviews,
    and the change is refused when another answer has taken its place in their order; so is every change that
    was made without an answer that is kept by now. A change with a `basis` is refused when something was
    forbidden since that was noted, or the credential no longer counts.
    """

    request: Request
    insert: bool = False
    expect: frozenset[State] = frozenset()
    issue_grant: Grant | None = None
    consume_grant_at: int | None = None
    learn: AlwaysOffer | None = None
    permit: StandingPermission | None = None
    forbid: DenyRule | None = None
    review: GivenReview | None = None
    basis: Basis | None = None
    events: tuple[AuditEvent, ...] = ()
    messages: tuple[OutboxMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An agent's credential as kept: the token itself is never stored."""

    id: str
    token_sha256: str
    created_at: int
    revoked_at: int | None = None
