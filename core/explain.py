"""Answers a row of `explain`: the whole decision for one call, without asking, running or recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from core.errors import RequestError
from core.judge import Case, Judge
from core.model.allowlist import AllowlistEntry
from core.model.call import EXEC, CommandText, ToolCall
from core.model.decision import Effect
from core.model.principal import Claims
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
    """An input row; all but one of command, argv and tool may be absent."""

    id: str | int | None = None
    tool: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)
    command: str | None = None
    argv: tuple[str, ...] | None = None
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    agent: str | None = None
    session: str | None = None
    provider: str | None = None
    model: str | None = None
    depth: int = Field(default=0, ge=0)
    sandboxed: bool = False
    allowlist: tuple[RowEntry, ...] = ()
    sender: dict[str, Any] | None = None
    elevated: str | None = None
    config: dict[str, Any] | None = None
    security: Literal["deny", "allowlist", "full"] | None = None
    ask: Literal["off", "on-miss", "always"] | None = None


_ROW = TypeAdapter(Row)
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
    return ToolCall(row.tool or EXEC, session, claims, command, row.args, row.elevated, row.cwd, **stricter)


def listed_segments(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of an answer that an entry admits, whose `source` may have a place in a file."""
    segments = (answer.get("facts") or {}).get("segments") or ()
    return [segment for segment in segments if segment["source"]]


def explain(
    judge: Judge, row: Row, case: Case | None = None, remembered: Remembered = _NOTHING
) -> dict[str, Any]:
    """Decide what a row describes and tell everything about it; `case` where it was examined already."""
    case = case or judge.examine(call_of(row), look_up=False)
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
        verdict = judge.verdict(judge.examine(case.call), remembered)
    return {"id": row.id, **verdict.to_json()}
