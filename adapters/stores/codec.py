"""Model values as rows: JSON for what is only read back, columns for what is searched."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import structs

from core.audit import canonical_json
from core.errors import StoreError
from core.model.allowlist import AllowlistEntry
from core.model.principal import Reviewer
from core.model.request import Answer, Request
from core.model.tightening import DocumentSettings

_TO_JSON = msgspec.json.Encoder().encode
_TO_REQUEST = msgspec.json.Decoder(Request).decode
# A yes for a time ends with its time: it does not count as "approved before".
_YES = frozenset((Answer.ALLOW_ONCE.value, Answer.ALLOW_ALWAYS.value, Answer.ALLOW_ALWAYS_ANY.value))


def request_row(request: Request) -> dict[str, Any]:
    """Give the columns of a request."""
    body, stdin = _dump(request)
    return {
        "id": request.id,
        "kind": request.kind.value,
        "state": request.state.value,
        "agent": request.call.agent,
        "session": str(request.call.session),
        "binding": request.binding.digest,
        "created_at": request.created_at,
        "deadline": request.deadline,
        "ended_at": request.ended_at,
        "moment": request.created_at if request.ended_at is None else request.ended_at,
        "person_allowed": int(_person_allowed(request)),
        "command": shown_text(request.canonical),
        "body": body,
        "stdin": stdin,
    }


def _person_allowed(request: Request) -> bool:
    resolution = request.resolution
    return resolution is not None and resolution.by is not None and resolution.decision in _YES


def _dump(request: Request) -> tuple[str, bytes | None]:
    # Standard input is bytes, which JSON does not have: it gets a column of its own.
    command = request.call.command
    if command is None or command.stdin is None:
        return _json(request), None
    call = replace(request.call, command=structs.replace(command, stdin=None))
    return _json(replace(request, call=call)), command.stdin


def _json(request: Request) -> str:
    try:
        return _TO_JSON(request).decode()
    except UnicodeEncodeError:  # file names that are not valid Unicode, which only ASCII can spell
        return json.dumps(msgspec.to_builtins(request), ensure_ascii=True, separators=(",", ":"))


def load_request(body: str, stdin: bytes | None) -> Request:
    """Read a request back; StoreError where the row is not one."""
    request = _parsed(body)
    command = request.call.command
    if stdin is None or command is None:
        return request
    return replace(request, call=replace(request.call, command=structs.replace(command, stdin=stdin)))


def _parsed(body: str) -> Request:
    try:
        return _TO_REQUEST(body)
    except msgspec.MsgspecError:  # half of a surrogate pair, as file names may have it, is read below
        pass
    try:
        return msgspec.convert(json.loads(body), Request)
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(f"a kept request cannot be read, the database is damaged: {error}") from error


def entry_text(entry: AllowlistEntry) -> str:
    """Give the one spelling of an allowlist entry."""
    said = msgspec.to_builtins(entry)
    del said["id"]
    return canonical_json(said).decode()


def load_entry(text: str) -> AllowlistEntry:
    """Read an allowlist entry back; StoreError where the row is not one."""
    try:
        return msgspec.convert(json.loads(text), AllowlistEntry)
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"a kept allowlist entry cannot be read, the database is damaged: {error}"
        ) from error


def settings_text(settings: DocumentSettings) -> str:
    """Give the settings of exec-approvals.json as JSON."""
    return canonical_json(msgspec.to_builtins(settings)).decode()


@lru_cache(maxsize=4)
def load_settings(text: str) -> DocumentSettings:
    """Read the settings of exec-approvals.json back; StoreError where the row is none."""
    try:
        return msgspec.convert(json.loads(text), DocumentSettings)
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"the kept exec settings cannot be read, the database is damaged: {error}"
        ) from error


def reviewers_text(reviewers: Iterable[Reviewer]) -> str:
    """Give the people whose answer something is, as JSON."""
    return json.dumps([asdict(reviewer) for reviewer in reviewers])


def load_reviewers(text: str) -> tuple[Reviewer, ...]:
    """Read people back; earlier versions kept one alone. StoreError where the row is neither."""
    try:
        kept = json.loads(text)
        return msgspec.convert(kept if isinstance(kept, list) else [kept], tuple[Reviewer, ...])
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(f"a kept person cannot be read, the database is damaged: {error}") from error


def path_bytes(path: str) -> bytes:
    """Give a path's bytes, whether or not it is valid text."""
    return path.encode("utf-8", "surrogatepass")


def shown_text(text: str) -> str:
    """Give text that any column can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
