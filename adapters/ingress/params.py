"""The parameters of every method, validated; nothing is converted and nothing unknown is accepted."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from adapters.ingress.fields import (
    Base64,
    ChannelName,
    Claim,
    Directory,
    Limit,
    NonEmpty,
    RequestId,
    RouteName,
    Text,
)
from adapters.ingress.jsonrpc import Code, RpcError
from core.approvals import commands
from core.config.refusals import in_plain_words
from core.model.allowlist import AllowlistEntry
from core.model.call import EXEC, CommandText, ToolCall
from core.model.command import Placement
from core.model.environment import Environment
from core.model.history import HistoryQuery
from core.model.principal import Claims, Reviewer
from core.model.request import Answer, Review, State
from core.model.session import SessionKey
from core.model.standing import LONGEST_MS, MOST_USES, SHORTEST_MS

WEEK_S = 7 * 86_400


class Params(BaseModel):
    """The parameters of one method."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, allow_inf_nan=False
    )


class NoParams(Params):
    """A method without parameters."""


class Hello(Params):
    """`hello`."""

    token: NonEmpty
    role: Literal["agent", "operator"] = "agent"


class ClaimParams(Params):
    """What an agent says about itself."""

    provider: Claim | None = None
    model: Claim | None = None
    depth: Annotated[int, Field(ge=0, le=1000)] = 0
    sandboxed: bool = False

    def value(self) -> Claims:
        """Return the claims as the core knows them."""
        return Claims(self.provider, self.model, self.depth, self.sandboxed)


class SessionParams(Params):
    """What every call of an agent may say of where it comes from."""

    session: Annotated[NonEmpty, Field(max_length=1_000)] | None = None
    claims: ClaimParams = ClaimParams()

    def session_of(self, agent: str) -> SessionKey:
        """Return the session named, or the agent's main one; one of another agent is refused."""
        if self.session is None:
            return SessionKey.main(agent)
        try:
            key = SessionKey.parse(self.session)
        except ValueError as error:
            raise RpcError(Code.INVALID_PARAMS, str(error), field="session") from None
        if key.agent != agent:
            message = f"session {self.session!r} belongs to another agent; this token is the one of {agent!r}"
            raise RpcError(Code.INVALID_PARAMS, message, field="session")
        return key


class CommandParams(SessionParams):
    """A command: a shell line or an argv, and where and how to run it."""

    command: NonEmpty | None = None
    argv: Annotated[tuple[Text, ...], Strict(strict=False), Field(min_length=1)] | None = None
    cwd: Directory | None = None
    cwd_preferred: bool = False
    env: Environment = Field(default_factory=dict)
    stdin: Base64 | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=WEEK_S)] | None = None
    new_privileges: bool = False
    elevated: Literal["on", "ask", "full", "off"] | None = None
    security: Literal["deny", "allowlist", "full"] | None = None
    ask: Literal["off", "on-miss", "always"] | None = None

    def text(self) -> CommandText | None:
        """Return the command, or None where the call names none."""
        if self.command is None and self.argv is None:
            return None
        return CommandText(
            line=self.command,
            argv=self.argv or (),
            cwd=self.cwd,
            cwd_preferred=self.cwd_preferred,
            env=tuple(sorted(self.env.items())),
            stdin=base64.b64decode(self.stdin) if self.stdin is not None else None,
            timeout_s=self.timeout_seconds,
            new_privileges=self.new_privileges,
        )

    def _require_one_command(self) -> None:
        if self.command is not None and self.argv is not None:
            raise ValueError("command and argv exclude each other; send one")
        if self.command is not None and not self.command.strip():
            raise ValueError("command is empty")
        if self.argv is not None and not self.argv[0]:
            raise ValueError("argv names no program")


class ExecRun(CommandParams):
    """`exec.run`; with `detach` the answer is the first outcome that is final or waits for a person."""

    approval_id: RequestId | None = None
    detach: bool = False

    @model_validator(mode="after")
    def _one_command(self) -> ExecRun:
        self._require_one_command()
        if self.text() is None:
            raise ValueError("command or argv is missing")
        if self.detach and self.approval_id is not None:
            raise ValueError("detach and approvalId exclude each other; an approved call does not wait")
        return self

    def call(self, agent: str) -> ToolCall:
        """Return the call."""
        session, claims = self.session_of(agent), self.claims.value()
        stricter: dict[str, Any] = {"security": self.security, "ask": self.ask}
        return ToolCall(EXEC, session, claims, self.text(), {}, self.elevated, **stricter)


class ToolCheck(SessionParams):
    """`tool.check`; without `wait` a question that people must answer is returned as pending.

    The agent's own program carries the call out, a command too. `cwd` is where: what relative paths in `args`
    start from; without it the session's workspace, and for a command nothing.
    """

    tool: NonEmpty
    args: dict[str, Any] = Field(default_factory=dict)
    cwd: Directory | None = None
    wait: bool = True

    def call(self, agent: str) -> ToolCall:
        """Return the call."""
        session, claims = self.session_of(agent), self.claims.value()
        return ToolCall(self.tool, session, claims, args=self.args, cwd=self.cwd, by_client=True)


