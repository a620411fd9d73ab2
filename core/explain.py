"""Answers a row of `explain`: the whole decision for one call, without asking, running or recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from core.config import Config
from core.elevated.authority import authority
from core.elevated.levels import standing_for
from core.errors import RequestError
from core.judge import Case, Judge
from core.model.allowlist import AllowlistEntry
from core.model.call import EXEC, CommandText, ToolCall
from core.model.decision import Decision, Effect, Layer, strictest
from core.model.elevation import NOT_ELEVATED, Elevation, Level, Standing
from core.model.environment import Environment
from core.model.principal import Claims, Sender
from core.model.session import SessionKey
from core.model.standing import Remembered
from core.model.verdict import Verdict


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RowEntry:
    """An allowlist entry that counts for one row alone."""

    pattern: str = Field(min_length=1)
    args: tuple[str, ...] | None = None
    argPattern: str | None = None  # noqa: N815 - the key of the interface


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Row:
    """An input row; all but one of command, argv and tool may be absent.

    A command is judged where Sayso would run it. What `tool.check` would be asked, a tool with its arguments
    or a command under a client's own name for exec (`Bash`), is judged where that client would.
    """

    id: str | int | None = None
    tool: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)
    command: str | None = None
    argv: tuple[str, ...] | None = None
    cwd: str | None = None
    env: Environment = Field(default_factory=dict)
    agent: str | None = None
    session: str | None = None
    provider: str | None = None
    model: str | None = None
    depth: int = Field(default=0, ge=0)
    sandboxed: bool = False
    allowlist: tuple[RowEntry, ...] = ()
    sender: dict[str, Any] | None = None
    elevated: Level | None = None
    config: dict[str, Any] | None = None
    security: Literal["deny", "allowlist", "full"] | None = None
    ask: Literal["off", "on-miss", "always"] | None = None


_ROW = TypeAdapter(Row)
_SENDER = TypeAdapter(Sender)
_NOTHING = Remembered()


def read_row(row: Mapping[str, Any]) -> Row:
    """Validate an input row; raises RequestError naming the field."""
    try:
        return _ROW.validate_python(dict(row))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"{field}: {first['msg']}", field=field) from None


def call_of(row: Row) -> ToolCall:
    """Build the call that a row describes; raises RequestError where it describes none."""
    if row.command is None and row.argv is None and row.tool is None:
        raise RequestError("give one of command, argv and tool", field="command")
    command = None
    if row.command is not None or row.argv is not None:
        command = CommandText(row.command, row.argv or (), row.cwd, env=tuple(row.env.items()))
    try:
        session = SessionKey.parse(row.session) if row.session else SessionKey.main(row.agent or "main")
    except ValueError as error:
        raise RequestError(str(error), field="session") from None
    claims = Claims(row.provider, row.model, row.depth, row.sandboxed)
    stricter = {"security": row.security, "ask": row.ask}
    asked = row.elevated.value if row.elevated and row.sender is None else None
    tool = row.tool or EXEC
    by_client = command is None or tool.strip().casefold() != EXEC
    return ToolCall(tool, session, claims, command, row.args, asked, row.cwd, by_client=by_client, **stricter)


def standing_of(
    config: Config, row: Row, call: ToolCall, kept: Standing = NOT_ELEVATED
) -> tuple[Standing, Decision | None]:
    """Give the level that holds for a row: what its sender sets for it, else what is kept.

    The decision is there where that sender may not elevate.
    """
    if row.sender is None or row.elevated is None:
        return kept, None
    who, sender = authority(config, call.agent), _sender(row.sender)
    if who.admits(sender):
        wanted = Elevation("", str(call.session), row.elevated, sender, 0)
        return standing_for(config, call, {str(call.session): wanted}, {}, 0), None
    why = f"does not name {sender.channel}:{sender.id}" if who.enabled else "is false"
    reason = f"this sender may not elevate: {who.source} {why}"
    return kept, Decision(Layer.ELEVATED, Effect.DENY, reason, "elevated.sender", who.source)


def configured(config: Config, call: ToolCall) -> Standing:
    """Give the level that holds where nobody set any."""
    return standing_for(config, call, {}, {}, 0)


def _sender(given: Mapping[str, Any]) -> Sender:
    try:
        return _SENDER.validate_python(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(["sender", *(str(part) for part in first["loc"])])
        raise RequestError(f"{field}: {first['msg']}", field=field) from None


def listed_segments(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of an answer that an entry admits, whose `source` may have a place in a file."""
    segments = (answer.get("facts") or {}).get("segments") or ()
    return [segment for segment in segments if segment["source"]]


def explain(
    judge: Judge, row: Row, case: Case | None = None, remembered: Remembered = _NOTHING
) -> dict[str, Any]:
    """Decide what a row describes and tell everything about it; `case` where it was examined already."""
    call = case.call if case else call_of(row)
    standing, refusal = standing_of(judge.config, row, call, configured(judge.config, call))
    case = case or judge.examine(call, standing, look_up=False)
    own = tuple(
        AllowlistEntry(
            entry.pattern,
            entry.args,
            entry.argPattern,
            case.placed.placement,
            source=f"allowlist[{index}]",
        )
        for index, entry in enumerate(row.allowlist)
    )
    remembered = replace(remembered, learned=(*remembered.learned, *own))
    verdict: Verdict = judge.verdict(case, remembered)
    if case.arguments.unresolved and verdict.effect is Effect.ALLOW:
        verdict = judge.verdict(judge.examine(case.call, case.placed.standing), remembered)
    if refusal is not None:
        trace = (*verdict.trace, refusal)
        verdict = replace(verdict, decision=strictest(trace), trace=trace)
    return {"id": row.id, **verdict.to_json()}
