"""The record's hash chain: each event is sealed together with the hash of the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from core.model.request import AuditEvent, ChainedEvent

GENESIS = "0" * 64
UNREADABLE = "audit.unreadable"
_ROW = {"seq", "at", "kind", "actor", "request", "data", "previous", "hash"}
_PLAIN = json.JSONEncoder(allow_nan=False)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any plain JSON value
    """Give the one spelling of a JSON value: sorted keys, no spaces, ASCII only; NaN raises ValueError."""
    return _spell(json.loads(_PLAIN.encode(value)))


def _spell(plain: Any) -> bytes:  # noqa: ANN401 - what json.loads gave
    return _CANONICAL.encode(plain).encode()


def body(seq: int, event: AuditEvent) -> bytes:
    """Give the bytes of an event that are hashed and kept."""
    return canonical_json(
        {
            "seq": seq,
            "at": event.at,
            "kind": event.kind,
            "actor": event.actor,
            "request_id": event.request_id,
            "data": event.data,
        }
    )


def _seal(previous: str, content: bytes) -> str:
    return hashlib.sha256(previous.encode() + content).hexdigest()


def chain(seq: int, previous: str, event: AuditEvent) -> ChainedEvent:
    """Put an event in its place after the one whose hash is `previous` (`GENESIS` for the first)."""
    return ChainedEvent(seq, event, previous, _seal(previous, body(seq, event)))


def sealed(seq: int, previous: str, event: AuditEvent) -> tuple[bytes, str]:
    """Give the bytes to keep for an event in this place, and its hash."""
    content = body(seq, event)
    return content, _seal(previous, content)


def restore(seq: int, content: bytes, previous: str, seal: str) -> ChainedEvent:
    """Read a kept event back from its exact bytes.

    Bytes that are not what `body` gives for this place come back as an event of the kind `UNREADABLE` that
    shows them, so that a reader sees the damage and no hash fits it.
    """
    event = _parse(seq, content)
    if event is None:
        shown = content.decode("ascii", "backslashreplace")
        event = AuditEvent(0, UNREADABLE, "", None, {"stored": shown})
    return ChainedEvent(seq, event, previous, seal)


def _parse(seq: int, content: bytes) -> AuditEvent | None:
    try:
        fields = json.loads(content)
        if _spell(fields) != content or fields.pop("seq") != seq:
            return None
        return AuditEvent(**fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class Record(Protocol):
    """What `verify` reads: any AuditStore."""

    def events(self, after: int = 0) -> AsyncGenerator[ChainedEvent, None]:
        """Yield the chain in order."""
        ...

    async def head(self) -> tuple[int, str]:
        """Return (seq, hash) of the last event, as noted beside the chain."""
        ...


@dataclass(frozen=True, slots=True)
class Verification:
    """`events` links hold, up to the one with the hash `head`; `broken_at` is the first that does not."""

    ok: bool
    events: int
    head: str
    broken_at: int | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the answer of `audit verify`."""
        return {
            "ok": self.ok,
            "events": self.events,
            "head": self.head,
            "brokenAt": self.broken_at,
            "problem": self.problem,
        }


async def verify(record: Record) -> Verification:
    """Recompute the whole chain and name the first broken link; new events may be appended meanwhile.

    The noted head is read before the walk, which must reach it, and again after it, when it must not lie
    behind what the walk has seen.
    """
    noted = await record.head()
    last = (0, GENESIS)
    async with aclosing(record.events()) as links:
        async for link in links:
            problem = _fault(last, noted, link)
            if problem:
                return _broken(last, problem)
            last = (link.seq, link.hash)
    noted_now = await record.head()
    problem = _end_fault(last, noted, noted_now)
    return _broken(min(last, noted_now), problem) if problem else Verification(True, *last)


def verify_part(links: Iterable[ChainedEvent]) -> Verification:
    """Recompute a part of the chain on its own; what came before it and after it is not proved."""
    last: tuple[int, str] | None = None
    for link in links:
        before = last or (link.seq - 1, GENESIS if link.seq == 1 else link.previous)
        problem = _fault(before, (0, ""), link)
        if problem:
            return _broken(before, problem)
        last = (link.seq, link.hash)
    return Verification(True, *(last or (0, GENESIS)))


def to_row(link: ChainedEvent) -> dict[str, Any]:
    """Give a link as one row of an exported record; `from_row` reads it back."""
    event = link.event
    return {
        "seq": link.seq,
        "at": event.at,
        "kind": event.kind,
        "actor": event.actor,
        "request": event.request_id,
        "data": event.data,
        "previous": link.previous,
        "hash": link.hash,
    }


def from_row(row: Any) -> ChainedEvent:  # noqa: ANN401 - what a file holds
    """Read a row of an exported record; raises ValueError where it is none."""
    if (
        not isinstance(row, dict)
        or row.keys() != _ROW
        or not isinstance(row["seq"], int)
        or isinstance(row["seq"], bool)
    ):
        raise ValueError(f"a row has exactly {', '.join(sorted(_ROW))}")
    event = AuditEvent(row["at"], row["kind"], row["actor"], row["request"], row["data"])
    return ChainedEvent(row["seq"], event, str(row["previous"]), str(row["hash"]))


def _broken(last: tuple[int, str], problem: str) -> Verification:
    return Verification(False, *last, broken_at=last[0] + 1, problem=problem)


def _fault(last: tuple[int, str], noted: tuple[int, str], link: ChainedEvent) -> str | None:
    seq, previous = last
    if link.seq > seq + 1:
        return _missing(seq + 1, link.seq - 1)
    if link.seq <= seq:
        return f"event {link.seq} is there twice or out of order"
    if link.event.kind == UNREADABLE or link.hash != _seal(link.previous, body(link.seq, link.event)):
        return f"event {link.seq} was changed"
    if link.previous != previous:
        return f"event {link.seq} does not follow the event before it: one of them was put in later"
    if link.seq == noted[0] and link.hash != noted[1]:
        return f"event {link.seq} is not the one that the noted head stands for"
    return None


def _missing(first: int, last: int) -> str:
    return f"event {first} is missing" if first == last else f"events {first} to {last} are missing"


def _end_fault(last: tuple[int, str], noted: tuple[int, str], noted_now: tuple[int, str]) -> str | None:
    seq = last[0]
    if seq < noted[0]:
        return f"events after {seq} are missing: the head notes {noted[0]}"
    if noted_now[0] < seq:
        return f"event {noted_now[0] + 1} was added without the head, which notes {noted_now[0]}"
    if noted[0] == 0 and noted[1] != GENESIS:
        return "the noted head of the empty record was changed"
    return None