class ApprovalRequest(CommandParams):
    """`exec.approval.request`: about a command, or about a tool with arguments."""

    tool: NonEmpty | None = None
    args: dict[str, Any] = Field(default_factory=dict)
    two_phase: bool = False

    @model_validator(mode="after")
    def _one_subject(self) -> ApprovalRequest:
        self._require_one_command()
        command = self.text() is not None
        if command is (self.tool is not None):
            raise ValueError("send one of command, argv and tool")
        if command and self.args:
            raise ValueError("args belong to tool; a command has argv")
        return self

    def call(self, agent: str) -> ToolCall:
        """Return the call."""
        session, claims = self.session_of(agent), self.claims.value()
        tool, cwd = (EXEC, None) if self.tool is None else (self.tool, self.cwd)
        stricter: dict[str, Any] = {"security": self.security, "ask": self.ask}
        return ToolCall(tool, session, claims, self.text(), self.args, self.elevated, cwd, **stricter)


class ById(Params):
    """Methods about one request."""

    id: RequestId


class Resolve(Params):
    """`exec.approval.resolve`."""

    id: RequestId
    decision: Literal["allow-once", "allow-for", "allow-always", "allow-always-any", "deny", "deny-always"]
    reason: Annotated[Text, Field(max_length=2000)] | None = None
    for_ms: Annotated[int, Field(ge=SHORTEST_MS, le=LONGEST_MS)] | None = None
    max_uses: Annotated[int, Field(ge=1, le=MOST_USES)] | None = None

    @model_validator(mode="after")
    def _a_time_goes_with_allow_for(self) -> Resolve:
        timed = self.decision == "allow-for"
        if timed != (self.for_ms is not None) or (self.max_uses is not None and not timed):
            raise ValueError("forMs goes with allow-for, and maxUses with forMs")
        return self

    def review(self, reviewer: Reviewer) -> Review:
        """Make it the answer of this person."""
        safe = commands.reason(self.reason) if self.reason else None
        return Review(self.id, Answer(self.decision), reviewer, safe, self.for_ms, self.max_uses)


class AllowlistListing(Params):
    """`allowlist.list`; with `agent` what counts for that one."""

    agent: NonEmpty | None = None


class NewEntry(Params):
    """`allowlist.add`."""

    pattern: Annotated[NonEmpty, Field(max_length=4096)]
    args: Annotated[tuple[Text, ...], Strict(strict=False)] | None = None
    arg_pattern: NonEmpty | None = None
    agent: Annotated[NonEmpty, Field(max_length=200)] | None = None
    placement: Literal["sandbox", "host", "client"] = "sandbox"

    def entry(self) -> AllowlistEntry:
        """Return the entry."""
        place = Placement(self.placement)
        return AllowlistEntry(self.pattern, self.args, self.arg_pattern, place, agent=self.agent)


class ImportDocument(Params):
    """`allowlist.import`; with `replace` what the document lacks is forgotten."""

    document: dict[str, Any]
    replace: bool = False


class SetDocument(Params):
    """`exec.approvals.set`; `baseHash` is what `exec.approvals.get` gave as `hash`."""

    document: dict[str, Any]
    base_hash: NonEmpty


class RegisterTools(Params):
    """`tools.register`."""

    plugin: Annotated[NonEmpty, Field(max_length=64)]
    tools: Annotated[list[Annotated[NonEmpty, Field(max_length=128)]], Field(min_length=1, max_length=1000)]


class UnregisterTools(Params):
    """`tools.unregister`."""

    plugin: Annotated[NonEmpty, Field(max_length=64)]


class Listing(Params):
    """Methods that list the newest."""

    limit: Limit = 50


Needle = Annotated[Text, Field(min_length=1, max_length=1_000)]
Moment = Annotated[int, Field(ge=0, le=2**53)]


class History(Params):
    """`request.history`; times are epoch milliseconds."""

    limit: Limit = 50
    agent: Needle | None = None
    session: Needle | None = None
    person: Needle | None = None
    text: Needle | None = None
    since: Moment | None = None
    until: Moment | None = None
    states: Annotated[tuple[str, ...], Strict(strict=False), Field(max_length=20)] = ()

    def query(self) -> HistoryQuery:
        """Return the question as the core knows it."""
        unknown = [state for state in self.states if state not in set(State)]
        if unknown:
            known = ", ".join(State)
            raise RpcError(
                Code.INVALID_PARAMS, f"no state is {unknown[0][:40]!r}; there are {known}", field="states"
            )
        return HistoryQuery(**{**self.model_dump(), "states": tuple(State(state) for state in self.states)})


class AuditPage(Params):
    """`audit.page`."""

    after: Moment = 0
    limit: Limit = 200


class ChannelTest(Params):
    """`channels.test`; without `channel` every chat is asked."""

    channel: ChannelName | None = None


class Invite(Params):
    """`pairing.invite`; without `route` for the person's own direct messages."""

    channel: ChannelName
    route: RouteName | None = None


class Confirm(Params):
    """`pairing.confirm`."""

    id: RequestId
    accepted: bool


class Unpair(Params):
    """`pairing.unpair`; `route` as it was paired for."""

    channel: ChannelName
    id: RequestId
    route: RouteName | None = None


class Row(Params):
    """`policy.explain` and `policy.tools`: an input row of interfaces."""

    row: dict[str, Any]


class AgentName(Params):
    """Methods about one agent."""

    agent: NonEmpty


class Lock(Params):
    """`lock.set`."""

    locked: bool


P = TypeVar("P", bound=Params)


def read(model: type[P], params: Mapping[str, Any]) -> P:
    """Validate parameters; raises RpcError that names the field."""
    try:
        return model.model_validate(dict(params))
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> RpcError:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"] if part != "[key]") or None
    unknown = first["type"] == "extra_forbidden"
    message = "is not a parameter of this method" if unknown else in_plain_words(first)
    return RpcError(Code.INVALID_PARAMS, f"{field}: {message}" if field else message, field=field)
